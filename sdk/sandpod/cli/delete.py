"""`sandpod delete`: deletes sandboxes, and waits until they are gone."""

from __future__ import annotations

import argparse
import enum
import sys
from typing import TYPE_CHECKING

from sandpod.cli import _advice, _arguments, _output
from sandpod.cli._arguments import Parser, tell
from sandpod.errors import Invalid, NotFound, SandpodError

if TYPE_CHECKING:
    from sandpod._client import Client
    from sandpod.sandbox import Sandbox

DESCRIPTION = """\
Delete sandboxes, with all that runs in them. A workspace goes, too, unless its sandbox says reclaim: Retain.

All that are named are tried; the exit code is 1 if one of them failed."""

EXAMPLES = """
sandpod delete demo
sandpod delete demo other --no-wait
sandpod delete --all -n playground
sandpod delete --all -y                                   # without being asked
"""


def configure(parser: Parser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", type=_arguments.sandbox_name)
    parser.add_argument("--all", action="store_true", help="every sandbox of the namespace; asks first")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--ignore-not-found", action="store_true", help="one that is not there is not a failure"
    )
    parser.add_argument(
        "--wait",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="wait until they are gone (default: yes)",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=_arguments.duration,
        default=120.0,
        help="how long to wait (default: 2m)",
    )


def run(args: argparse.Namespace) -> int:
    if bool(args.names) == args.all:
        raise Invalid(
            "Say which sandboxes: their names, or --all.", hint=f"As in: {args.program} delete demo"
        )
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args)
    if args.all:
        chosen = Sandbox.list(client=client)
        if not chosen:
            tell(f"There are no sandboxes in namespace {client.namespace}.")
            return 0
        _ask(args, client, [sandbox.name for sandbox in chosen])
    else:
        chosen = [Sandbox.named(name, client=client) for name in dict.fromkeys(args.names)]
    # First all are asked to go, then each is waited for: together they take as long as the slowest.
    outcomes = [_begin(args, client, sandbox) for sandbox in chosen]
    ended = [
        outcome is not _Outcome.FAILED and (outcome is _Outcome.ABSENT or _end(args, sandbox))
        for sandbox, outcome in zip(chosen, outcomes, strict=True)
    ]
    return 0 if all(ended) else 1


class _Outcome(enum.Enum):
    GOING = enum.auto()
    ABSENT = enum.auto()
    FAILED = enum.auto()


def _begin(args: argparse.Namespace, client: Client, sandbox: Sandbox) -> _Outcome:
    try:
        if args.wait and sandbox.uid is None:
            sandbox.refresh()
        sandbox.delete()
    except NotFound:
        if args.all or args.ignore_not_found:
            return _Outcome.ABSENT
        tell(str(_advice.not_found(client, name=sandbox.name)))
        return _Outcome.FAILED
    except SandpodError as error:
        tell(str(error))
        return _Outcome.FAILED
    return _Outcome.GOING


def _end(args: argparse.Namespace, sandbox: Sandbox) -> bool:
    try:
        if args.wait:
            sandbox.wait_deleted(timeout=args.timeout)
    except SandpodError as error:
        tell(str(error))
        return False
    print(f"{_output.qualified(sandbox.to_dict())} deleted", flush=True)
    return True


def _ask(args: argparse.Namespace, client: Client, names: list[str]) -> None:
    if args.yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise Invalid("Nobody is here to be asked whether to delete all of them.", hint="-y says yes.")
    tell(f"{len(names)} in namespace {client.namespace} of {client.target.label}: {', '.join(names)}")
    print("Delete all of them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise SandpodError("Nothing was deleted.")
