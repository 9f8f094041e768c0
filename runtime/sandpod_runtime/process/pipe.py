"""The runtime's ends of a command's pipes, read and written without blocking and without threads."""

import asyncio
import contextlib
import fcntl
import os
import struct
import termios
from collections import deque
from collections.abc import Callable

from sandpod_runtime.process.hub import Readers

# As much as a new pipe holds. One that was found full is made larger: what is written in bulk then takes a
# fraction of the turns.
_READ = 65_536
_LARGE = 262_144

Sink = Callable[[bytes], bool]


def discard(data: bytes) -> bool:
    """A sink for output that nobody wants any more: the program that writes it must not be stopped by
    that.
    """
    return True


class OutputPipe:
    """Feeds what a command writes to a sink; a sink that answers False is full, and `resume` says it has
    room.
    """

    def __init__(self, descriptor: int, *, readers: Readers, sink: Sink, on_end: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._readers = readers
        self._sink = sink
        self._on_end = on_end
        self._reading = False
        self._owed: int | None = None
        self._size = _READ
        self.ended = False
        self.resume()

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    def resume(self) -> None:
        if not self._reading and not self.ended:
            self._reading = True
            self._readers.add_reader(self._descriptor, self._read)

    def divert(self, sink: Sink) -> None:
        """Give the rest to another sink."""
        self._sink = sink
        self.resume()

    def finish(self) -> None:
        """Deliver what is in the pipe now, and end there even though somebody may go on writing.

        Also to a sink that is full: a reader who is slow, or stuck, must not hold up the end.
        """
        if not self.ended and self._owed is None:
            self._owed = _waiting(self._descriptor)
            if self._owed == 0:
                self._end()
            else:
                self.resume()

    def linger(self, on_close: Callable[["OutputPipe"], None]) -> None:
        """After the end: go on reading to nowhere, for a background process would die of a closed pipe."""
        self._sink = discard
        self._on_end = lambda: on_close(self)
        self._owed = None
        self.ended = False
        self.resume()

    def close(self) -> None:
        if self._descriptor >= 0:
            self._pause()
            os.close(self._descriptor)
            self._descriptor = -1
            self.ended = True

    def _read(self) -> None:
        wanted = self._size if self._owed is None else min(self._size, self._owed)
        try:
            data = os.read(self._descriptor, wanted)
        except BlockingIOError:
            return
        if not data:
            self.close()
            self._on_end()
            return
        if len(data) == _READ == self._size:
            self._enlarge()
        has_room = self._sink(data)
        if self._owed is None:
            if not has_room:
                self._pause()
        else:
            self._owed -= len(data)
            if self._owed <= 0:
                self._end()

    def _enlarge(self) -> None:
        self._size = _LARGE
        with contextlib.suppress(OSError):  # a user may have only so many pages in pipes
            fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, _LARGE)

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._readers.remove_reader(self._descriptor)

    def _end(self) -> None:
        self._pause()
        self.ended = True
        self._on_end()


class InputPipe:
    """Writes to a command's standard input as fast as it reads. Each piece has a callback, which is told that
    the piece is no longer held.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        loop: asyncio.AbstractEventLoop,
        data: bytes,
        on_taken: Callable[[], None],
        keep_open: bool = False,
    ) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._pieces: deque[tuple[memoryview, Callable[[], None]]] = deque()
        self._writing = False
        self._keep_open = keep_open
        self.pending = 0
        self.write(data, on_taken)

    @property
    def accepts(self) -> bool:
        return self._descriptor >= 0 and self._keep_open

    def write(self, data: bytes, on_taken: Callable[[], None]) -> None:
        self._pieces.append((memoryview(data), on_taken))
        self.pending += len(data)
        self._go_on()

    def end(self) -> None:
        """Close it when everything is written."""
        self._keep_open = False
        if self._descriptor >= 0:
            self._go_on()

    def close(self) -> None:
        if self._descriptor >= 0:
            self._pause()
            os.close(self._descriptor)
            self._descriptor = -1
            self.pending = 0
            while self._pieces:
                self._pieces.popleft()[1]()

    def _go_on(self) -> None:
        if not self._writing:
            self._writing = True
            self._loop.add_writer(self._descriptor, self._write)

    def _pause(self) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._descriptor)

    def _write(self) -> None:
        while self._pieces:
            data, on_taken = self._pieces.popleft()
            try:
                written = os.write(self._descriptor, data[:_READ]) if data else 0
            except BlockingIOError:
                self._pieces.appendleft((data, on_taken))
                return
            except BrokenPipeError:
                # The command does not want (all of) its input: its own affair.
                self._pieces.appendleft((data, on_taken))
                self.close()
                return
            self.pending -= written
            if written < len(data):
                self._pieces.appendleft((data[written:], on_taken))
                return
            on_taken()
        self._pause()
        if not self._keep_open:
            self.close()


def _waiting(descriptor: int) -> int:
    answer = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0")
    return int(struct.unpack("i", answer)[0])
