"""The runtime's ends of a command's pipes, read and written without blocking and without threads."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable

# Enough for a pipe of the usual size in one read.
_READ = 65_536

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

    def __init__(
        self, descriptor: int, *, loop: asyncio.AbstractEventLoop, sink: Sink, on_end: Callable[[], None]
    ) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._sink = sink
        self._on_end = on_end
        self._reading = False
        self._owed: int | None = None
        self.ended = False
        self.resume()

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    def resume(self) -> None:
        if not self._reading and not self.ended:
            self._reading = True
            self._loop.add_reader(self._descriptor, self._read)

    def divert(self, sink: Sink) -> None:
        """Give the rest to another sink."""
        self._sink = sink
        self.resume()

    def finish(self) -> None:
        """Deliver what is in the pipe now, and end there even though somebody may go on writing."""
        if not self.ended:
            self._owed = _waiting(self._descriptor)
            if self._owed == 0:
                self._end()

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
        wanted = _READ if self._owed is None else min(_READ, self._owed)
        try:
            data = os.read(self._descriptor, wanted)
        except BlockingIOError:
            return
        if not data:
            self.close()
            self._on_end()
            return
        if not self._sink(data):
            self._pause()
        if self._owed is not None:
            self._owed -= len(data)
            if self._owed <= 0:
                self._end()

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._descriptor)

    def _end(self) -> None:
        self._pause()
        self.ended = True
        self._on_end()


class InputPipe:
    """Writes all of `data` to a command's standard input, as fast as it reads, then closes it and lets go of
    the data.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        loop: asyncio.AbstractEventLoop,
        data: bytes,
        on_close: Callable[[], None],
    ) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._rest = memoryview(data)
        self._on_close = on_close
        loop.add_writer(descriptor, self._write)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self._rest = memoryview(b"")
            self._on_close()

    def _write(self) -> None:
        try:
            written = os.write(self._descriptor, self._rest[:_READ]) if self._rest else 0
        except BlockingIOError:
            return
        except BrokenPipeError:
            # The command does not want (all of) its input: its own affair.
            self.close()
            return
        self._rest = self._rest[written:]
        if not self._rest:
            self.close()


def _waiting(descriptor: int) -> int:
    answer = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0")
    return int(struct.unpack("i", answer)[0])
