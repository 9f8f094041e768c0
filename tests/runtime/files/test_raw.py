"""`/api/files/raw`: a file's bytes out and in."""

import asyncio
import email.utils
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from tests.support.runtime import Runtime, soon

RAW = "/api/files/raw"
Call = Callable[..., Any]


async def refused(response: aiohttp.ClientResponse, status: int) -> dict[str, Any]:
    found = await response.json()
    assert (response.status, found["httpStatus"]) == (status, status), found
    return found


async def test_a_file_comes_with_what_a_web_server_says_of_it(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    path = runtime.workspace / "a.json"
    path.write_text("[1]")
    for method in ("GET", "HEAD"):
        async with http.request(method, RAW, params={"path": "a.json"}) as response:
            assert response.status == 200
            assert await response.read() == (b"[1]" if method == "GET" else b"")
            headers = response.headers
            assert headers["Content-Length"] == "3"
            assert headers["Content-Type"] == "application/json"
            assert headers["Accept-Ranges"] == "bytes"
            assert headers["Access-Control-Allow-Origin"] == "*"
            modified = email.utils.parsedate_to_datetime(headers["Last-Modified"])
            assert modified.timestamp() == int(path.stat().st_mtime)
            assert headers["ETag"]


@pytest.mark.parametrize(
    ("wanted", "part", "said"),
    [
        ("bytes=2-4", b"cde", "bytes 2-4/10"),
        ("bytes=8-", b"ij", "bytes 8-9/10"),
        ("bytes=8-99", b"ij", "bytes 8-9/10"),
        ("bytes=-2", b"ij", "bytes 8-9/10"),
        ("bytes=0-0", b"a", "bytes 0-0/10"),
    ],
)
async def test_a_range_is_answered_with_that_part(
    http: aiohttp.ClientSession, runtime: Runtime, wanted: str, part: bytes, said: str
) -> None:
    (runtime.workspace / "a").write_bytes(b"abcdefghij")
    async with http.get(RAW, params={"path": "a"}, headers={"Range": wanted}) as response:
        assert response.status == 206
        assert await response.read() == part
        assert response.headers["Content-Range"] == said


async def test_a_range_behind_the_end_is_refused(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    (runtime.workspace / "a").write_bytes(b"abc")
    async with http.get(RAW, params={"path": "a"}, headers={"Range": "bytes=3-"}) as response:
        assert (await refused(response, 416))["code"] == "VALIDATION_FAILED"
        assert response.headers["Content-Range"] == "bytes */3"


async def test_who_has_the_file_already_gets_nothing(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    path = runtime.workspace / "a"
    path.write_bytes(b"abc")
    async with http.get(RAW, params={"path": "a"}) as response:
        etag, modified = response.headers["ETag"], response.headers["Last-Modified"]
    for headers in ({"If-None-Match": f'"x", {etag}'}, {"If-Modified-Since": modified}):
        async with http.get(RAW, params={"path": "a"}, headers=headers) as response:
            assert (response.status, await response.read()) == (304, b"")
    for condition, status in ((etag, 206), (modified, 206), ('"other"', 200)):
        headers = {"If-Range": condition, "Range": "bytes=1-"}
        async with http.get(RAW, params={"path": "a"}, headers=headers) as response:
            assert response.status == status
    path.write_bytes(b"abcd")
    async with http.get(RAW, params={"path": "a"}, headers={"If-None-Match": etag}) as response:
        assert response.status == 200


async def test_what_the_kernel_makes_up_comes_whole(http: aiohttp.ClientSession) -> None:
    async with http.get(RAW, params={"path": "/proc/version"}) as response:
        assert (await response.read()).startswith(b"Linux")


async def test_what_is_no_file_is_refused(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    os.mkfifo(runtime.workspace / "fifo")
    for path, status, code in (
        ("missing", 404, "FILE_NOT_FOUND"),
        (".", 400, "IS_DIRECTORY"),
        ("fifo", 400, "VALIDATION_FAILED"),
        ("", 400, "VALIDATION_FAILED"),
        ("a\0b", 400, "VALIDATION_FAILED"),
        ("/proc/self/mem", 403, "PERMISSION_DENIED"),
    ):
        for method, body in (("GET", None), ("PUT", b"x")):
            if (method, path) == ("PUT", "missing"):
                continue
            async with http.request(method, RAW, params={"path": path}, data=body) as response:
                assert (await refused(response, status))["code"] == code


async def test_a_file_that_shrinks_while_it_is_sent_is_not_taken_for_whole(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    path = runtime.workspace / "shrinking"
    path.write_bytes(bytes(64 << 20))
    async with http.get(RAW, params={"path": "shrinking"}) as response:
        await response.content.readexactly(1)
        os.truncate(path, 1)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_a_client_that_leaves_in_the_middle_frees_everything(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    (runtime.workspace / "large").write_bytes(bytes(64 << 20))
    before = runtime.descriptors()
    async with http.get(RAW, params={"path": "large"}) as response:
        await response.content.readexactly(1)
        response.close()
    await soon(lambda: runtime.descriptors() <= before)


async def test_a_body_becomes_the_file(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    data = os.urandom(3 << 20)
    digest = hashlib.sha256(data).hexdigest()
    params = {"path": "new/sub/a.bin", "sha256": digest.upper(), "mode": "640"}
    async with http.put(RAW, params=params, data=pieces(data)) as response:
        found = await response.json()
    assert found.pop("timestamp")
    assert found == {"success": True, "path": "new/sub/a.bin", "size": len(data), "sha256": digest}
    path = runtime.workspace / "new/sub/a.bin"
    assert path.read_bytes() == data
    assert path.stat().st_mode & 0o7777 == 0o640


async def test_a_wrong_digest_changes_nothing_and_tells_both(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    (runtime.workspace / "kept").write_text("old")
    params = {"path": "kept", "sha256": "0" * 64}
    async with http.put(RAW, params=params, data=b"new") as response:
        found = await refused(response, 400)
    assert found["code"] == "VALIDATION_FAILED"
    assert found["context"]["expected"] == "0" * 64
    assert found["context"]["actual"] == hashlib.sha256(b"new").hexdigest()
    assert list_of(runtime.workspace) == {"kept": b"old"}


@pytest.mark.parametrize("query", [{"sha256": "xyz"}, {"mode": "999"}, {"createOnly": "perhaps"}])
async def test_a_query_that_makes_no_sense_is_refused(
    http: aiohttp.ClientSession, query: dict[str, str]
) -> None:
    async with http.put(RAW, params={"path": "a", **query}, data=b"x") as response:
        assert (await refused(response, 400))["code"] == "VALIDATION_FAILED"


@pytest.mark.parametrize("query", ["path=%FF", "path=%ED%B3%BF", "path=a&sessionId=%80"])
async def test_a_path_that_is_not_utf_8_is_not_taken_for_another_one(
    http: aiohttp.ClientSession, runtime: Runtime, query: str
) -> None:
    for method in ("GET", "PUT"):
        url = URL(f"{runtime.url}{RAW}?{query}", encoded=True)
        async with http.request(method, url) as response:
            assert (await refused(response, 400))["code"] == "VALIDATION_FAILED"
    assert list_of(runtime.workspace) == {}


async def test_create_only_overwrites_nothing(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    for status in (200, 409):
        async with http.put(RAW, params={"path": "once", "createOnly": "true"}, data=b"x") as response:
            assert response.status == status
    assert list_of(runtime.workspace) == {"once": b"x"}


async def test_of_an_upload_that_breaks_off_nothing_is_left(runtime: Runtime) -> None:
    (runtime.workspace / "kept").write_text("old")
    before = runtime.descriptors()
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(
        b"PUT /api/files/raw?path=kept HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
    )
    writer.write(bytes(4 << 20))
    await writer.drain()
    await soon(lambda: runtime.descriptors() > before + 1)
    writer.close()
    await soon(lambda: runtime.descriptors() <= before)
    assert list_of(runtime.workspace) == {"kept": b"old"}
    assert await reader.read() == b""


async def test_curls_expectation_is_met(runtime: Runtime) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(
        b"PUT /api/files/raw?path=expected HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
        b"Expect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"ok")
    assert b"200 OK" in await reader.read()
    writer.close()
    assert (runtime.workspace / "expected").read_bytes() == b"ok"


async def test_a_body_that_is_no_http_is_refused(runtime: Runtime) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(
        b"PUT /api/files/raw?path=bad HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\nzzz\r\n"
    )
    assert (await reader.read(12)).endswith(b" 400")
    writer.close()
    await soon(lambda: list_of(runtime.workspace) == {})


async def test_more_than_64_transfers_are_refused_with_the_number(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    head = b"PUT /api/files/raw?path=many HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
    before = runtime.descriptors()
    open_ones: list[socket.socket] = []
    try:
        for _ in range(64):
            open_ones.append(socket.create_connection(("127.0.0.1", runtime.port)))
            open_ones[-1].sendall(head)
        await soon(lambda: runtime.descriptors() >= before + 3 * 64)
        async with http.put(RAW, params={"path": "one-more"}, data=b"x") as response:
            found = await refused(response, 409)
        assert found["code"] == "RESOURCE_BUSY"
        assert "64 file transfers" in found["message"]
    finally:
        for each in open_ones:
            each.close()
    await soon(lambda: runtime.descriptors() <= before + 1)


async def test_a_large_file_takes_no_memory(start: Callable[..., Runtime]) -> None:
    runtime = start()
    size = 256 << 20
    async with aiohttp.ClientSession(runtime.url) as http:
        async with http.put(RAW, params={"path": "a"}, data=pieces(b"x")) as response:
            assert response.status == 200
        before = runtime.memory("VmHWM")
        body = pieces(bytes(1 << 20), times=256)
        async with http.put(RAW, params={"path": "large"}, data=body) as response:
            assert (await response.json())["size"] == size
        async with http.get(RAW, params={"path": "large"}) as response:
            received = 0
            async for piece in response.content.iter_any():
                received += len(piece)
    assert received == size
    assert runtime.memory("VmHWM") - before <= 32


async def pieces(data: bytes, *, times: int = 1) -> AsyncIterator[bytes]:
    for _ in range(times):
        for start in range(0, len(data), 1 << 20):
            yield data[start : start + (1 << 20)]


def list_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}
