"""`sandpod exec`: one command in a sandbox as if it ran here: its output, its exit code, its Ctrl-C."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from typing import TYPE_CHECKING, BinaryIO

from sandpod._command import MAX_STDIN_BYTES
from sandpod._results import Keeper, Output
from sandpod.cli import _advice, _arguments
from sandpod.cli._arguments import Parser, tell
from sandpod.errors import Invalid, NotFound, TimedOut

if TYPE_CHECKING:
    from sandpod._stream import ExecStream

DESCRIPTION = """\
Run a command in a sandbox and end with its exit code.

What stands after -- is the program and its arguments, to the letter; no shell looks at them. For pipes,
variables and the like give a line to the sandbox's shell with -c. Output comes as it is written, byte for
byte. Ctrl-C, or the end of this program in any other way, ends the command and all that it started.

exit codes:
  the command's own; 127 if there is no such program; 128 + N if signal N ended it
  124  the --timeout was over
  125  the command could not be run, or what became of it is not known: standard error says why
  130  Ctrl-C here; 143 SIGTERM here; 141 nobody reads our output any more"""

EXAMPLES = """
sandpod exec demo -- uname -a
sandpod exec demo -c 'ls | wc -l; echo $HOME'
sandpod exec demo --cwd /tmp --env STAGE=test -- python3 job.py --fast
sandpod exec demo --timeout 10m -- make test
tar c . | sandpod exec -i demo -- tar x -C /workspace
sandpod exec demo --json -- git status --short | jq .stdout
"""

# As docker and podman have it: not the command's failure but ours.
FAILURE_CODE = 125
# Of each stream, in --json, which is printed only when all of it is there.
_JSON_BYTES = 64 << 20


def configure(parser: Parser) -> None:
    parser.usage = (
        f"{parser.prog} NAME [options] -- COMMAND [ARG …]\n       {parser.prog} NAME [options] -c LINE"
    )
    parser.keeps_words = True
    parser.add_argument("name", metavar="NAME", type=_arguments.sandbox_name, help="the sandbox")
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("-c", "--command", metavar="LINE", dest="line", help="a line for the sandbox's shell")
    parser.add_argument(
        "--env",
        "-e",
        metavar="K=V",
        action="append",
        default=[],
        help="a variable; K alone takes it from here; may be repeated",
    )
    parser.add_argument("--cwd", metavar="DIR", help="where to run it (default: /workspace)")
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=_arguments.duration,
        help="end the command after this time, such as 30s",
    )
    parser.add_argument(
        "--start-timeout",
        metavar="TIME",
        type=_arguments.duration,
        default=120.0,
        help="how long to wait for a sandbox that is starting (default: 2m; 0: not at all)",
    )
    parser.add_argument(
        "-i",
        "--stdin",
        action="store_true",
        help="give the command our standard input (up to 32 MiB, read first)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object when the command has ended"
    )


def run(args: argparse.Namespace) -> int:
    command = _command(args)
    try:
        env = _arguments.env_pairs(args.env)
    except ValueError as error:
        raise Invalid(f"{error}.") from error
    stdin = _standard_input() if args.stdin else None
    # Loaded now and not before: mistakes, help and completion do without an HTTP client.
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args, may_read_stdin=not args.stdin)
    sandbox = Sandbox.named(args.name, client=client)
    begun = time.monotonic()
    try:
        stream = sandbox.exec_stream(
            command,
            env=env,
            cwd=args.cwd,
            timeout=args.timeout,
            stdin=stdin,
            start_timeout=args.start_timeout,
            on_wait=_Waiting(args.name).tell,
        )
    except NotFound as error:
        raise _advice.not_found(client, name=args.name, program=args.program) from error
    except TimedOut as error:
        raise _advice.not_ready(error, waited=args.start_timeout) from error
    with stream:
        return _as_json(stream, begun=begun) if args.json else _as_it_comes(stream)


def _command(args: argparse.Namespace) -> str | list[str]:
    example = f"{args.program} exec {args.name} -- "
    if args.rest:
        words: list[str] = [*args.rest, *(args.words or [])]
        raise Invalid("The command stands after --.", hint=f"As in: {example}{shlex.join(words)}")
    if args.line is not None:
        if args.words is not None:
            raise Invalid("Give either a line with -c or a command after --, not both.")
        return args.line
    if not args.words:
        raise Invalid("There is no command.", hint=f"As in: {example}uname -a")
    return args.words


def _standard_input() -> bytes:
    if sys.stdin is None:
        return b""
    if sys.stdin.isatty():
        tell("Reading standard input to its end; Ctrl-D ends it.")
    data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    if len(data) > MAX_STDIN_BYTES:
        raise Invalid(
            f"Standard input is larger than the {MAX_STDIN_BYTES >> 20} MiB that a command can take.",
            hint="Send it in parts, or let the command fetch it.",
        )
    return data


class _Waiting:
    """Tells what a starting sandbox is waiting for, each thing once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told = ""

    def tell(self, message: str) -> None:
        if message != self._told:
            self._told = message
            tell(message if self._name in message else f"{self._name}: {message}")


def _as_it_comes(stream: ExecStream) -> int:
    places = {
        "stdout": sys.stdout.buffer if sys.stdout is not None else None,
        "stderr": sys.stderr.buffer if sys.stderr is not None else None,
    }
    for output in stream:
        _write(places[output.stream], output)
    return _exit_code(stream)


def _write(place: BinaryIO | None, output: Output) -> None:
    if place is not None:
        place.write(output.data)
        place.flush()


def _as_json(stream: ExecStream, *, begun: float) -> int:
    kept = {"stdout": Keeper(limit=_JSON_BYTES), "stderr": Keeper(limit=_JSON_BYTES)}
    for output in stream:
        kept[output.stream].add(output.data)
    out, err = kept["stdout"].captured(), kept["stderr"].captured()
    code = _exit_code(stream)
    document = {
        "exitCode": code,
        "stdout": out.text,
        "stderr": err.text,
        "truncated": out.cut > 0 or err.cut > 0,
        "durationMs": round((time.monotonic() - begun) * 1000),
    }
    print(json.dumps(document))
    return code


def _exit_code(stream: ExecStream) -> int:
    assert stream.exit_code is not None  # a stream that ends without one has raised
    return stream.exit_code & 0xFF
