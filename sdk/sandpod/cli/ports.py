"""`sandpod ports`: which ports of a sandbox are exposed, and where."""

from __future__ import annotations

import argparse

from sandpod.cli import _advice, _arguments, _output
from sandpod.cli._arguments import Parser, tell
from sandpod.errors import NotFound

DESCRIPTION = """\
List the ports of a sandbox that are exposed, and their URLs."""

EXAMPLES = """
sandpod ports demo
"""

_HEADINGS = ("PORT", "NAME", "ACCESS", "URL")


def configure(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=_arguments.sandbox_name)


def run(args: argparse.Namespace) -> int:
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args)
    try:
        found = Sandbox.named(args.name, client=client).ports()
    except NotFound as error:
        raise _advice.not_found(client, name=args.name, program=args.program) from error
    if not found:
        tell(f"No port of {args.name} is exposed. Expose one with: {args.program} expose {args.name} PORT")
        return 0
    rows = [_HEADINGS, *((str(each.port), each.name, each.access, each.url) for each in found)]
    for line in _output.Table().lines(rows):
        print(line)
    return 0
