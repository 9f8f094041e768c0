"""Lines found by what is in them."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime, soon

Json = dict[str, Any]

_HANGS = "(a+)+$"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/one.py").write_text("import os\n\ndef Find():\n    return 'TODO: später'\n# TODO\n")
    (tmp_path / "two.txt").write_text("todo\r\nnothing\na.b\naxb\n")
    (tmp_path / "binary").write_bytes(b"TODO\0TODO")
    (tmp_path / ".hidden").write_text("TODO\n")
    (tmp_path / "fifo").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


async def grepped(http: aiohttp.ClientSession, root: Path, pattern: str, **fields: Any) -> Json:
    body = {"path": str(root), "pattern": pattern, **fields}
    async with http.post("/api/files/grep", json=body) as response:
        answer: Json = await response.json()
        assert response.status == 200, answer
        assert answer["count"] == len(answer["matches"])
        return answer


def places(answer: Json) -> list[tuple[str, int]]:
    return sorted((each["relativePath"], each["line"]) for each in answer["matches"])


async def test_each_line_that_matches_is_told_once(http: aiohttp.ClientSession, root: Path) -> None:
    answer = await grepped(http, root, "TODO")
    assert places(answer) == [("src/one.py", 4), ("src/one.py", 5)]
    assert answer["matches"][0] == {
        "absolutePath": f"{root}/src/one.py",
        "relativePath": "src/one.py",
        "line": 4,
        "column": 13,
        "length": 4,
        "text": "    return 'TODO: später'",
    }
    assert (answer["filesMatched"], answer["filesSearched"], answer["binarySkipped"]) == (1, 2, 1)
    assert answer["truncated"] == []


async def test_case_and_literal_text(http: aiohttp.ClientSession, root: Path) -> None:
    assert len(places(await grepped(http, root, "todo", caseSensitive=False))) == 3
    assert places(await grepped(http, root, "a.b")) == [("two.txt", 3), ("two.txt", 4)]
    assert places(await grepped(http, root, "a.b", literal=True)) == [("two.txt", 3)]
    assert places(await grepped(http, root, "A.B", literal=True, caseSensitive=False)) == [("two.txt", 3)]
    assert places(await grepped(http, root, "^todo$")) == [("two.txt", 1)]
    assert places(await grepped(http, root, "sp\\wter")) == [("src/one.py", 4)]


async def test_context_comes_with_a_match(http: aiohttp.ClientSession, root: Path) -> None:
    answer = await grepped(http, root, "TODO", before=2, after=1)
    first, second = answer["matches"]
    assert (first["before"], first["after"]) == (["", "def Find():"], ["# TODO"])
    assert (second["before"], second["after"]) == (["def Find():", "    return 'TODO: später'"], [])


async def test_files_are_chosen(http: aiohttp.ClientSession, root: Path) -> None:
    assert places(await grepped(http, root, "a", include=["*.{txt,md}"])) == [("two.txt", 3), ("two.txt", 4)]
    assert (await grepped(http, root, "TODO", exclude=["src/"]))["filesSearched"] == 1
    assert (".hidden", 1) in places(await grepped(http, root, "TODO", includeHidden=True))
    answer = await grepped(http, root / "two.txt", "nothing")
    assert (answer["matches"][0]["relativePath"], answer["matches"][0]["line"]) == ("two.txt", 2)
    (root / ".gitignore").write_text("*.py\n")
    assert places(await grepped(http, root, "TODO")) == []
    assert len(places(await grepped(http, root, "TODO", gitignore=False))) == 2


async def test_results_are_bounded_and_say_so(http: aiohttp.ClientSession, root: Path) -> None:
    for number in range(5):
        (root / f"many{number}").write_text("needle\n" * 20)
    answer = await grepped(http, root, "needle", limit=30)
    assert (answer["count"], answer["truncated"]) == (30, ["limit"])
    answer = await grepped(http, root, "needle", maxFiles=2)
    assert (answer["filesMatched"], answer["truncated"]) == (2, ["files"])
    answer = await grepped(http, root, "needle", limit=100, maxFiles=5)
    assert (answer["count"], answer["truncated"]) == (100, [])
    answer = await grepped(http, root, "needle", maxFileSize=100)
    assert (answer["count"], answer["largeSkipped"]) == (0, 5)


async def test_long_lines_are_shown_around_the_match(http: aiohttp.ClientSession, root: Path) -> None:
    (root / "minified.js").write_text("x" * 300_000 + "needle" + "y" * 300_000 + "\n")
    (match,) = (await grepped(http, root, "needle", maxLineLength=100))["matches"]
    assert (match["column"], len(match["text"])) == (300_001, 100)
    assert match["text"].index("needle") + match["textStartsAt"] == match["column"]
    (match,) = (await grepped(http, root, "y+", include=["*.js"], maxLineLength=100))["matches"]
    assert match["text"] == "y" * 100


async def test_a_reply_is_bounded_in_size(http: aiohttp.ClientSession, root: Path) -> None:
    (root / "long").write_text(("needle" + "x" * 9000 + "\n") * 800)
    answer = await grepped(http, root, "needle", limit=10_000, maxLineLength=10_000)
    assert answer["truncated"] == ["size"]
    assert 300 < answer["count"] < 500


async def test_a_hostile_expression_neither_hangs_the_runtime_nor_outlives_its_time(
    http: aiohttp.ClientSession, runtime: Runtime, root: Path
) -> None:
    (root / "a-first").write_text("aaa\n")
    (root / "trap").write_text("a" * 60 + "!\n")
    search = asyncio.create_task(grepped(http, root, _HANGS, timeoutMs=300, include=["a-first", "trap"]))
    await soon(lambda: any("search-worker" in line for line in runtime.descendants().values()))
    async with http.get("/api/ping") as response:
        assert response.status == 200
    answer = await search
    assert answer["truncated"] == ["time"]
    assert {each["relativePath"] for each in answer["matches"]} <= {"a-first"}
    assert runtime.descendants() == {}


async def test_a_line_of_many_megabytes_costs_the_runtime_nothing(
    http: aiohttp.ClientSession, runtime: Runtime, root: Path
) -> None:
    (root / "one-line").write_bytes(b"ab" * (30 << 20))
    before = runtime.memory()
    await grepped(http, root, "(?:a|b)*$", maxFileSize=64 << 20, timeoutMs=20_000, include=["one*"])
    assert runtime.memory() - before < 16


async def test_a_client_that_hangs_up_ends_the_search(
    http: aiohttp.ClientSession, runtime: Runtime, root: Path
) -> None:
    (root / "trap").write_text("a" * 60 + "!\n")
    search = asyncio.create_task(grepped(http, root, _HANGS, timeoutMs=60_000))
    await soon(lambda: any("search-worker" in line for line in runtime.descendants().values()))
    search.cancel()
    await soon(lambda: runtime.descendants() == {})


async def test_so_many_searches_run_at_once(
    http: aiohttp.ClientSession, runtime: Runtime, root: Path
) -> None:
    (root / "trap").write_text("a" * 60 + "!\n")
    searches = [asyncio.create_task(grepped(http, root, _HANGS, timeoutMs=60_000)) for _ in range(4)]
    await soon(lambda: len(runtime.descendants()) == 4)
    async with http.post("/api/files/grep", json={"path": str(root), "pattern": "x"}) as response:
        body = await response.json()
        assert (response.status, body["code"]) == (409, "RESOURCE_BUSY")
    for each in searches:
        each.cancel()
    await soon(lambda: runtime.descendants() == {})
    body = {"path": str(root), "pattern": "x", "include": ["nothing"]}
    while (await http.post("/api/files/grep", json=body)).status == 409:
        pass


async def test_a_worker_that_somebody_ends_is_told_with_how(
    http: aiohttp.ClientSession, runtime: Runtime, root: Path
) -> None:
    (root / "trap").write_text("a" * 60 + "!\n")
    body = {"path": str(root), "pattern": _HANGS, "timeoutMs": 60_000}
    search = asyncio.create_task(http.post("/api/files/grep", json=body))
    await soon(lambda: any("search-worker" in line for line in runtime.descendants().values()))
    (pid,) = runtime.descendants()
    os.kill(pid, signal.SIGTERM)
    async with await search as response:
        found = await response.json()
    assert (response.status, found["code"]) == (500, "FILESYSTEM_ERROR")
    assert found["context"]["path"] == str(root)
    assert found["context"]["exitCode"] == 128 + signal.SIGTERM


async def test_the_worker_has_nothing_of_the_runtimes_environment(
    http: aiohttp.ClientSession, runtime: Runtime, root: Path
) -> None:
    (root / "trap").write_text("a" * 60 + "!\n")
    search = asyncio.create_task(grepped(http, root, _HANGS, timeoutMs=60_000))
    await soon(lambda: any("search-worker" in line for line in runtime.descendants().values()))
    (pid,) = runtime.descendants()
    environ = environment_of(pid)
    search.cancel()
    assert [
        each for each in environ.split(b"\0") if each and not each.startswith(b"SANDPOD_COMMAND_ID=")
    ] == []


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"pattern": "("}, 400, "VALIDATION_FAILED"),
        ({"pattern": "(" * 2000 + ")" * 2000}, 400, "VALIDATION_FAILED"),
        ({"pattern": "a{99999999999}"}, 400, "VALIDATION_FAILED"),
        ({"pattern": "a" * 5000}, 400, "VALIDATION_FAILED"),
        ({"path": "/no/such"}, 404, "FILE_NOT_FOUND"),
        ({"include": ["["]}, 400, "VALIDATION_FAILED"),
        ({"before": 51}, 400, "VALIDATION_FAILED"),
        ({"timeoutMs": 0}, 400, "VALIDATION_FAILED"),
        ({"sessionId": " "}, 400, "VALIDATION_FAILED"),
    ],
)
async def test_bad_requests_are_told_so(
    http: aiohttp.ClientSession, fields: Json, status: int, code: str
) -> None:
    asked = {"path": "/etc/hosts", "pattern": "x", **fields}
    async with http.post("/api/files/grep", json=asked) as response:
        body = await response.json()
        assert (response.status, body["code"]) == (status, code), body
