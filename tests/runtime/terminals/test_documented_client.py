"""The client that docs/runtime/terminals.md shows, on a terminal of its own."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runtime import Runtime
from tests.support.waiting import eventually

DOCUMENT = Path(__file__).parents[3] / "docs" / "runtime" / "terminals.md"


class Screen:
    """A terminal emulator, as far as this test needs one."""

    def __init__(self, *command: str) -> None:
        self._master, slave = os.openpty()
        self.resize(rows=31, cols=91)
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True)
        os.close(slave)
        self.shown = b""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, *, rows: int, cols: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 20
        while text.encode() not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if select.select([self._master], [], [], 0.1)[0]:
                self.shown += os.read(self._master, 65_536)

    def dispose(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)


@pytest.fixture
def screen(runtime: Runtime, tmp_path: Path) -> Iterator[Screen]:
    found = re.search(
        r"^```python\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert found is not None
    (tmp_path / "attach.py").write_text(found[1], encoding="utf-8")
    url = f"ws://127.0.0.1:{runtime.port}/ws/pty?sessionId=documented&shell=sh"
    made = Screen(sys.executable, str(tmp_path / "attach.py"), url)
    yield made
    made.dispose()


def test_it_is_a_terminal(screen: Screen, runtime: Runtime) -> None:
    screen.wait_for("# " if os.geteuid() == 0 else "$ ")
    screen.type("stty size; echo he''llo\r")
    screen.wait_for("31 91\r\nhello\r\n")
    screen.resize(rows=20, cols=70)
    screen.process.send_signal(signal.SIGWINCH)
    screen.type("sh -c 'until stty size | grep 20; do sleep 0.05; done'\r")
    screen.wait_for("20 70\r\n")
    screen.type("sleep 600\r")
    # Before it runs there is nothing to interrupt, and an interrupt drops what was typed ahead.
    eventually(lambda: "sleep 600" in runtime.descendants().values(), timeout=20, every=0.02)
    screen.type("\x03")
    eventually(lambda: "sleep 600" not in runtime.descendants().values(), timeout=20, every=0.02)
    screen.type("echo interr''upted\r")
    screen.wait_for("interrupted\r\n")
    screen.type("exit 7\r")
    assert screen.process.wait(timeout=20) == 7
    runtime.end_descendants()  # the session's shell
