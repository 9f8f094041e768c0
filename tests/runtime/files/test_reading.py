"""`/api/read` and `/api/read/stream`."""

import base64
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime

Call = Callable[..., Any]
LARGEST = 32 << 20


async def events(http: aiohttp.ClientSession, path: str) -> list[dict[str, Any]]:
    async with http.post("/api/read/stream", json={"path": path}) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        text = await response.text()
    return [json.loads(block.removeprefix("data: ")) for block in text.split("\n\n") if block]


async def test_a_text_is_read_as_it_is(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "a.txt").write_text("grüße\n")
    found = await call("read", path="a.txt")
    assert found.pop("timestamp")
    assert found == {
        "success": True,
        "path": "a.txt",
        "content": "grüße\n",
        "encoding": "utf-8",
        "isBinary": False,
        "mimeType": "text/plain",
        "size": 8,
    }


async def test_a_picture_comes_as_base64_unless_text_is_wanted(call: Call, runtime: Runtime) -> None:
    data = b"\x89PNG\r\n\x1a\n\xff"
    (runtime.workspace / "a.png").write_bytes(data)
    found = await call("read", path="a.png")
    assert base64.b64decode(found["content"]) == data
    assert (found["encoding"], found["isBinary"], found["mimeType"]) == ("base64", True, "image/png")
    for encoding in ("utf-8", "utf8"):
        found = await call("read", path="a.png", encoding=encoding)
        assert found["content"] == data.decode(errors="replace")
        assert (found["encoding"], found["isBinary"]) == ("utf-8", False)


async def test_an_unknown_encoding_is_like_none(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "a.json").write_text("{}")
    assert (await call("read", path="a.json", encoding="latin1"))["encoding"] == "utf-8"
    assert (await call("read", path="a.json", encoding="base64"))["content"] == "e30="


async def test_what_a_link_leads_to_is_looked_at(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "program").write_text("#!/bin/sh\n")
    (runtime.workspace / "link").symlink_to("program")
    assert (await call("read", path="link"))["mimeType"] == "text/x-shellscript"


async def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not(
    call: Call, runtime: Runtime
) -> None:
    path = runtime.workspace / "large"
    data = bytes(range(256)) * (LARGEST // 256)
    path.write_bytes(data)
    found = await call("read", path="large")
    assert base64.b64decode(found["content"]) == data
    with path.open("ab") as file:
        file.write(b"!")
    found = await call("read", path="large", status=413)
    assert found["code"] == "FILE_TOO_LARGE"
    assert found["context"]["maxSize"] == LARGEST
    assert found["context"]["actualSize"] == LARGEST + 1
    part = await call("read", path="large", offset=LARGEST - 1, encoding="base64")
    assert base64.b64decode(part["content"]) == data[-1:] + b"!"
    assert (part["offset"], part["length"], part["size"]) == (LARGEST - 1, 2, LARGEST + 1)
    path.unlink()


async def test_a_large_text_keeps_the_characters_that_lie_between_two_pieces(
    call: Call, runtime: Runtime
) -> None:
    text = "x" + "日本\n" * 200_000
    (runtime.workspace / "large.txt").write_text(text)
    assert (await call("read", path="large.txt"))["content"] == text


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"offset": 2}, "cdef"),
        ({"offset": 2, "length": 2}, "cd"),
        ({"length": 1}, "a"),
        ({"length": 0}, ""),
        ({"offset": 99, "length": 99}, ""),
    ],
)
async def test_bytes_can_be_picked(
    call: Call, runtime: Runtime, fields: dict[str, int], content: str
) -> None:
    (runtime.workspace / "a.txt").write_text("abcdef")
    found = await call("read", path="a.txt", **fields)
    assert (found["content"], found["length"], found["size"]) == (content, len(content), 6)


