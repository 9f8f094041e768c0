"""Who may do what: before the bind, the bind itself, and after it."""

import asyncio
import copy
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import sandpod_runtime

from tests.support.events import TIMESTAMP
from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime

Json = dict[str, Any]
Asked = tuple[int, Json]

WITH_TOKEN = {"X-Sandpod-Bind-Token": TOKEN}
WITH_CREDENTIAL = {"X-Sandpod-Credential": CREDENTIAL}


@pytest.fixture
def unbound(start: Callable[..., Runtime]) -> Runtime:
    return start(insecure=False)


@pytest_asyncio.fixture
async def door(unbound: Runtime) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(unbound.url) as session:
        yield session


async def ask(
    door: aiohttp.ClientSession, method: str, path: str, *, body: Any = None, headers: Any = None
) -> Asked:
    async with door.request(method, path, json=body, headers=headers) as response:
        return response.status, await response.json()


async def bind(door: aiohttp.ClientSession, **changes: Any) -> Asked:
    return await ask(door, "POST", "/api/bind", body=BIND | changes, headers=WITH_TOKEN)


async def test_an_unbound_runtime_greets_and_does_nothing_else(door: aiohttp.ClientSession) -> None:
    async with door.get("/") as response:
        assert response.status == 200
    for method, path in (
        ("GET", "/api/ping"),
        ("GET", "/api/version"),
        ("GET", "/api/lifecycle"),
        ("POST", "/api/execute"),
        ("POST", "/api/execute/stream"),
        ("GET", "/no/such/path"),
    ):
        status, body = await ask(door, method, path, body={"command": "touch ran"}, headers=WITH_CREDENTIAL)
        assert (status, body["code"]) == (503, "CONTAINER_UNAVAILABLE")


async def test_a_503_is_only_answered_before_anything_was_done(
    door: aiohttp.ClientSession, unbound: Runtime
) -> None:
    await ask(door, "POST", "/api/execute", body={"command": "touch ran"})
    assert list(unbound.workspace.iterdir()) == []


async def test_the_bind_gives_an_identity_a_credential_and_an_environment(
    door: aiohttp.ClientSession,
) -> None:
    status, body = await bind(door)
    assert status == 200
    assert TIMESTAMP.match(body.pop("timestamp"))
    assert body.pop("isolation") == {"mode": "standard", "complete": True}
    assert body == {"success": True, "runtimeVersion": sandpod_runtime.__version__}
    status, body = await ask(door, "GET", "/api/lifecycle", headers=WITH_CREDENTIAL)
    assert status == 200
    assert body["bound"] is True
    assert body["sandbox"] == BIND["sandbox"]
    assert body["pod"] == BIND["pod"]
    assert (body["sleepAfterSeconds"], body["keepAlive"]) == (600, False)
    command = {"command": 'echo "$FROM_THE_BIND"'}
    status, body = await ask(door, "POST", "/api/execute", body=command, headers=WITH_CREDENTIAL)
    assert body["stdout"] == "yes\n"


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN.upper(), "ä"])
async def test_a_wrong_token_is_refused_and_does_not_spend_the_bind(
    door: aiohttp.ClientSession, token: str
) -> None:
    headers = {"X-Sandpod-Bind-Token": token}
    status, body = await ask(door, "POST", "/api/bind", body=BIND, headers=headers)
    assert (status, body["code"]) == (401, "UNAUTHENTICATED")
    assert (await bind(door))[0] == 200


async def test_a_second_bind_is_refused_and_changes_nothing(door: aiohttp.ClientSession) -> None:
    await bind(door)
    status, body = await bind(door, credential="another-credential-of-length")
    assert (status, body["code"]) == (409, "ALREADY_BOUND")
    assert (await ask(door, "GET", "/api/version", headers=WITH_CREDENTIAL))[0] == 200


async def test_a_stranger_does_not_learn_whether_it_is_bound(door: aiohttp.ClientSession) -> None:
    wrong = {"X-Sandpod-Bind-Token": "wrong"}
    before = await ask(door, "POST", "/api/bind", body=BIND, headers=wrong)
    await bind(door)
    after = await ask(door, "POST", "/api/bind", body=BIND, headers=wrong)
    assert before[0] == after[0] == 401
    assert before[1]["message"] == after[1]["message"]


