"""For all tests."""

import os
import signal
from collections.abc import Generator

import pytest

# An assertion that a helper makes says what it found, too.
pytest.register_assert_rewrite("tests.support")

# Set where everything that a test may need is there, as in CI: a proof that is not made must not pass for one
# that is.
SKIPS_FAIL = "SANDPOD_SKIPS_FAIL"


def pytest_configure() -> None:
    # Whatever a shell has started in the background ignores Ctrl-C, and so do its children: what we test too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(SKIPS_FAIL):
        report.outcome = "failed"
        report.longrepr = f"skipped, though {SKIPS_FAIL} is set: {report.longrepr}"
    return report
