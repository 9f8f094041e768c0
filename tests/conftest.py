"""For all tests."""

import signal


def pytest_configure() -> None:
    # Whatever a shell has started in the background ignores Ctrl-C, and so do its children: what we test too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
