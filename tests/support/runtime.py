"""A real `python -m sandpod_runtime` on loopback, watched from outside: its log, processes, descriptors."""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.waiting import eventually

Json = dict[str, Any]

# The exit code of a runtime that a signal has ended, and not its own sleep.
TERMINATED = 143
TOKEN = "a-token-for-one-bind"
CREDENTIAL = "a-credential-of-some-length"
BIND: Json = {
    "sandbox": {"namespace": "team", "name": "box", "uid": "11111111-2222"},
    "pod": {"name": "box", "uid": "33333333-4444"},
    "credential": CREDENTIAL,
    "env": {"FROM_THE_BIND": "yes"},
    "lifecycle": {"sleepAfterSeconds": 600, "keepAlive": False},
}


class Runtime:
    """One runtime's life. `insecure` is how it runs on a laptop; without that it waits for a bind."""

    def __init__(
        self,
        *,
        insecure: bool = True,
        arguments: Sequence[str] = (),
        prefix: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        workspace: Path | None = None,
    ) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="sandpod-runtime-"))
        self._scratch.chmod(0o755)
        self.workspace = workspace or self._scratch / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.workspace.chmod(0o777)
        command = [*prefix, sys.executable, "-I", "-m", "sandpod_runtime", "--port", "0"]
        command += ["--workspace", str(self.workspace), "--log-level", "debug", *arguments]
        # What a developer's shells do when they start is none of the tests' business.
        home = self._scratch / "home"
        home.mkdir(mode=0o777)
        home.chmod(0o777)
        variables = dict(os.environ | {"HOME": str(home)} if environ is None else environ)
        if insecure:
            command.append("--insecure")
        else:
            variables["SANDPOD_BIND_SHA256"] = hashlib.sha256(TOKEN.encode()).hexdigest()
        with (self._scratch / "log").open("wb") as log:
            self.process = subprocess.Popen(
                command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log
            )
        self.port = eventually(self._listening, timeout=20, every=0.01)
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> list[Json]:
        text = (self._scratch / "log").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def logged(self, message: str) -> list[Json]:
        return [line for line in self.log() if line["message"] == message]

    def failures(self) -> list[Json]:
        """What a healthy runtime never logs."""
        return [line for line in self.log() if line["level"] in ("error", "critical")]

    def descendants(self) -> dict[int, str]:
        """The living processes below the runtime, with their command lines."""
        return below(self.pid)

    def end_descendants(self) -> None:
        for pid in self.descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def memory(self, field: str = "VmRSS") -> int:
        """In MiB."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith(f"{field}:"))
        return int(line.split()[1]) // 1024

    def stop(self) -> int:
        """As the kubelet does it; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)

    def dispose(self) -> None:
        """Whatever happened: nothing of it stays."""
        left = self.descendants()
        self.end_descendants()
        if self.process.poll() is None:
            # Not by SIGKILL, which would leave its private directories behind.
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _listening(self) -> int:
        if (code := self.process.poll()) is not None:
            text = (self._scratch / "log").read_text(encoding="utf-8")
            raise RuntimeError(f"the runtime ended with {code}: {text}")
        lines = self.logged("listening")
        assert lines
        return lines[0]["port"]


def below(root: int) -> dict[int, str]:
    """All living descendants of a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text().rpartition(") ")[2].split()[:2]
                if state not in "ZX":
                    parents[int(entry.name)] = int(parent)
    found: dict[int, str] = {}
    for pid in parents:
        above = pid
        while above in parents and above != root:
            above = parents[above]
        if above == root and pid != root:
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                found[pid] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


async def soon(check: Callable[[], bool], *, timeout: float = 10) -> None:
    """Waits, while the event loop of the test goes on, until this is so."""
    await asyncio.to_thread(eventually, check, timeout=timeout, every=0.02)


def running(text: str) -> bool:
    """Whether any process of the machine has this in its command line: also one that got away from its
    runtime. Other files' tests run at the same time, so the seconds that a file lets processes sleep are its
    own.
    """
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if text.encode() in (entry / "cmdline").read_bytes().replace(b"\0", b" "):
                    return True
    return False


def unprivileged() -> list[str]:
    """What to put before a command so that it runs as an ordinary user; nothing when we are one."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
