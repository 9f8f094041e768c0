"""`/api/write`, `/api/files/append`, `insert` and `replace`."""

import asyncio
import base64
import os
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime

Call = Callable[..., Any]


async def test_a_write_makes_the_directories_above(call: Call, runtime: Runtime) -> None:
    found = await call("write", path="new/sub/a.txt", content="grüße")
    assert (found["path"], found["size"]) == ("new/sub/a.txt", 7)
    assert (runtime.workspace / "new/sub/a.txt").read_text() == "grüße"


async def test_all_bytes_can_be_written_as_base64(call: Call, runtime: Runtime) -> None:
    data = bytes(range(256))
    await call("write", path="a.bin", content=base64.b64encode(data).decode(), encoding="base64")
    assert (runtime.workspace / "a.bin").read_bytes() == data


@pytest.mark.parametrize("content", ["YQ==\n", "a b", "a-_b", "YQ", "é==="])
async def test_what_is_not_base64_is_refused_and_changes_nothing(
    call: Call, runtime: Runtime, content: str
) -> None:
    (runtime.workspace / "kept").write_text("old")
    for path in ("kept", "notnew/file"):
        found = await call("write", path=path, content=content, encoding="base64", status=400)
        [problem] = found["context"]["validationErrors"]
        assert (problem["field"], problem["code"]) == ("content", "INVALID_BASE64")
    assert (runtime.workspace / "kept").read_text() == "old"
    assert not (runtime.workspace / "notnew").exists()


async def test_a_write_of_a_hundred_megabytes_is_accepted(call: Call, runtime: Runtime) -> None:
    await call("write", path="large", content="x" * (100 << 20))
    assert (runtime.workspace / "large").stat().st_size == 100 << 20
    (runtime.workspace / "large").unlink()


async def test_rights_are_kept_or_set(call: Call, runtime: Runtime) -> None:
    path = runtime.workspace / "script"
    path.touch()
    path.chmod(0o755)
    await call("write", path="script", content="x")
    assert path.stat().st_mode & 0o7777 == 0o755
    await call("write", path="script", content="x", mode="0640")
    assert path.stat().st_mode & 0o7777 == 0o640
    await call("write", path="fresh", content="x", mode=0o600)
    assert (runtime.workspace / "fresh").stat().st_mode & 0o7777 == 0o600


async def test_the_owner_is_kept(call: Call, runtime: Runtime) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = runtime.workspace / "theirs"
    path.touch()
    os.chown(path, 1234, 5678)
    await call("write", path="theirs", content="x")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 5678)


async def test_a_link_stays_one(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "dangling").symlink_to("later/target")
    await call("write", path="dangling", content="x")
    assert (runtime.workspace / "dangling").is_symlink()
    assert (runtime.workspace / "later/target").read_text() == "x"


async def test_create_only_overwrites_nothing(call: Call, runtime: Runtime) -> None:
    await call("write", path="once", content="first", createOnly=True)
    found = await call("write", path="once", content="second", createOnly=True, status=409)
    assert found["code"] == "FILE_EXISTS"
    assert (runtime.workspace / "once").read_text() == "first"


async def test_of_many_that_create_one_wins(http: aiohttp.ClientSession) -> None:
    async def create(number: int) -> int:
        body = {"path": "raced", "content": str(number), "createOnly": True}
        async with http.post("/api/write", json=body) as response:
            return response.status

    statuses = await asyncio.gather(*map(create, range(16)))
    assert sorted(statuses) == [200] + 15 * [409]


async def test_readers_see_the_old_or_the_new_content_and_nothing_between(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    contents = [letter * 300_000 for letter in "ab"]
    (runtime.workspace / "swapped").write_text(contents[0])
    seen: set[str] = set()
    stop = False

    async def watch() -> None:
        while not stop:
            seen.add((runtime.workspace / "swapped").read_text())
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    for round_ in range(20):
        body = {"path": "swapped", "content": contents[round_ % 2]}
        async with http.post("/api/write", json=body) as response:
            assert response.status == 200
    stop = True
    await watching
    assert seen <= set(contents)


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "a"},
        {"path": "a", "content": 5},
        {"content": "x"},
        {"path": "", "content": "x"},
        {"path": "a\0b", "content": "x"},
        {"path": "x" * 4097, "content": "x"},
        {"path": "a", "content": "x", "mode": "rwx"},
        {"path": "a", "content": "€", "charset": "latin-1"},
        {"path": "a", "content": "x", "sessionId": "  "},
    ],
)
async def test_a_write_that_cannot_be_understood_is_refused(call: Call, fields: dict[str, Any]) -> None:
    assert (await call("write", status=400, **fields))["code"] == "VALIDATION_FAILED"


@pytest.mark.parametrize("path", ["directory", "directory/", "newdirectory/", "newdirectory/.."])
async def test_a_directory_is_not_written(call: Call, runtime: Runtime, path: str) -> None:
    (runtime.workspace / "directory").mkdir(exist_ok=True)
    found = await call("write", path=path, content="x", status=400)
    assert found["code"] == "IS_DIRECTORY"
    assert found["context"] == {"path": path, "operation": "file.write"}
    assert not (runtime.workspace / "newdirectory").exists()


