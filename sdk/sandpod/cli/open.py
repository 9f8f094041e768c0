"""`sandpod open`: shows a port of a sandbox in the browser."""

from __future__ import annotations

import argparse
import webbrowser

from sandpod.cli import _advice, _arguments
from sandpod.cli._arguments import Parser, tell
from sandpod.errors import NotFound, SandpodError

DESCRIPTION = """\
Open the URL of an exposed port in your browser, and print it. Without PORT: of the first one.

Of a port with access Private it is a link that logs your browser in, which works once, within a minute."""

EXAMPLES = """
sandpod open demo
sandpod open demo 8080
sandpod open demo --print                                 # for another program; opens nothing
"""


def configure(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", type=_arguments.sandbox_name)
    parser.add_argument("port", metavar="PORT", type=int, nargs="?")
    parser.add_argument("--print", dest="only_print", action="store_true", help="print the URL only")


def run(args: argparse.Namespace) -> int:
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args)
    sandbox = Sandbox.named(args.name, client=client)
    try:
        ports = sandbox.ports()
    except NotFound as error:
        raise _advice.not_found(client, name=args.name, program=args.program) from error
    found = next((each for each in ports if args.port in (None, each.port)), None)
    if found is None:
        said = "No port is exposed" if args.port is None else f"Port {args.port} is not exposed"
        hint = f"Expose it with: {args.program} expose {args.name} {args.port or 'PORT'}"
        raise SandpodError(f"{said}.", hint=hint)
    if not found.url:
        raise SandpodError(f"Port {found.port} is exposed, and this installation has no previews.")
    url = sandbox.login_url(found.port) if found.access == "Private" else found.url
    print(url)
    if not args.only_print and not webbrowser.open(url):
        tell("There is no browser here; open the URL yourself.")
    return 0
