"""Runtimes that sleep soon, and what they said at their end."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.runtime import TERMINATED, Runtime

Json = dict[str, Any]


@dataclass(frozen=True)
class Sleeper:
    runtime: Runtime
    message: Path

    def wait_for_sleep(self) -> Json:
        """Its termination message, after it has ended well and left nothing."""
        code = self.runtime.process.wait(timeout=60)
        assert self.runtime.descendants() == {}
        assert self.runtime.failures() == []
        said: Json = json.loads(self.message.read_text(encoding="utf-8"))
        assert code == (TERMINATED if said["reason"] == "terminated" else 0)
        return said

    @property
    def is_awake(self) -> bool:
        return self.runtime.process.poll() is None


@pytest.fixture
def sleepy(start: Callable[..., Runtime], tmp_path: Path) -> Callable[..., Sleeper]:
    """A runtime that sleeps after a second; `sleep_after=None` for one that does not."""

    def build(*arguments: str, sleep_after: float | None = 1, **options: Any) -> Sleeper:
        message = tmp_path / "termination-log"
        chosen = ["--termination-log", str(message), *arguments]
        if sleep_after is not None:
            chosen += ["--sleep-after", str(sleep_after)]
        return Sleeper(runtime=start(arguments=chosen, **options), message=message)

    return build
