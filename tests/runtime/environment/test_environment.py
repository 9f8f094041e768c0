"""The environment that all surfaces share: `/api/environment`."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import BIND, TERMINATED, TOKEN, Runtime

Execute = Callable[..., Any]
Json = dict[str, Any]


async def change(http: aiohttp.ClientSession, body: Json, *, status: int = 200) -> Json:
    async with http.post("/api/environment", data=io.BytesIO(json.dumps(body).encode())) as response:
        found: Json = await response.json()
        assert response.status == status, found
        return found


async def shown(http: aiohttp.ClientSession) -> dict[str, str]:
    async with http.get("/api/environment") as response:
        assert response.status == 200
        return (await response.json())["variables"]


@pytest.fixture
async def http(runtime: Runtime, http: aiohttp.ClientSession) -> Any:
    before = await shown(http)
    yield http
    after = await shown(http)
    if added := [name for name in after if name not in before]:
        await change(http, {"unset": added})


async def test_what_is_set_reaches_every_command_from_then_on(
    http: aiohttp.ClientSession, execute: Execute
) -> None:
    found = await change(http, {"set": {"COLOUR": "blue", "EMPTY": ""}})
    assert found["changed"] == ["COLOUR", "EMPTY"]
    assert (await shown(http))["COLOUR"] == "blue"
    assert (await execute('echo "$COLOUR,${EMPTY-unset}"'))["stdout"] == "blue,\n"
    await change(http, {"unset": ["COLOUR", "EMPTY"]})
    assert "COLOUR" not in await shown(http)
    assert (await execute('echo "${COLOUR-unset}"'))["stdout"] == "unset\n"


async def test_a_calls_own_variables_win(http: aiohttp.ClientSession, execute: Execute) -> None:
    await change(http, {"set": {"COLOUR": "blue"}})
    assert (await execute("echo $COLOUR", env={"COLOUR": "red"}))["stdout"] == "red\n"


async def test_what_is_shown_is_what_a_command_gets(http: aiohttp.ClientSession, execute: Execute) -> None:
    await change(http, {"set": {"LINES_OF": "a\nb", "UMLAUT": "ä"}})
    found = await execute("env -0")
    # What the shell itself adds.
    actual = dict(entry.partition("=")[::2] for entry in found["stdout"].split("\0") if entry)
    expected = await shown(http)
    assert {name: actual.get(name) for name in expected if name not in ("SHLVL", "_", "PWD", "OLDPWD")} == {
        name: value for name, value in expected.items() if name not in ("SHLVL", "_", "PWD", "OLDPWD")
    }


async def test_without_path_and_home_programs_are_still_found(
    start: Callable[..., Runtime], tmp_path: Path
) -> None:
    runtime = start(environ={"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"})
    async with aiohttp.ClientSession(runtime.url) as http:
        await change(http, {"set": {"HOME": "/tmp"}, "unset": ["PATH"]})
        found = await shown(http)
        assert (found["HOME"], str(tmp_path) in found["PATH"]) == ("/tmp", False)
        await change(http, {"unset": ["HOME", "USER"]})
        assert (await shown(http))["HOME"] == str(runtime.workspace)
        assert (await shown(http))["USER"]
        async with http.post("/api/execute", json={"command": "ls / >/dev/null && echo fine"}) as response:
            assert (await response.json())["stdout"] == "fine\n"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "set"),
        ({"set": {"": "x"}}, "set."),
        ({"set": {"A=B": "x"}}, "set.A=B"),
        ({"set": {"SANDPOD_BIND_SHA256": "x"}}, "set.SANDPOD_BIND_SHA256"),
        ({"set": {"A": "\0"}}, "set.A"),
        ({"set": {"A": 1}}, "set[...]"),
        ({"set": {"A": "x" * (128 << 10)}}, "set.A"),
        ({"set": {f"A{number}": "x" * 100_000 for number in range(20)}}, "set"),
        ({"unset": ["A\n"]}, "unset[0]"),
        ({"unset": ["SANDPOD_X"]}, "unset[0]"),
        ({"set": {"A": "x"}, "unset": ["A"]}, "unset[0]"),
    ],
)
async def test_what_the_kernel_would_not_take_is_refused_whole(
    http: aiohttp.ClientSession, body: Json, field: str
) -> None:
    before = await shown(http)
    found = await change(http, body, status=400)
    assert found["code"] == "VALIDATION_FAILED"
    assert found["context"]["validationErrors"][0]["field"] == field
    assert await shown(http) == before


async def test_the_largest_environment_still_starts_commands(
    http: aiohttp.ClientSession, execute: Execute
) -> None:
    value = "x" * 120_000
    accepted = 0
    for number in range(40):
        async with http.post(
            "/api/environment", data=json.dumps({"set": {f"BIG{number}": value}}).encode()
        ) as response:
            if response.status == 400:
                assert "1536 KiB" in (await response.json())["message"]
                break
            accepted += 1
    assert 10 <= accepted < 40
    assert (await execute("echo ${#BIG0}" + " " * 100_000))["stdout"] == "120000\n"


async def test_names_that_were_unset_do_not_pile_up_without_end(start: Callable[..., Runtime]) -> None:
    runtime = start()
    async with aiohttp.ClientSession(runtime.url) as http:
        name = "N" * 100_000
        for number in range(20):
            async with http.post(
                "/api/environment", data=json.dumps({"unset": [f"{name}{number}"]}).encode()
            ) as response:
                if response.status == 400:
                    return
    raise AssertionError("two megabytes of names were accepted")


async def test_changes_are_there_again_after_a_restart(start: Callable[..., Runtime], tmp_path: Path) -> None:
    arguments = ["--state", str(tmp_path / "state")]
    environ = {**os.environ, "FROM_THE_IMAGE": "yes"}
    first = start(arguments=arguments, environ=environ)
    async with aiohttp.ClientSession(first.url) as http:
        await change(http, {"set": {"COLOUR": "blue", "OTHER": "x"}, "unset": ["FROM_THE_IMAGE"]})
        await change(http, {"unset": ["OTHER"]})
    assert first.stop() == TERMINATED
    second = start(arguments=arguments, environ=environ)
    async with aiohttp.ClientSession(second.url) as http:
        found = await shown(http)
        assert found["COLOUR"] == "blue"
        assert "FROM_THE_IMAGE" not in found
        assert "OTHER" not in found


async def test_changes_win_over_what_the_bind_brings(start: Callable[..., Runtime], tmp_path: Path) -> None:
    arguments = ["--state", str(tmp_path / "state")]
    for value in (None, "changed"):
        runtime = start(insecure=False, arguments=arguments)
        headers = {"X-Sandpod-Credential": BIND["credential"]}
        async with aiohttp.ClientSession(runtime.url, headers=headers) as http:
            async with http.post("/api/bind", json=BIND, headers={"X-Sandpod-Bind-Token": TOKEN}) as response:
                assert response.status == 200
            if value is None:
                assert (await shown(http))["FROM_THE_BIND"] == "yes"
                await change(http, {"set": {"FROM_THE_BIND": "changed"}})
            else:
                assert (await shown(http))["FROM_THE_BIND"] == value
        assert runtime.stop() == TERMINATED


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"A\\n":"x"}', b'{"A":5}', b"[" * 100_000, b"\xff"])
async def test_a_broken_file_of_changes_stops_nobody(
    start: Callable[..., Runtime], tmp_path: Path, content: bytes
) -> None:
    folder = tmp_path / "state/environment"
    folder.mkdir(parents=True)
    (folder / "changes.json").write_bytes(content)
    runtime = start(arguments=["--state", str(tmp_path / "state")])
    async with aiohttp.ClientSession(runtime.url) as http:
        await change(http, {"set": {"COLOUR": "blue"}})
        assert (await shown(http))["COLOUR"] == "blue"


async def test_a_change_that_cannot_be_kept_is_not_made(
    start: Callable[..., Runtime], tmp_path: Path
) -> None:
    (tmp_path / "state/environment/changes.json.new").mkdir(parents=True)
    runtime = start(arguments=["--state", str(tmp_path / "state")])
    async with aiohttp.ClientSession(runtime.url) as http:
        found = await change(http, {"set": {"COLOUR": "blue"}}, status=400)
        assert found["code"] == "IS_DIRECTORY"
        assert "COLOUR" not in await shown(http)
