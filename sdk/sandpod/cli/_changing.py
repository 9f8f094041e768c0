"""What `pause`, `resume` and `wake` have in common: several sandboxes, one after the other."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from sandpod._observation import observe
from sandpod.cli import _advice, _arguments
from sandpod.cli._arguments import Parser, tell
from sandpod.errors import NotFound, SandpodError

if TYPE_CHECKING:
    from sandpod.sandbox import Sandbox


def configure(parser: Parser, *, until: str) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+", type=_arguments.sandbox_name)
    parser.add_argument(
        "--wait",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=f"wait until they are {until} (default: yes)",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=_arguments.duration,
        default=120.0,
        help="how long to wait for each (default: 2m)",
    )


def run(
    args: argparse.Namespace, *, change: Callable[[Sandbox, bool, float], object], asked: str, done: str
) -> int:
    """All that are named are tried; 1 if one of them failed."""
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args)
    failed = False
    for name in dict.fromkeys(args.names):
        try:
            change(Sandbox.named(name, client=client), args.wait, args.timeout)
            print(f"sandbox.sandpod.dev/{name} {done if args.wait else asked}", flush=True)
        except NotFound:
            tell(str(_advice.not_found(client, name=name)))
            failed = True
        except SandpodError as error:
            tell(str(error))
            failed = True
    return 1 if failed else 0


def progress(sandbox: Sandbox) -> None:
    now = observe(sandbox.to_dict())
    if not now.ready:
        tell(f"{sandbox.name}: {now}")