@pytest.mark.parametrize(
    ("fields", "content", "last"),
    [
        ({"startLine": 2}, "b\nc", 3),
        ({"endLine": 2}, "a\nb\n", 2),
        ({"startLine": 2, "endLine": 2}, "b\n", 2),
        ({"startLine": 3, "endLine": 9}, "c", 3),
        ({"startLine": 9}, "", 3),
    ],
)
async def test_lines_can_be_picked(
    call: Call, runtime: Runtime, fields: dict[str, int], content: str, last: int
) -> None:
    (runtime.workspace / "a.txt").write_text("a\nb\nc")
    found = await call("read", path="a.txt", **fields)
    assert (found["content"], found["endLine"], found["totalLines"]) == (content, last, 3)


@pytest.mark.parametrize(
    "fields",
    [
        {"startLine": 0},
        {"offset": -1},
        {"length": 1.5},
        {"startLine": 3, "endLine": 2},
        {"startLine": 1, "offset": 1},
        {"startLine": 1, "charset": "utf-16"},
        {"charset": "klingon"},
    ],
)
async def test_ranges_that_make_no_sense_are_refused(call: Call, fields: dict[str, Any]) -> None:
    found = await call("read", path="a.txt", status=400, **fields)
    assert found["code"] == "VALIDATION_FAILED"


async def test_other_charsets_are_decoded(call: Call, runtime: Runtime) -> None:
    for charset in ("latin-1", "utf-16"):
        (runtime.workspace / "a.txt").write_text("grüße", encoding=charset)
        assert (await call("read", path="a.txt", charset=charset))["content"] == "grüße"


async def test_utf_16_without_its_mark_is_refused(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "a.txt").write_text("plain")
    found = await call("read", path="a.txt", charset="utf-16", status=400)
    assert found["context"]["validationErrors"][0]["field"] == "charset"


async def test_a_missing_path_and_a_directory_are_not_found(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "directory").mkdir()
    (runtime.workspace / "dangling").symlink_to("nowhere")
    for path in ("missing", "directory", "dangling", "directory/missing"):
        found = await call("read", path=path, status=404)
        assert found["code"] == "FILE_NOT_FOUND"
        assert "not found" in found["message"]
        assert found["context"] == {"path": path, "operation": "file.read"}
        assert found["operation"] == "file.read"


async def test_what_the_kernel_makes_up_can_be_read(call: Call, http: aiohttp.ClientSession) -> None:
    found = await call("read", path="/proc/version")
    assert found["content"].startswith("Linux")
    [_, *chunks, complete] = await events(http, "/proc/version")
    assert complete == {"type": "complete", "bytesRead": len(found["content"])}
    assert "".join(chunk["data"] for chunk in chunks) == found["content"]


async def test_a_stream_has_metadata_chunks_and_an_end(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    data = bytes(range(256)) * 600
    (runtime.workspace / "a.bin").write_bytes(data)
    [metadata, *chunks, complete] = await events(http, "a.bin")
    assert metadata == {
        "type": "metadata",
        "mimeType": "application/octet-stream",
        "size": len(data),
        "isBinary": True,
        "encoding": "base64",
    }
    decoded = [base64.b64decode(chunk["data"]) for chunk in chunks]
    assert [len(each) for each in decoded] == [65_535, 65_535, len(data) - 2 * 65_535]
    assert b"".join(decoded) == data
    assert complete == {"type": "complete", "bytesRead": len(data)}


async def test_a_streamed_text_never_splits_a_character(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    text = "é" * 100_000
    (runtime.workspace / "a.txt").write_text(text)
    [_, *chunks, complete] = await events(http, "a.txt")
    assert "".join(chunk["data"] for chunk in chunks) == text
    assert len(chunks) > 1
    assert complete["bytesRead"] == 200_000


async def test_an_empty_file_is_a_stream_without_chunks(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    (runtime.workspace / "empty").touch()
    [metadata, complete] = await events(http, "empty")
    assert (metadata["isBinary"], complete["bytesRead"]) == (False, 0)


@pytest.mark.parametrize("path", ["missing", "", "a\0b", "/dev/zero", "/"])
async def test_what_goes_wrong_is_an_event_of_the_stream(http: aiohttp.ClientSession, path: str) -> None:
    [event] = await events(http, path)
    assert set(event) == {"type", "error"}
    assert event["type"] == "error"
