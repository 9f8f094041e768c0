"""Commands that attack the runtime, as an ordinary user and as root of the sandbox."""

import os
import shutil
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.runtime import TERMINATED, Runtime, running, soon

Json = dict[str, Any]
Run = Callable[..., Awaitable[tuple[str, int]]]
Post = Callable[..., Awaitable[Json]]
STATE = ".sandpod"
# Tells of every number that a process could have, whether anything can be done to it.
_TRY_ALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = []
for pid in range(2, 70000):
    if pid == os.getpid():
        continue
    try:
        os.kill(pid, 0)
        found.append(pid)
    except ProcessLookupError:
        pass
    except PermissionError:
        found.append(-pid)
for pid in (1, *found):
    if libc.ptrace(16, pid, 0, 0) == 0:
        print("traced", pid, flush=True)
print("found", len(found))
"""


def files_of_the_state(runtime: Runtime) -> dict[str, bytes]:
    state = runtime.workspace / STATE
    return {str(path): path.read_bytes() for path in state.rglob("*") if path.is_file()}


async def test_nothing_that_can_be_listed_is_the_runtime(runtime: Runtime, run: Run) -> None:
    listed, _ = await run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls -d /proc/[0-9]*; readlink /proc/*/exe")
    assert "sandpod_runtime" not in listed
    assert "/proc/1\n" in listed
    assert len([line for line in listed.splitlines() if line.startswith("/proc/")]) <= 5, listed


async def test_no_number_of_a_process_reaches_it(runtime: Runtime, run: Run) -> None:
    script = runtime.workspace / "all.py"
    script.write_text(_TRY_ALL, encoding="utf-8")
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("there is no Python that a sandbox could use")
    told, code = await run(f"exec {python} {script}")
    assert (told.strip(), code) == ("found 0", 0)


async def test_it_outlives_every_signal_to_everybody(runtime: Runtime, run: Run, post: Post) -> None:
    for number in ("TERM", "INT", "HUP", "STOP", "KILL"):
        attack = f"kill -{number} -1; kill -{number} 1; kill -{number} 0"
        await post("/api/execute", command=attack, timeoutMs=500)
    assert await run("echo there") == ("there\n", 0)
    assert runtime.process.poll() is None


@pytest.mark.parametrize("file", ["environ", "mem", "maps", "root/etc/passwd", "fd/0", "cwd/.", "ns/mnt"])
async def test_what_the_kernel_tells_of_it_is_out_of_reach(runtime: Runtime, run: Run, file: str) -> None:
    for pid in (runtime.pid, "1" if file in ("environ", "mem", "ns/mnt") else runtime.pid):
        told, code = await run(f"cat /proc/{pid}/{file}")
        assert code != 0
        assert "No such file" in told or "Permission denied" in told, told


@pytest.mark.parametrize(
    "attack",
    [
        "echo x > {state}/x",
        "cat {state}/kept",
        "rm -rf {state}; ls -A {state}; test ! -e {state}",
        "mv {state} {state}-away",
        "chmod 777 {state} && touch {state}/x",
        "rmdir {state} && mkdir {state}",
        "umount {state}",
        "umount -l {state}",
        "mkdir -p m; mount --bind . m && cat m/.sandpod/kept",
        "mkdir -p m; mount --move {state} m",
        "mount -o remount,rw {state} && touch {state}/x",
        "mount -t proc proc /proc",
        "unshare --mount umount {state}",
        "unshare --user --map-root-user --mount umount {state}",
        "unshare -rm sh -c 'mkdir -p m && mount --bind . m && cat m/.sandpod/kept'",
        "unshare --pid --fork true",
        "nsenter --target 1 --mount --pid true",
        "touch /proc/1/root{state}/x",
        "cd {state}; touch /proc/self/cwd/x",
        "exec 9<{state}; touch /proc/self/fd/9/x",
        "ln {state}/kept here",
        "mv {workspace} {workspace}-away",
        "echo 1 > /proc/sys/user/max_user_namespaces",
        "chroot /proc/1/root touch {state}/x",
        "mkdir -p r; mount -o bind,rw / r",
    ],
)
async def test_no_trick_opens_the_state(runtime: Runtime, run: Run, attack: str) -> None:
    (runtime.workspace / STATE / "kept").write_bytes(b"as it was")
    before = files_of_the_state(runtime)
    state = f"{runtime.workspace}/{STATE}"
    told, code = await run(attack.format(state=state, workspace=runtime.workspace))
    assert code != 0, told
    assert "as it was" not in told
    assert files_of_the_state(runtime) == before


async def test_a_link_does_not_lead_a_client_to_the_state(runtime: Runtime, run: Run, post: Post) -> None:
    (runtime.workspace / STATE / "kept").write_bytes(b"as it was")
    outside = f"/proc/{runtime.pid}/root{runtime.workspace}/{STATE}"
    await run(f"ln -sfn {STATE} link; ln -sfn {outside} other")
    for link in ("link", "other", STATE):
        path = f"{runtime.workspace}/{link}/kept"
        assert (await post("/api/read", status=404, path=path))["code"] == "FILE_NOT_FOUND"
        await post("/api/write", status=400 if link == "other" else 403, path=path, content="x")
    assert (runtime.workspace / STATE / "kept").read_bytes() == b"as it was"


async def test_no_program_gets_rights_that_its_user_has_not(runtime: Runtime, run: Run) -> None:
    told, _ = await run("grep -E '^Cap(Prm|Eff|Bnd)' /proc/self/status")
    for line in told.splitlines():
        bits = int(line.split()[1], 16)
        # CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_RESOURCE, CAP_DAC_READ_SEARCH
        assert not any(bits >> each & 1 for each in (2, 19, 21, 24)), line


async def test_the_runtimes_own_code_cannot_be_changed(runtime: Runtime, run: Run) -> None:
    told, code = await run(f"touch {sys.prefix}/x || mv {os.path.dirname(sys.prefix)} /tmp/away")  # noqa: PTH120
    assert code != 0, told


async def test_what_a_fork_bomb_leaves_is_gone_after_its_timeout(runtime: Runtime, post: Post) -> None:
    bomb = "for i in $(seq 40); do (setsid sh -c 'sleep 7421 & sleep 7421' &) ; done; sleep 7421"
    body = await post("/api/execute", command=bomb, timeoutMs=700)
    assert body["exitCode"] == 124
    await soon(lambda: not running("sleep 7421"))


def test_the_last_words_cannot_be_forged(strict: Callable[..., Runtime], world: Runtime) -> None:
    """`--termination-log` is the runtime's to write, whatever its permissions."""
    log = world.workspace / "last-words"
    log.touch()
    log.chmod(0o666)
    runtime = strict(extra=["--termination-log", str(log)])
    data = b'{"command": "echo forged > %s"}' % os.fsencode(log)
    urllib.request.urlopen(f"{runtime.url}/api/execute", data=data).close()
    assert log.read_bytes() == b""
    assert runtime.stop() == TERMINATED
    assert b'"reason":"terminated"' in log.read_bytes()
