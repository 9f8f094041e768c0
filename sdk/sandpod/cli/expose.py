"""`sandpod expose`: gives a port of a sandbox a URL, and prints it."""

from __future__ import annotations

import argparse

from sandpod.cli import _advice, _arguments
from sandpod.cli._arguments import Parser, tell
from sandpod.errors import NotFound

DESCRIPTION = """\
Give a port of a sandbox a URL, and print it. Nothing has to listen there yet.

With access Token, whoever has the URL can open it. With Private, they also have to prove who they are."""

EXAMPLES = """
sandpod expose demo 8080
sandpod expose demo 8080 --name web --access Private
sandpod expose demo 8080 --rotate                         # another URL; the old one opens nothing any more
"""


def configure(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=_arguments.sandbox_name)
    parser.add_argument("port", metavar="PORT", type=int)
    parser.add_argument("--name", dest="port_name", metavar="WORD", help="what to call it, such as web")
    parser.add_argument("--access", choices=["Token", "Private"], help="who may open it (default: Token)")
    parser.add_argument("--rotate", action="store_true", help="another URL than it had before")


def run(args: argparse.Namespace) -> int:
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args)
    sandbox = Sandbox.named(args.name, client=client)
    try:
        exposed = sandbox.expose(args.port, name=args.port_name, access=args.access)
    except NotFound as error:
        raise _advice.not_found(client, name=args.name, program=args.program) from error
    if args.rotate:
        exposed = sandbox.rotate(args.port)
    if exposed.url:
        print(exposed.url)
    else:
        tell(f"Port {exposed.port} is exposed, and this installation has no previews: there is no URL.")
    return 0
