"""What hostile code in the sandbox, or a hostile web page on a laptop, gets out of the runtime: nothing."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sandpod_runtime

from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime, unprivileged

ATTACH = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
failed = libc.ptrace(16, int(sys.argv[1]), None, None) == -1
print(os.strerror(ctypes.get_errno()) if failed else "attached")
"""


async def run(runtime: Runtime, command: str, **fields: Any) -> dict[str, Any]:
    headers = {"X-Sandpod-Credential": CREDENTIAL}
    async with (
        aiohttp.ClientSession(runtime.url, headers=headers) as http,
        http.post("/api/execute", json={"command": command, **fields}) as response,
    ):
        return await response.json()


@pytest.fixture
async def ordinary(start: Callable[..., Runtime]) -> Runtime:
    """A bound runtime of an ordinary user, as in a pod: root could look at anything."""
    runtime = start(insecure=False, prefix=unprivileged())
    async with aiohttp.ClientSession(runtime.url) as http:
        headers = {"X-Sandpod-Bind-Token": TOKEN}
        async with http.post("/api/bind", json=BIND, headers=headers) as response:
            assert response.status == 200
    return runtime


@pytest.mark.parametrize("entry", ["environ", "mem", "maps", "fd", "root", "cwd", "io"])
async def test_commands_of_the_same_user_cannot_look_into_the_runtime(ordinary: Runtime, entry: str) -> None:
    found = await run(
        ordinary, f"id -u; ls /proc/{ordinary.pid}/{entry}/. 2>&1 || cat /proc/{ordinary.pid}/{entry}"
    )
    assert found["exitCode"] != 0
    assert "Permission denied" in found["stdout"] + found["stderr"]
    assert found["stdout"].split()[0] == str(os.geteuid() or 65534)


async def test_commands_of_the_same_user_cannot_trace_the_runtime(ordinary: Runtime) -> None:
    found = await run(ordinary, f"python3 - {ordinary.pid}", stdin=ATTACH)
    assert found["stdout"] == "Operation not permitted\n"


async def test_the_kill_of_a_tree_works_for_an_ordinary_user(ordinary: Runtime) -> None:
    found = await run(ordinary, "env -i setsid sh -c '(sleep 36.0125 &)'; sleep 9", timeoutMs=300)
    assert found["exitCode"] == 124
    assert ordinary.descendants() == {}


async def test_commands_see_nothing_of_the_runtimes_environment(start: Callable[..., Runtime]) -> None:
    runtime = start(
        environ={
            "PATH": "/usr/bin:/bin",
            "SANDPOD_ANYTHING": "ours",
            "SANDPOD_KEEP_LD_LIBRARY_PATH": "/of/the/image",
            "SANDPOD_KEEP_GLIBC_TUNABLES": "",
            "PYTHONSTARTUP": "of the image",
            "KUBERNETES_SERVICE_HOST": "10.0.0.1",
            "KUBERNETES_PORT_443_TCP": "tcp://10.0.0.1:443",
            "OF_THE_IMAGE": "yes",
            "HOME": "/root",
        }
    )
    found = await run(runtime, "env -0")
    environ = dict(line.split("=", 1) for line in found["stdout"].split("\0") if line)
    for made_by_the_shell in ("PWD", "SHLVL", "_", "OLDPWD"):
        environ.pop(made_by_the_shell, None)
    assert environ.pop("USER") == environ.pop("LOGNAME")
    assert environ.pop("HOME")
    assert environ == {
        "PATH": "/usr/bin:/bin",
        "LD_LIBRARY_PATH": "/of/the/image",
        "GLIBC_TUNABLES": "",
        "PYTHONSTARTUP": "of the image",
        "OF_THE_IMAGE": "yes",
    }


async def test_the_locale_is_the_images_also_when_it_has_none(start: Callable[..., Runtime]) -> None:
    """Python would set LC_CTYPE for itself and so for every command."""
    # As nobody, whom the kernel shows no memory that is hidden.
    runtime = start(environ={"PATH": "/usr/bin:/bin"}, prefix=unprivileged())
    assert (await run(runtime, "env | grep -E '^(LC_|LANG)'"))["stdout"] == ""


async def test_a_user_without_a_name_gets_a_home_that_can_be_written(start: Callable[..., Runtime]) -> None:
    prefix = [*unprivileged()]
    if prefix:
        prefix[1:3] = ["--reuid=54321", "--regid=54321"]
    runtime = start(environ={"PATH": "/usr/bin:/bin", "HOME": "/"}, prefix=prefix)
    found = await run(runtime, 'echo "$HOME $USER $LOGNAME"; touch ~/written && echo yes')
    if prefix:
        assert found["stdout"] == f"{runtime.workspace} sandbox sandbox\nyes\n"
    else:
        assert found["stdout"].endswith("\nyes\n")


def test_insecure_means_loopback_only(start: Callable[..., Runtime]) -> None:
    runtime = start()
    table = subprocess.run(
        ["cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True, check=True
    )
    listening = [
        line.split()[1].split(":")[0]
        for line in table.stdout.splitlines()
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{runtime.port:04X}")
    ]
    assert set(listening) <= {"0100007F", "00000000000000000000000001000000"}
    assert "0100007F" in listening


def test_a_pods_runtime_listens_for_both_families(start: Callable[..., Runtime]) -> None:
    runtime = start(insecure=False)
    for address in ("127.0.0.1", "::1"):
        with socket.create_connection((address, runtime.port)):
            pass


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost.evil.example", "null"])
async def test_a_web_page_cannot_use_an_insecure_runtime(http: aiohttp.ClientSession, origin: str) -> None:
    async with http.post(
        "/api/execute", json={"command": "true"}, headers={"Origin": origin, "Content-Type": "text/plain"}
    ) as response:
        assert response.status == 403
        assert (await response.json())["code"] == "PERMISSION_DENIED"


async def test_a_page_of_the_developers_own_may_use_it(http: aiohttp.ClientSession) -> None:
    async with http.post(
        "/api/execute", json={"command": "true"}, headers={"Origin": "http://localhost:5173"}
    ) as response:
        assert response.status == 200


async def test_a_name_that_was_made_to_resolve_to_loopback_is_refused(http: aiohttp.ClientSession) -> None:
    for host in ("evil.example:3000", "", "[", "localhost.evil.example"):
        async with http.get("/api/ping", headers={"Host": host}) as response:
            assert response.status == 403, host


async def test_an_error_never_tells_the_credential(ordinary: Runtime) -> None:
    almost = {"X-Sandpod-Credential": CREDENTIAL[:-1]}
    async with (
        aiohttp.ClientSession(ordinary.url) as http,
        http.get("/api/ping", headers=almost) as response,
    ):
        assert CREDENTIAL[:10] not in json.dumps(await response.json())


def test_it_runs_without_site_packages_of_its_own() -> None:
    """As in an image: from directories on the path, with no metadata of any distribution."""
    places = [str(Path(module.__file__ or "").parents[1]) for module in (aiohttp, sandpod_runtime)]
    code = (
        f"import sys; sys.path += {places!r}; sys.argv[1:] = ['--help']; "
        "import runpy; runpy.run_module('sandpod_runtime', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--insecure" in done.stdout
