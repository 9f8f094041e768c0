"""`sandpod logs`: what the commands of a sandbox's setup have written."""

from __future__ import annotations

import argparse
import sys

from sandpod.cli import _advice, _arguments
from sandpod.cli._arguments import Parser
from sandpod.errors import Invalid, NotFound

DESCRIPTION = """\
Print what the commands of a sandbox's setup have written, also while they run.

Of much output the beginning and the end are kept. With a workspace the log outlives a sleep."""

EXAMPLES = """
sandpod logs demo --setup
sandpod logs demo --setup -f                              # until the setup has ended
"""


def configure(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=_arguments.sandbox_name)
    parser.add_argument("--setup", action="store_true", help="the setup's log")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the setup has ended")


def run(args: argparse.Namespace) -> int:
    if not args.setup:
        raise Invalid(
            "Say which log.",
            hint=f"As in: {args.program} logs {args.name} --setup\n"
            f"That of a process is read in the sandbox: {args.program} exec {args.name} -- …",
        )
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args)
    try:
        for piece in Sandbox.named(args.name, client=client).setup_log(follow=args.follow):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except NotFound as error:
        raise _advice.not_found(client, name=args.name, program=args.program) from error
    return 0
