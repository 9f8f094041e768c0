"""A test that cannot run is skipped at home, and fails in CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SKIPS_FAIL

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.mark.skip(reason="there is no Go")
def test_by_a_mark() -> None: ...

def test_by_itself() -> None:
    pytest.skip("there is no npm")

@pytest.mark.xfail
def test_that_is_known_to_fail() -> None:
    raise AssertionError
"""


@pytest.mark.parametrize(
    ("variables", "outcome"),
    [({}, "2 skipped, 1 xfailed"), ({SKIPS_FAIL: "1"}, "1 failed, 1 xfailed, 1 error")],
)
def test_skips_fail_where_everything_is_there(
    tmp_path: Path, variables: dict[str, str], outcome: str
) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    options = ["-q", "-p", "tests.conftest", f"--rootdir={tmp_path}"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    environ = {name: value for name, value in os.environ.items() if name != SKIPS_FAIL}
    done = subprocess.run(
        command, cwd=ROOT, env=environ | variables, capture_output=True, text=True, timeout=60, check=False
    )

    assert outcome in done.stdout
