"""The programs of a run: started here, measured from /proc, and ended by their own process id."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PATIENCE = 20.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Use:
    """What a process used between two moments."""

    seconds: float
    cpu_seconds: float
    rss_mb: float

    @property
    def cores(self) -> float:
        return self.cpu_seconds / self.seconds


class Program:
    """A program of ours, in a process group of its own, with its output in a file."""

    def __init__(self, *command: str | Path, log: Path, env: Mapping[str, str], cwd: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def check(self) -> None:
        if (code := self._process.poll()) is not None:
            last = self.log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{self._process.args} has ended with {code}:\n{last}")

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = self._read("stat").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss_mb(self) -> float:
        return self._status("VmRSS")

    def peak_rss_mb(self) -> float:
        return self._status("VmHWM")

    def use(self, seconds: float) -> Use:
        """While nobody does anything."""
        begun, before = time.monotonic(), self.cpu()
        time.sleep(seconds)
        return Use(seconds=time.monotonic() - begun, cpu_seconds=self.cpu() - before, rss_mb=self.rss_mb())

    def _status(self, field: str) -> float:
        lines = self._read("status").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))

    def _read(self, name: str) -> str:
        return Path(f"/proc/{self._process.pid}/{name}").read_text()


def fetch(url: str) -> str | None:
    """None when nobody answers, or with an error."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, OSError):
        return None


def wait_for(what: str, holds: Callable[[], bool], *, within: float, every: float = 0.1) -> float:
    """Returns how many seconds it took; beyond `within`, an error that names what was waited for."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > within:
            raise TimeoutError(f"not within {within:.0f} s: {what}")
        time.sleep(every)
    return time.monotonic() - begun