async def test_an_append_goes_to_the_end(call: Call, runtime: Runtime) -> None:
    await call("files/append", path="log/new.txt", content="one\n")
    found = await call("files/append", path="log/new.txt", content="dHdv", encoding="base64")
    assert found["size"] == 7
    assert (runtime.workspace / "log/new.txt").read_text() == "one\ntwo"


async def test_appends_at_the_same_time_all_arrive(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    async def append(number: int) -> None:
        body = {"path": "shared.log", "content": f"{number}\n"}
        async with http.post("/api/files/append", json=body) as response:
            assert response.status == 200

    await asyncio.gather(*map(append, range(50)))
    lines = (runtime.workspace / "shared.log").read_text().splitlines()
    assert sorted(map(int, lines)) == list(range(50))


async def test_lines_are_inserted(call: Call, runtime: Runtime) -> None:
    path = runtime.workspace / "a.txt"
    path.write_text("one\nthree")
    found = await call("files/insert", path="a.txt", line=2, content="two")
    assert path.read_text() == "one\ntwo\nthree"
    assert found["totalLines"] == 3
    await call("files/insert", path="a.txt", line=4, content="four\n")
    assert path.read_text() == "one\ntwo\nthree\nfour\n"
    found = await call("files/insert", path="a.txt", line=9, content="x", status=400)
    assert "4 lines" in found["message"]
    assert "at most 5" in found["message"]


async def test_several_texts_are_replaced_at_once(call: Call, runtime: Runtime) -> None:
    path = runtime.workspace / "a.py"
    path.write_text("x = 1\ny = x\n")
    path.chmod(0o755)
    edits = [
        {"old": "x", "new": "z", "all": True},
        {"old": "z = 1\n", "new": "z = 2\n"},
    ]
    found = await call("files/replace", path="a.py", edits=edits)
    assert path.read_text() == "z = 2\ny = z\n"
    assert found["replacements"] == [2, 1]
    assert path.stat().st_mode & 0o777 == 0o755


async def test_when_one_text_does_not_fit_nothing_is_replaced(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "a.py").write_text("if a:\n\tb\nb\n")
    edits = [{"old": "if a", "new": "if c"}, {"old": "    b", "new": "d"}]
    found = await call("files/replace", path="a.py", edits=edits, status=400)
    assert found["code"] == "VALIDATION_FAILED"
    assert found["context"]["edit"] == 1
    assert found["context"]["nearMisses"][0]["line"] == 2
    assert found["context"]["validationErrors"][0]["code"] == "NOT_FOUND"
    found = await call("files/replace", path="a.py", edits=[{"old": "b", "new": "d"}], status=400)
    assert (found["context"]["found"], found["context"]["lines"]) == (2, [2, 3])
    assert "2 times, at lines 2, 3" in found["message"]
    assert (runtime.workspace / "a.py").read_text() == "if a:\n\tb\nb\n"


SENSELESS: list[Any] = [[], [{"old": "", "new": "x"}], [{"old": "x"}], [{}] * 300, "x"]


@pytest.mark.parametrize("edits", SENSELESS)
async def test_edits_that_make_no_sense_are_refused(call: Call, edits: Any) -> None:
    assert (await call("files/replace", path="a", edits=edits, status=400))["code"] == "VALIDATION_FAILED"


async def test_edits_at_the_same_time_are_all_made(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    (runtime.workspace / "many.txt").write_text("".join(f"<{number}>\n" for number in range(30)))
    (runtime.workspace / "other").symlink_to("many.txt")

    async def edit(number: int) -> None:
        edits = [{"old": f"<{number}>", "new": f"[{number}]"}]
        path = ("many.txt", "other")[number % 2]
        async with http.post("/api/files/replace", json={"path": path, "edits": edits}) as response:
            assert response.status == 200

    await asyncio.gather(*map(edit, range(30)))
    assert "<" not in (runtime.workspace / "many.txt").read_text()


async def test_bytes_that_are_no_text_survive_an_edit(call: Call, runtime: Runtime) -> None:
    (runtime.workspace / "a").write_bytes(b"\xff\xfe old \x80")
    await call("files/replace", path="a", edits=[{"old": "old", "new": "neü"}])
    assert (runtime.workspace / "a").read_bytes() == b"\xff\xfe ne\xc3\xbc \x80"


async def test_what_is_too_large_is_not_edited(call: Call, runtime: Runtime) -> None:
    with (runtime.workspace / "large").open("wb") as file:
        file.truncate((32 << 20) + 1)
    edits = [{"old": "a", "new": "b"}]
    for path, fields in (("files/replace", {"edits": edits}), ("files/insert", {"line": 1, "content": "x"})):
        found = await call(path, path="large", status=413, **fields)
        assert found["code"] == "FILE_TOO_LARGE"
        assert found["context"]["maxSize"] == 32 << 20