async def test_of_many_binds_at_once_one_succeeds(door: aiohttp.ClientSession) -> None:
    answers = await asyncio.gather(*(bind(door, credential=f"credential-number-{n:04}") for n in range(20)))
    assert sorted(status for status, _ in answers) == [200] + [409] * 19


async def test_a_bad_bind_says_what_is_wrong_and_may_be_repeated(door: aiohttp.ClientSession) -> None:
    without = copy.deepcopy(BIND)
    del without["sandbox"]["uid"]
    wrong: list[tuple[Any, str]] = [
        (without, "sandbox"),
        (BIND | {"credential": "short"}, "credential"),
        (BIND | {"env": {"A": 1}}, "env[...]"),
        (BIND | {"env": {"A=B": "x"}}, "env.A=B"),
        (BIND | {"env": {"SANDPOD_X": "x"}}, "env.SANDPOD_X"),
        (BIND | {"env": {"A": "\0"}}, "env.A"),
        (BIND | {"lifecycle": {"sleepAfterSeconds": -1}}, "lifecycle.sleepAfterSeconds"),
        ([], "body"),
    ]
    for body, field in wrong:
        status, found = await ask(door, "POST", "/api/bind", body=body, headers=WITH_TOKEN)
        assert (status, found["code"]) == (400, "VALIDATION_FAILED")
        assert found["context"]["validationErrors"][0]["field"] == field
    assert (await bind(door))[0] == 200


async def test_fields_of_a_newer_operator_are_ignored(door: aiohttp.ClientSession) -> None:
    assert (await bind(door, processes=[], lifecycle={"keepAlive": True, "news": 1}))[0] == 200


@pytest.mark.parametrize("credential", ["", "wrong", CREDENTIAL + "x", CREDENTIAL[:-1], "ä"])
async def test_a_bound_runtime_wants_the_credential_for_everything_but_its_greeting(
    door: aiohttp.ClientSession, credential: str
) -> None:
    await bind(door)
    async with door.get("/") as response:
        assert response.status == 200
    for method, path in (
        ("GET", "/api/ping"),
        ("GET", "/api/version"),
        ("GET", "/api/lifecycle"),
        ("POST", "/api/execute"),
        ("POST", "/api/execute/stream"),
        ("GET", "/no/such/path"),
    ):
        headers = {"X-Sandpod-Credential": credential}
        status, body = await ask(door, method, path, body={"command": "true"}, headers=headers)
        assert (status, body["code"]) == (401, "UNAUTHENTICATED")


async def test_no_secret_is_logged(door: aiohttp.ClientSession, unbound: Runtime) -> None:
    await bind(door, env={"PASSWORD": "hunter2-in-env"})
    body = {"command": "echo hunter2-in-command", "env": {"B": "hunter2-in-call"}}
    await ask(door, "POST", "/api/execute", body=body, headers=WITH_CREDENTIAL)
    await ask(door, "POST", "/api/execute", body={"command": 5}, headers=WITH_CREDENTIAL)
    assert unbound.logged("bound")[0]["sandbox"] == "team/box"
    assert unbound.logged("command ended")
    log = str(unbound.log())
    for secret in (TOKEN, CREDENTIAL, "hunter2"):
        assert secret not in log


@pytest.mark.parametrize("digest", [None, "", "abc", "g" * 64])
def test_without_a_bind_token_it_does_not_start_unless_told_to_be_insecure(digest: str | None) -> None:
    environ = {} if digest is None else {"SANDPOD_BIND_SHA256": digest}
    done = subprocess.run(
        [sys.executable, "-I", "-m", "sandpod_runtime", "--port", "0"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert "--insecure" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_said_in_one_line(unbound: Runtime) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-m", "sandpod_runtime", "--port", str(unbound.port), "--insecure"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_listens_before_it_imports_what_takes_long() -> None:
    """Whoever asks in the meantime waits in the kernel's queue, instead of being refused."""
    code = """if True:
        import sys
        from sandpod_runtime import __main__, listening
        sys.argv[1:] = ["--insecure", "--port", "0"]
        listening.listeners = lambda _: sys.exit("late" if {"asyncio", "aiohttp"} & {*sys.modules} else 0)
        __main__.main()
    """
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
