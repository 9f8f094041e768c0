"""Uploads in parts, which outlive a connection."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime

UPLOADS = "/api/files/uploads"
Call = Callable[..., Any]


async def send(
    http: aiohttp.ClientSession, upload: str, data: bytes, *, offset: int, status: int = 200
) -> dict[str, Any]:
    async with http.put(f"{UPLOADS}/{upload}", params={"offset": offset}, data=data) as response:
        found = await response.json()
        assert response.status == status, found
        return found


async def complete(http: aiohttp.ClientSession, upload: str, *, status: int = 200) -> dict[str, Any]:
    async with http.post(f"{UPLOADS}/{upload}/complete") as response:
        found = await response.json()
        assert response.status == status, found
        return found


async def offset_of(http: aiohttp.ClientSession, upload: str) -> int:
    async with http.get(f"{UPLOADS}/{upload}") as response:
        return (await response.json())["offset"]


async def give_up(http: aiohttp.ClientSession, upload: str) -> None:
    async with http.delete(f"{UPLOADS}/{upload}") as response:
        assert response.status == 200


async def test_parts_become_a_file_when_they_are_complete(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    data = bytes(range(256)) * 5000
    digest = hashlib.sha256(data).hexdigest()
    begun = await call("files/uploads", path="up/a.bin", size=len(data), sha256=digest, mode="600")
    assert (begun["path"], begun["offset"], begun["size"]) == ("up/a.bin", 0, len(data))
    upload = begun["id"]
    for start in range(0, len(data), 400_000):
        part = data[start : start + 400_000]
        found = await send(http, upload, part, offset=start)
        assert found["offset"] == start + len(part)
    assert list((runtime.workspace / "up").iterdir()) == []
    found = await complete(http, upload)
    assert (found["path"], found["size"], found["sha256"]) == ("up/a.bin", len(data), digest)
    path = runtime.workspace / "up/a.bin"
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o777 == 0o600
    async with http.get(f"{UPLOADS}/{upload}") as response:
        assert response.status == 404


async def test_what_came_before_a_break_counts(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    upload = (await call("files/uploads", path="resumed"))["id"]
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    head = f"PUT {UPLOADS}/{upload}?offset=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n"
    writer.write(head.encode() + b"x" * 1_500_000)
    await writer.drain()
    await busy(http, upload)
    writer.close()
    await free(http, upload)
    offset = await offset_of(http, upload)
    assert 0 < offset <= 1_500_000
    await send(http, upload, b"y", offset=offset)
    await complete(http, upload)
    assert (runtime.workspace / "resumed").read_bytes() == b"x" * offset + b"y"
    assert await reader.read() == b""


async def busy(http: aiohttp.ClientSession, upload: str) -> None:
    """Waits until another request is sending, and until a part of it is there."""
    await until(lambda: offset_of(http, upload))


async def free(http: aiohttp.ClientSession, upload: str) -> None:
    """Waits until the runtime has noticed that the other request is over."""

    async def is_free() -> bool:
        async with http.put(f"{UPLOADS}/{upload}", params={"offset": 2**40}) as response:
            return (await response.json())["code"] == "OPERATION_INTERRUPTED"

    await until(is_free)


async def until(check: Callable[[], Awaitable[object]]) -> None:
    for _ in range(1000):
        if await check():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("this never came true")


async def test_a_part_that_begins_elsewhere_is_refused_with_the_offset(
    call: Call, http: aiohttp.ClientSession
) -> None:
    upload = (await call("files/uploads", path="a"))["id"]
    await send(http, upload, b"abc", offset=0)
    for wrong in (0, 2, 4):
        found = await send(http, upload, b"x", offset=wrong, status=409)
        assert found["context"]["offset"] == 3
        assert found["context"]["path"] == "a"
    await give_up(http, upload)


async def test_two_parts_at_once_are_refused(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    upload = (await call("files/uploads", path="a"))["id"]
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    head = f"PUT {UPLOADS}/{upload}?offset=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n"
    writer.write(head.encode() + b"x" * 1_500_000)
    await writer.drain()
    await busy(http, upload)
    assert (await send(http, upload, b"y", offset=0, status=409))["code"] == "RESOURCE_BUSY"
    assert (await complete(http, upload, status=409))["code"] == "RESOURCE_BUSY"
    async with http.delete(f"{UPLOADS}/{upload}") as response:
        assert response.status == 409
    writer.write(b"x" * 500_000)
    assert b"200 OK" in await reader.read(100)
    writer.close()
    assert (await complete(http, upload))["size"] == 2_000_000
    assert (runtime.workspace / "a").stat().st_size == 2_000_000


async def test_too_much_and_too_little_are_refused(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    upload = (await call("files/uploads", path="a", size=5))["id"]
    await send(http, upload, b"abc", offset=0)
    found = await complete(http, upload, status=400)
    assert found["context"]["offset"] == 3
    found = await send(http, upload, b"defghi", offset=3, status=400)
    assert found["code"] == "VALIDATION_FAILED"
    await send(http, upload, b"de", offset=await offset_of(http, upload))
    await complete(http, upload)
    assert (runtime.workspace / "a").read_bytes() == b"abcde"


async def test_a_wrong_digest_gives_the_upload_up(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    upload = (await call("files/uploads", path="a", sha256="0" * 64))["id"]
    await send(http, upload, b"abc", offset=0)
    found = await complete(http, upload, status=400)
    assert found["context"]["actual"] == hashlib.sha256(b"abc").hexdigest()
    assert (await complete(http, upload, status=404))["code"] == "FILE_NOT_FOUND"
    assert list(runtime.workspace.iterdir()) == []


async def test_of_an_upload_that_is_given_up_nothing_is_left(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    upload = (await call("files/uploads", path="a"))["id"]
    await send(http, upload, b"abc", offset=0)
    await give_up(http, upload)
    async with http.delete(f"{UPLOADS}/{upload}") as response:
        assert response.status == 404
    assert list(runtime.workspace.iterdir()) == []


@pytest.mark.parametrize("fields", [{"size": -1}, {"sha256": "x"}, {"mode": "9"}, {"size": "5"}])
async def test_an_upload_that_makes_no_sense_is_refused(call: Call, fields: dict[str, Any]) -> None:
    found = await call("files/uploads", path="a", status=400, **fields)
    assert found["code"] == "VALIDATION_FAILED"


@pytest.mark.parametrize("offset", ["", "x", "-1", "1.5", None])
async def test_a_part_says_where_it_begins(
    call: Call, http: aiohttp.ClientSession, offset: str | None
) -> None:
    upload = (await call("files/uploads", path="a"))["id"]
    params = {} if offset is None else {"offset": offset}
    async with http.put(f"{UPLOADS}/{upload}", params=params, data=b"x") as response:
        assert (response.status, (await response.json())["code"]) == (400, "VALIDATION_FAILED")
    await give_up(http, upload)


async def test_there_are_at_most_64_unfinished_uploads(call: Call, http: aiohttp.ClientSession) -> None:
    made = [(await call("files/uploads", path="a"))["id"] for _ in range(64)]
    found = await call("files/uploads", path="a", status=409)
    assert found["code"] == "RESOURCE_BUSY"
    assert "64 unfinished uploads" in found["message"]
    for upload in made:
        await give_up(http, upload)
