"""What watchers see of what is done with files: as much as if a command had done it."""

import json
from collections.abc import Callable
from typing import Any

import aiohttp

from tests.support.runtime import Runtime

Call = Callable[..., Any]


class Watcher:
    def __init__(self, response: aiohttp.ClientResponse, top: str) -> None:
        self._response = response
        self._top = top

    async def until(self, last: str) -> set[tuple[str, str]]:
        """All events until something of this name was seen, which is left out."""
        found: set[tuple[str, str]] = set()
        while line := await self._response.content.readline():
            if not line.startswith(b"data: "):
                continue
            event = json.loads(line[6:])
            path = event.get("path", "").removeprefix(f"{self._top}/")
            if path == last:
                return found
            if event["type"] == "event":
                found.add((event["eventType"], path))
        raise AssertionError("the stream ended")


async def test_watchers_see_creations_and_changes_and_no_drafts(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    (runtime.workspace / "w/d").mkdir(parents=True)
    (runtime.workspace / "w/d/inner").touch()
    top = str(runtime.workspace / "w")
    async with http.post("/api/watch", json={"path": top}) as response:
        watcher = Watcher(response, top)
        await response.content.readline()
        await call("write", path="w/new", content="x")
        await call("mkdir", path="w/1")
        assert await watcher.until("1") == {("create", "new")}
        await call("write", path="w/new", content="y")
        await call("mkdir", path="w/2")
        assert await watcher.until("2") == {("modify", "new")}
        await call("files/copy", sourcePath="w/new", destinationPath="w/copy")
        await call("mkdir", path="w/3")
        assert await watcher.until("3") == {("create", "copy")}
        await call("files/copy", sourcePath="w/new", destinationPath="w/copy")
        await call("mkdir", path="w/4")
        assert await watcher.until("4") == {("modify", "copy")}
        await call("files/copy", sourcePath="w/d", destinationPath="w/e", recursive=True)
        await call("mkdir", path="w/5")
        assert await watcher.until("5") == {("create", "e"), ("create", "e/inner")}
        await call("rename", oldPath="w/new", newPath="w/old")
        await call("mkdir", path="w/6")
        assert await watcher.until("6") == {("move_from", "new"), ("move_to", "old")}
        response.close()


async def test_a_watched_file_is_seen_changing(
    call: Call, http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    path = str(runtime.workspace / "file")
    await call("write", path=path, content="x")
    async with http.post("/api/watch", json={"path": path}) as response:
        await response.content.readline()
        await call("write", path=path, content="y")
        event: dict[str, Any] = {}
        while event.get("type") != "event":
            line = await response.content.readline()
            event = json.loads(line[6:]) if line.startswith(b"data: ") else {}
        assert (event["eventType"], event["path"]) == ("modify", path)
        response.close()
