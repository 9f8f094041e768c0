"""The runtime's end of a pseudo-terminal, read and written without blocking and without threads."""

import asyncio
import fcntl
import os
import struct
import termios
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from sandpod_runtime.process.hub import Readers

# A read brings 4 KiB at most; so much is put together before others get their turn.
_READ = 65_536
# Typed and not yet read by any program. Whoever types more has to wait.
INPUT_LIMIT = 262_144
# Of what a program wrote before it ended: the kernel holds less than this, and others may go on writing.
_LAST_WORDS = 262_144
# No process has the terminal open, and one may open it again.
_LOOK_AGAIN_SECONDS = 0.1
# An erased character is a whole one, not its last byte. (Python's termios does not know the name.)
_IUTF8 = 0o40000


class Size(NamedTuple):
    cols: int
    rows: int


class Pty:
    def __init__(self, *, size: Size, readers: Readers) -> None:
        """Raises OSError. `path` can be opened until `started`."""
        self._loop = asyncio.get_running_loop()
        self._readers = readers
        self._master, self._slave = os.openpty()
        self._on_output: Callable[[bytes], None] = lambda _: None
        self._is_reading = False
        self._look_again: asyncio.TimerHandle | None = None
        self._input: deque[memoryview] = deque()
        self._input_size = 0
        self._room = asyncio.Event()
        try:
            os.set_blocking(self._master, False)
            self.path = os.ttyname(self._slave)
            self.resize(size)
            attributes = termios.tcgetattr(self._slave)
            attributes[0] |= _IUTF8
            termios.tcsetattr(self._slave, termios.TCSANOW, attributes)
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        return self._master >= 0

    def started(self, on_output: Callable[[bytes], None]) -> None:
        """A program has the other end open."""
        self._close_slave()
        self._on_output = on_output
        self.resume()

    def resize(self, size: Size) -> None:
        """The program in the foreground is told by SIGWINCH."""
        self.size = size
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))

    def pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._readers.remove_reader(self._master)
        if self._look_again is not None:
            self._look_again.cancel()
            self._look_again = None

    def resume(self) -> None:
        if not self._is_reading and self.is_open:
            self.pause()
            self._is_reading = True
            self._readers.add_reader(self._master, self._read)

    async def write(self, data: bytes) -> None:
        """Returns when it was taken; dropped when the terminal is over."""
        while self._input_size >= INPUT_LIMIT and self.is_open:
            self._room.clear()
            await self._room.wait()
        if not self.is_open or not data:
            return
        self._input.append(memoryview(data))
        self._input_size += len(data)
        if len(self._input) == 1:
            self._feed()

    def finish(self) -> None:
        """The program has ended: deliver what it wrote, and close."""
        left = _LAST_WORDS
        while left > 0 and (data := self._piece()):
            left -= len(data)
            self._on_output(data)
        self.close()

    def close(self) -> None:
        """The kernel sends SIGHUP to the program that leads the terminal."""
        self._close_slave()
        if not self.is_open:
            return
        self.pause()
        self._loop.remove_writer(self._master)
        os.close(self._master)
        self._master = -1
        self._input.clear()
        self._input_size = 0
        self._room.set()

    def _read(self) -> None:
        parts: list[bytes] = []
        size = 0
        data = None
        while size < _READ and (data := self._piece()):
            parts.append(data)
            size += len(data)
        if data == b"":
            self.pause()
            self._look_again = self._loop.call_later(_LOOK_AGAIN_SECONDS, self.resume)
        if parts:
            self._on_output(b"".join(parts))

    def _piece(self) -> bytes | None:
        """None: nothing now. Empty: nothing as long as nobody opens the other end."""
        try:
            return os.read(self._master, _READ)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _feed(self) -> None:
        try:
            while self._input:
                written = os.write(self._master, self._input[0][:_READ])
                self._input_size -= written
                self._input[0] = self._input[0][written:]
                if not self._input[0]:
                    self._input.popleft()
        except BlockingIOError:
            self._loop.add_writer(self._master, self._feed)
        except OSError:
            # Nobody has the other end open. What was typed goes where it would on a screen: nowhere.
            self._input.clear()
            self._input_size = 0
        if not self._input:
            self._loop.remove_writer(self._master)
        if self._input_size < INPUT_LIMIT:
            self._room.set()

    def _close_slave(self) -> None:
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1
