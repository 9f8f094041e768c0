"""How the runtime and a session's shell talk: a pipe of lines to read, and a private directory of FIFOs,
which the shell opens by their names.

Neither can be taken away by a command: the shell keeps its script's descriptor out of the way of
redirections, and a name cannot be closed. What is done here on the event loop stays within memory: the
directory lies on a tmpfs wherever there is one (place.py).
"""

import asyncio
import contextlib
import fcntl
import os
import shutil
import struct
import termios
from collections.abc import Callable

from sandpod_runtime.process.spawn import SCRIPT_DESCRIPTOR

# More than all the variables that a program could be started with.
_LARGEST_WORD = 4 << 20
_READ = 65_536
_DESCRIPTORS = ("o", "e")


class Channel:
    def __init__(self, place: str, *, script: str, on_word: Callable[[bytes], None]) -> None:
        """`script` is the name by which the shell opens its lines. `on_word` gets what it has written to
        `x`, each time that it closes it. Raises OSError.
        """
        self.place = os.fsencode(place)
        self._loop = asyncio.get_running_loop()
        self._on_word = on_word
        self._word: list[bytes] = []
        self._rest = b""
        self._words = -1
        self._renew_place()
        self.reader, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)
        try:
            os.symlink(f"/proc/self/fd/{SCRIPT_DESCRIPTOR}", f"{place}/{script}")  # noqa: PTH211
            self._listen()
        except OSError:
            self.forget_reader()
            os.close(self._writer)
            raise

    def forget_reader(self) -> None:
        """The shell has it now."""
        os.close(self.reader)

    def send(self, lines: bytes) -> None:
        if self._rest:
            self._rest += lines
            return
        try:
            written = os.write(self._writer, lines)
        except BlockingIOError:
            written = 0
        except BrokenPipeError:
            return  # the shell has ended, which is told elsewhere
        if written < len(lines):
            self._rest = lines[written:]
            self._loop.add_writer(self._writer, self._send_rest)

    @property
    def is_read(self) -> bool:
        """The shell has taken every line."""
        answer = fcntl.ioctl(self._writer, termios.FIONREAD, b"\0\0\0\0")
        return not self._rest and struct.unpack("i", answer)[0] == 0

    def outputs(self) -> tuple[int, int]:
        """Fresh ones: what a command leaves in the background goes on writing to those that it was given."""
        try:
            stdout = self._fifo("o")
        except FileNotFoundError:
            # A command has removed the directory.
            self._renew_place()
            self._listen()
            stdout = self._fifo("o")
        try:
            return stdout, self._fifo("e")
        except OSError:
            os.close(stdout)
            raise

    def leave(self, text: bytes) -> bool:
        """As a file, from which the shell reads faster than from its pipe; False when there is no room."""
        self._remove("c")
        try:
            with open(self._path("c"), "xb") as file:  # noqa: PTH123
                file.write(text)
        except OSError:
            self._remove("c")
            return False
        return True

    def status(self, number: int) -> int | None:
        """The exit code that the shell has reported for this call."""
        prefix = f"s{number}."
        try:
            names = os.listdir(os.fsdecode(self.place))  # noqa: PTH208
        except OSError:
            return None
        for name in names:
            if name.startswith(prefix) and name[len(prefix) :].isdecimal():
                self._remove(name)
                return int(name[len(prefix) :])
        return None

    def refusal(self, number: int) -> bytes | None:
        """Why the shell did not go where this call should run; None when it did."""
        if not self._remove(f"n{number}"):
            return None
        try:
            descriptor = os.open(self._path("f"), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return os.read(descriptor, _READ)
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def close(self) -> None:
        self._loop.remove_writer(self._writer)
        os.close(self._writer)
        self._close_words()
        shutil.rmtree(self.place, ignore_errors=True)

    def _path(self, name: str) -> bytes:
        return b"%s/%s" % (self.place, name.encode())

    def _remove(self, name: str) -> bool:
        try:
            os.unlink(self._path(name))  # noqa: PTH108
        except OSError:
            return False
        return True

    def _fifo(self, name: str) -> int:
        """The end to read from."""
        self._remove(name)
        path = self._path(name)
        os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def _renew_place(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        os.makedirs(self.place, mode=0o700)  # noqa: PTH103

    def _listen(self) -> None:
        self._close_words()
        self._words = self._fifo("x")
        self._loop.add_reader(self._words, self._read_word)

    def _read_word(self) -> None:
        try:
            data = os.read(self._words, _READ)
        except BlockingIOError:
            return
        if data:
            if sum(map(len, self._word)) < _LARGEST_WORD:
                self._word.append(data)
            return
        # Everybody has closed it. The kernel would go on reporting that, until it is opened anew.
        word, self._word = b"".join(self._word), []
        with contextlib.suppress(OSError):
            self._reopen()
        self._on_word(word)

    def _reopen(self) -> None:
        opened = os.open(self._path("x"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._close_words()
        self._words = opened
        self._loop.add_reader(opened, self._read_word)

    def _close_words(self) -> None:
        if self._words >= 0:
            self._loop.remove_reader(self._words)
            os.close(self._words)
            self._words = -1

    def _send_rest(self) -> None:
        try:
            written = os.write(self._writer, self._rest[:_READ])
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._rest = b""
            written = 0
        self._rest = self._rest[written:]
        if not self._rest:
            self._loop.remove_writer(self._writer)
