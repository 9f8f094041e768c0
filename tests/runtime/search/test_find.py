"""Files found by their names."""

import os
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime

Json = dict[str, Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.py", "b.txt", "src/a.py", "src/deep/er/c.py", ".hidden/a.py", "src/.dot.py", "node/x.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "link.py").symlink_to("a.py")
    os.mkfifo(tmp_path / "fifo.py")
    return tmp_path


async def found(http: aiohttp.ClientSession, root: Path | str, pattern: str, **fields: Any) -> Json:
    body = {"path": str(root), "pattern": pattern, **fields}
    async with http.post("/api/files/find", json=body) as response:
        answer: Json = await response.json()
        assert response.status == 200, answer
        assert answer["count"] == len(answer["files"])
        return answer


def names(answer: Json) -> list[str]:
    return sorted(each["relativePath"] for each in answer["files"])


async def test_a_name_is_looked_for_everywhere_below(http: aiohttp.ClientSession, root: Path) -> None:
    answer = await found(http, root, "*.py", type="file")
    assert names(answer) == ["a.py", "node/x.py", "src/a.py", "src/deep/er/c.py"]
    assert (answer["truncated"], answer["unreadable"]) == ([], 0)
    one = next(each for each in answer["files"] if each["relativePath"] == "src/a.py")
    assert (one["name"], one["absolutePath"], one["size"]) == ("a.py", f"{root}/src/a.py", 8)
    assert one["modifiedAt"].endswith("Z")


@pytest.mark.parametrize("given", ["{root}/.", "{root}//./src/..//", "{root}/"])
async def test_absolute_paths_are_tidy(http: aiohttp.ClientSession, root: Path, given: str) -> None:
    answer = await found(http, given.format(root=root), "b.txt")
    (one,) = answer["files"]
    assert one["absolutePath"] in (f"{root}/b.txt", f"{root}/src/../b.txt")


async def test_a_pattern_with_a_slash_is_a_path(http: aiohttp.ClientSession, root: Path) -> None:
    assert names(await found(http, root, "src/*.py")) == ["src/a.py"]
    assert names(await found(http, root, "src/**/*.py")) == ["src/a.py", "src/deep/er/c.py"]
    assert names(await found(http, root, "{src,node}/?.{py,txt}")) == ["node/x.py", "src/a.py"]
    assert names(await found(http, root, "/[ab].*")) == ["a.py", "b.txt"]


async def test_kinds_are_told_apart(http: aiohttp.ClientSession, root: Path) -> None:
    assert names(await found(http, root, "*", type="directory")) == ["node", "src", "src/deep", "src/deep/er"]
    assert names(await found(http, root, "*", type="symlink")) == ["link.py"]
    assert names(await found(http, root, "*", type="other")) == ["fifo.py"]


async def test_hidden_files_are_found_when_wanted(http: aiohttp.ClientSession, root: Path) -> None:
    answer = await found(http, root, "*.py", includeHidden=True, type="file")
    assert {".hidden/a.py", "src/.dot.py"} <= set(names(answer))


async def test_what_is_excluded_or_ignored_is_not_found(http: aiohttp.ClientSession, root: Path) -> None:
    assert "node/x.py" not in names(await found(http, root, "*.py", exclude=["node/"]))
    (root / ".gitignore").write_text("deep/\n/a.py\n")
    (root / "src/.gitignore").write_text("!deep/\n")
    answer = await found(http, root, "*.py", type="file", gitignore=True)
    assert names(answer) == ["node/x.py", "src/a.py", "src/deep/er/c.py"]


async def test_depth_and_number_are_bounded(http: aiohttp.ClientSession, root: Path) -> None:
    assert names(await found(http, root, "*.py", maxDepth=1)) == ["a.py", "fifo.py", "link.py"]
    answer = await found(http, root, "*", limit=2)
    assert (answer["count"], answer["truncated"]) == (2, ["limit"])
    count = (await found(http, root, "*"))["count"]
    assert (await found(http, root, "*", limit=count))["truncated"] == []


async def test_results_are_sorted_before_they_are_cut(http: aiohttp.ClientSession, root: Path) -> None:
    for number, name in enumerate(["b.txt", "a.py", "node/x.py"]):
        os.utime(root / name, (2e9 + number, 2e9 + number))
    answer = await found(http, root, "*", type="file", sort="modified", limit=2)
    assert [each["relativePath"] for each in answer["files"]] == ["node/x.py", "a.py"]
    assert answer["truncated"] == ["limit"]
    by_name = await found(http, root, "*", sort="name")
    assert [each["relativePath"] for each in by_name["files"]] == names(by_name)
    by_size = await found(http, root, "*", type="file", sort="size")
    assert by_size["files"][0]["relativePath"] == "src/deep/er/c.py"


async def test_names_that_are_not_utf_8_are_shown_as_well_as_possible(
    http: aiohttp.ClientSession, root: Path
) -> None:
    (root / os.fsdecode(b"x\xff")).write_text("")
    assert names(await found(http, root, "x?")) == ["x\ufffd"]


async def test_a_relative_path_starts_from_the_workspace(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    (runtime.workspace / "to-find").write_text("")
    assert "to-find" in names(await found(http, ".", "to-*"))
    (runtime.workspace / "to-find").unlink()


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"path": "/no/such/place"}, 404, "FILE_NOT_FOUND"),
        ({"path": "/etc/passwd"}, 400, "NOT_DIRECTORY"),
        ({"path": "a\0b"}, 400, "VALIDATION_FAILED"),
        ({"pattern": "["}, 400, "VALIDATION_FAILED"),
        ({"pattern": "{a,b}" * 20}, 400, "VALIDATION_FAILED"),
        ({"pattern": None}, 400, "VALIDATION_FAILED"),
        ({"limit": 0}, 400, "VALIDATION_FAILED"),
        ({"exclude": ["a[b"]}, 400, "VALIDATION_FAILED"),
        ({"exclude": ["ä" * 1000] * 90}, 400, "VALIDATION_FAILED"),
    ],
)
async def test_bad_requests_are_told_so(
    http: aiohttp.ClientSession, fields: Json, status: int, code: str
) -> None:
    async with http.post("/api/files/find", json={"path": "/etc", "pattern": "*", **fields}) as response:
        body = await response.json()
        assert (response.status, body["code"]) == (status, code), body


async def test_a_relative_path_starts_where_the_session_is(http: aiohttp.ClientSession, root: Path) -> None:
    async with http.post("/api/session/create", json={"id": "searching", "cwd": str(root)}) as response:
        assert response.status == 200
    async with http.post("/api/execute", json={"command": "cd src", "sessionId": "searching"}) as response:
        assert response.status == 200
    assert names(await found(http, ".", "a.*", sessionId="searching")) == ["a.py"]
    async with http.get("/api/files/archive", params={"path": "deep", "sessionId": "searching"}) as response:
        assert response.status == 200
    async with http.post("/api/session/delete", json={"sessionId": "searching"}) as response:
        assert response.status == 200
