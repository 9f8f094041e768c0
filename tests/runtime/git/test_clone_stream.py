"""Cloning with progress: `/api/git/checkout/stream`."""

import json
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.git_server import PASSWORD, USER, GitServer, names

Json = dict[str, Any]


async def events(http: aiohttp.ClientSession, **fields: Any) -> list[Json]:
    async with http.post("/api/git/checkout/stream", json=fields) as response:
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"] == "text/event-stream"
        text = (await response.read()).decode("ascii")
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line.startswith("data")]


async def test_progress_comes_between_start_and_complete(
    http: aiohttp.ClientSession, server: GitServer, target: Path
) -> None:
    url = f"{server.url}/project.git"
    found = await events(http, repoUrl=url, targetDir=str(target))
    assert [event["type"] for event in (found[0], found[-1])] == ["start", "complete"]
    assert (found[0]["repoUrl"], found[0]["targetDir"]) == (url, str(target))
    assert (found[-1]["branch"], found[-1]["repoUrl"]) == ("main", url)
    middle = found[1:-1]
    assert {event["type"] for event in middle} == {"progress"}
    done = [event for event in middle if event.get("phase") == "Receiving objects"]
    assert done[-1]["percent"] == 100
    assert done[-1]["current"] == done[-1]["total"]
    assert all(event["timestamp"].endswith("Z") for event in found)


async def test_a_failure_is_the_last_event_with_its_code_and_without_secrets(
    http: aiohttp.ClientSession, server: GitServer, target: Path
) -> None:
    server.private = True
    url = server.url.replace("://", f"://{USER}:{PASSWORD}@") + "/project.git"
    found = await events(http, repoUrl=url, targetDir=str(target), branch="nope")
    last = found[-1]
    assert (last["type"], last["code"], last["httpStatus"]) == ("error", "GIT_BRANCH_NOT_FOUND", 404)
    assert last["error"] == last["message"]
    assert last["context"]["branch"] == "nope"
    assert PASSWORD not in str(found)
    assert names(target) is None


async def test_what_is_wrong_with_the_request_is_an_ordinary_error(http: aiohttp.ClientSession) -> None:
    async with http.post("/api/git/checkout/stream", json={"repoUrl": "--help"}) as response:
        assert (response.status, (await response.json())["code"]) == (400, "INVALID_GIT_URL")


async def test_text_is_masked_when_a_reply_echoes_it(
    http: aiohttp.ClientSession, server: GitServer, target: Path
) -> None:
    server.private = True
    url = server.url.replace("://", f"://{USER}:{PASSWORD}@") + "/project.git"
    found = await events(http, repoUrl=url, targetDir=str(target))
    assert found[-1]["type"] == "complete"
    assert PASSWORD not in str(found[:-1])
