"""`sandpod unexpose`: takes a port's URL back."""

from __future__ import annotations

import argparse

from sandpod.cli import _arguments
from sandpod.cli._arguments import Parser

DESCRIPTION = """\
Take a port's URL back: it opens nothing any more. Exposed again, the port gets another one."""

EXAMPLES = """
sandpod unexpose demo 8080
"""


def configure(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=_arguments.sandbox_name)
    parser.add_argument("port", metavar="PORT", type=int)


def run(args: argparse.Namespace) -> int:
    from sandpod.sandbox import Sandbox

    Sandbox.named(args.name, client=_arguments.connect(args)).unexpose(args.port)
    print(f"sandbox.sandpod.dev/{args.name}: port {args.port} is not exposed any more")
    return 0
