"""A runtime whose state directory the tests know: archives may be there, whoever runs them."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runtime import TERMINATED, Runtime


@pytest.fixture(scope="session")
def state() -> Iterator[Path]:
    # Not below pytest's own directory, which other users may not enter.
    place = Path(tempfile.mkdtemp(prefix="sandpod-backup-"))
    place.chmod(0o777)
    yield place / "state"
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_runtime(state: Path) -> Iterator[Runtime]:
    runtime = Runtime(arguments=["--state", str(state)])
    try:
        yield runtime
        assert runtime.stop() == TERMINATED
    finally:
        runtime.dispose()
