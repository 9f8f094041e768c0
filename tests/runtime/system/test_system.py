"""What a sandbox consists of: `/api/system`, and its statistics."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import Runtime, soon

Json = dict[str, Any]


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


async def system(url: str, query: str = "") -> Json:
    async with aiohttp.ClientSession(url) as http, http.get(f"/api/system{query}") as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_the_system_is_described(runtime: Runtime) -> None:
    found = await system(runtime.url)
    assert found["os"]["id"]
    assert found["kernel"] == os.uname().release
    assert found["architecture"] == os.uname().machine
    assert found["user"]["uid"] == os.geteuid()
    assert 0 < found["cpu"]["limit"] <= found["cpu"]["count"]
    assert 0 < found["memory"]["used"] <= found["memory"]["limit"]
    assert [disk["path"] for disk in found["disks"]] == [str(runtime.workspace), "/"]
    assert found["uptime"] > 0
    tools = {tool["name"]: tool for tool in found["tools"]}
    assert tools["git"]["path"].endswith("/git")
    assert tools["git"]["version"].startswith("2.")
    assert tools["bash"]["version"]


async def test_each_tool_is_asked_once_and_again_when_it_was_replaced(
    start: Callable[..., Runtime], tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    program(tmp_path, "git", f"echo x >> {asked}; echo git version 9.8.7")
    program(tmp_path, "node", "echo 'no such option' >&2; exit 1")
    (tmp_path / "jq").mkdir()
    runtime = start(environ={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    found = await asyncio.gather(*(system(runtime.url) for _ in range(4)))
    assert found[0]["tools"] == [
        {"name": "git", "path": f"{tmp_path}/git", "version": "9.8.7"},
        {"name": "node", "path": f"{tmp_path}/node"},
    ]
    assert asked.read_text() == "x\n"
    program(tmp_path, "git", "echo git version 9.8.8 or so")
    assert (await system(runtime.url))["tools"][0]["version"] == "9.8.8"


async def test_tools_are_listed_without_being_asked(start: Callable[..., Runtime], tmp_path: Path) -> None:
    program(tmp_path, "git", f"touch {tmp_path}/asked")
    runtime = start(environ={"PATH": str(tmp_path), "HOME": str(tmp_path)})
    found = await system(runtime.url, "?versions=false")
    assert found["tools"] == [{"name": "git", "path": f"{tmp_path}/git"}]
    assert not (runtime.workspace / "asked").exists()


async def test_a_tool_that_hangs_or_floods_holds_nobody_for_long(
    start: Callable[..., Runtime], tmp_path: Path
) -> None:
    program(tmp_path, "git", "exec sleep 30.7711")
    program(tmp_path, "node", "while :; do echo v1.2.3 x; done")
    program(tmp_path, "make", "cat; echo Make 4.4.1")
    runtime = start(environ={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)})
    found = await asyncio.wait_for(system(runtime.url), 60)
    versions = {tool["name"]: tool.get("version") for tool in found["tools"]}
    assert (versions["git"], versions["node"], versions["make"]) == (None, None, "4.4.1")
    await soon(lambda: runtime.descendants() == {})


async def test_statistics_are_one_answer(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    async with http.get("/api/system/stats") as response:
        assert response.status == 200
        found = (await response.json())["stats"]
    assert found["cpu"]["used"] >= 0
    assert 0 < found["memory"]["used"] <= found["memory"]["limit"]
    assert found["processes"]["processes"] > 0
    assert len(found["load"]) == 3
    assert found["disks"][0]["path"] == str(runtime.workspace)


async def test_statistics_come_again_and_again(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/system/stats/stream?intervalMs=200") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        events: list[Json] = []
        async for line in response.content:
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
            if len(events) == 3:
                break
    assert [event["type"] for event in events] == ["stats"] * 3
    assert all(event["timestamp"].endswith("Z") and event["stats"]["memory"]["used"] for event in events)


@pytest.mark.parametrize(
    "path",
    [
        "/api/system/stats/stream?intervalMs=1",
        "/api/system/stats/stream?intervalMs=x",
        "/api/system/stats/stream?intervalMs=99999",
        "/api/system?versions=perhaps",
    ],
)
async def test_bad_queries_are_refused(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as response:
        assert (response.status, (await response.json())["code"]) == (400, "VALIDATION_FAILED")


async def test_there_may_be_so_many_streams_and_those_that_leave_make_room(runtime: Runtime) -> None:
    async with aiohttp.ClientSession(runtime.url, connector=aiohttp.TCPConnector(limit=0)) as many:
        streams = [await many.get("/api/system/stats/stream") for _ in range(16)]
        async with many.get("/api/system/stats/stream") as response:
            found = await response.json()
            assert (response.status, found["code"]) == (409, "RESOURCE_BUSY")
            assert "16 streams of statistics" in found["message"]
        for each in streams:
            each.close()
        while True:
            async with many.get("/api/system/stats/stream") as response:
                if response.status == 200:
                    break
