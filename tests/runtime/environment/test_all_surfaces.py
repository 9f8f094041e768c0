"""A change of the environment reaches every surface: what starts afterwards, and sessions that live."""

from collections.abc import Callable
from typing import Any

import aiohttp

Json = dict[str, Any]
Execute = Callable[..., Any]


async def post(http: aiohttp.ClientSession, path: str, **fields: Any) -> Json:
    async with http.post(path, json=fields) as response:
        found: Json = await response.json()
        assert response.status == 200, found
        return found


async def test_a_living_session_takes_changes_over(http: aiohttp.ClientSession, execute: Execute) -> None:
    await post(http, "/api/session/create", id="living")
    try:
        assert (await execute("echo ${COLOUR-unset}", sessionId="living"))["stdout"] == "unset\n"
        await post(http, "/api/environment", set={"COLOUR": "dark 'blue'\n"})
        found = await execute('printf %s "$COLOUR"; env | grep -c ^COLOUR', sessionId="living")
        assert found["stdout"] == "dark 'blue'\n1\n"
        await post(http, "/api/environment", unset=["COLOUR"])
        assert (await execute("echo ${COLOUR-unset}", sessionId="living"))["stdout"] == "unset\n"
    finally:
        await post(http, "/api/session/delete", sessionId="living")


async def test_a_session_without_path_gets_the_usual_one(
    start: Callable[..., Any],
) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http:
        await post(http, "/api/session/create", id="living")
        await post(http, "/api/environment", unset=["PATH"])
        found = await post(http, "/api/execute", sessionId="living", command="ls / >/dev/null && echo fine")
        assert found["stdout"] == "fine\n", found


async def test_a_process_starts_with_changes(http: aiohttp.ClientSession) -> None:
    await post(http, "/api/environment", set={"COLOUR": "blue"})
    try:
        process = await post(http, "/api/process/start", command="echo $COLOUR")
        path = f"/api/process/{process['processId']}"
        await post(http, f"{path}/wait", **{"for": "exit"})
        async with http.get(f"{path}/logs") as response:
            assert (await response.json())["stdout"] == "blue\n"
    finally:
        await post(http, "/api/environment", unset=["COLOUR"])


async def test_git_runs_with_changes(http: aiohttp.ClientSession, runtime: Any) -> None:
    place = str(runtime.workspace / "repository")
    names = {f"GIT_{role}_{part}": "ada" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    await post(http, "/api/environment", set=names)
    try:
        await post(http, "/api/git/init", cwd=place)
        await post(http, "/api/git/commit", cwd=place, message="x", allowEmpty=True)
        found = await post(http, "/api/git/log", cwd=place)
        assert found["commits"][0]["author"]["name"] == "ada"
    finally:
        await post(http, "/api/environment", unset=[*names])
        await post(http, "/api/execute", command=f"rm -rf {place}")
