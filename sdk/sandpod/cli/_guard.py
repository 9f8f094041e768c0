"""Around every command: how it ends when it does not end by itself.

Nobody is ever shown a traceback unasked.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from sandpod.cli._arguments import Parser, tell
from sandpod.errors import SandpodError

if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
PIPE_CLOSED = 128 + signal.SIGPIPE


class _Terminated(BaseException):
    """SIGTERM arrived. Unwinding, rather than dying on the spot, closes the connection in good order."""


def run(parser: Parser, command: Callable[[], int]) -> int:
    """The program's exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except _Terminated:
        return TERMINATED
    except BrokenPipeError:
        settle()
        return PIPE_CLOSED
    except SandpodError as error:
        _report(parser, error.message, error.hint)
    except OSError as error:
        _report(parser, f"{error.filename or 'Writing the output'}: {error.strerror or error}.", "")
    except Exception as error:
        _report(
            parser, f"This is a bug: {type(error).__name__}: {error}.", "SANDPOD_DEBUG=1 shows where it is."
        )
    return parser.failure_code


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise _Terminated


def _report(parser: Parser, message: str, hint: str) -> None:
    if os.environ.get("SANDPOD_DEBUG"):
        import traceback

        traceback.print_exc()
    try:
        tell(f"{parser.prog}: {message}")
        if hint:
            tell(hint)
    except OSError:
        settle()


def settle() -> None:
    """Gets rid of what is still buffered. Where nobody reads it the interpreter would complain at its end."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
