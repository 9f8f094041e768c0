"""The command line and the SDK against a small API server on a real socket, with a real runtime behind it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sandpod import Client

from tests.support.api_server import ApiServer


@pytest.fixture(scope="session")
def runtime_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """One runtime for all: commands share nothing in it."""
    workspace = tmp_path_factory.mktemp("workspace")
    process = subprocess.Popen(
        [sys.executable, "-m", "sandpod_runtime", "--port=0", "--insecure", f"--workspace={workspace}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture
def api(runtime_url: str) -> Generator[ApiServer]:
    with ApiServer(runtime=runtime_url) as server:
        yield server


def kubeconfig(server: str) -> str:
    return json.dumps(
        {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "users": [{"name": "test", "user": {"token": "letmein"}}],
        }
    )


@dataclass(frozen=True)
class Cli:
    """The program, as a user's shell starts it."""

    environ: dict[str, str]

    def __call__(
        self, *words: str, stdin: bytes | None = None, **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            self.command(*words),
            input=stdin if stdin is not None else b"",
            capture_output=True,
            env={**self.environ, **environ},
            timeout=60,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return done

    @contextmanager
    def started(self, *words: str) -> Generator[subprocess.Popen[bytes]]:
        """While it runs; it is ended at the end."""
        # Under nohup it is ignored, and what we start would inherit that.
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        process = subprocess.Popen(
            self.command(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environ,
        )
        signal.signal(signal.SIGHUP, before)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @staticmethod
    def command(*words: str) -> list[str]:
        return [sys.executable, "-m", "sandpod", *words]


@pytest.fixture
def kubeconfig_path(api: ApiServer, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig(api.url))
    return path


@pytest.fixture
def cli(kubeconfig_path: Path) -> Cli:
    return Cli({**os.environ, "KUBECONFIG": str(kubeconfig_path)})


@pytest.fixture
def client(kubeconfig_path: Path) -> Generator[Client]:
    with Client(kubeconfig=kubeconfig_path) as made:
        yield made


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Waits until a condition holds, and fails when it does not within seconds."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.02)

    return wait
