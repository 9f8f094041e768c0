"""`sandpod version`: of this program, of the cluster, and whether Sandpod answers there."""

from __future__ import annotations

import argparse
import json
from typing import Any

from sandpod._version import VERSION
from sandpod.cli import _arguments
from sandpod.cli._arguments import Parser
from sandpod.errors import ConfigError, SandpodError

Json = dict[str, Any]

DESCRIPTION = """\
Print the version of this program and, as far as they can be reached, of the cluster and of Sandpod in it.

The exit code is 0 also when the cluster cannot be reached."""

EXAMPLES = """
sandpod version
sandpod version --client
sandpod version -o json
"""


def configure(parser: Parser) -> None:
    parser.add_argument("--client", action="store_true", help="only of this program; asks nobody")
    parser.add_argument("-o", "--output", choices=["json"], help="the form (default: lines)")


def run(args: argparse.Namespace) -> int:
    found: Json = {"client": VERSION}
    if not args.client:
        try:
            found |= _server(args)
        except SandpodError as error:
            found["error"] = str(error)
    if args.output == "json":
        print(json.dumps(found))
        return 0
    for what, answer in found.items():
        print(f"{what + ':':<12}{answer}")
    return 0


def _server(args: argparse.Namespace) -> Json:
    from sandpod import _requests

    with _arguments.connect(args) as client:
        found: Json = {"cluster": client.target.label}
        try:
            found["kubernetes"] = client.send(_requests.cluster_version())["gitVersion"]
            found["sandpod"] = _sandpod(client.send(_requests.api_group()))
        except ConfigError:
            raise
        except SandpodError as error:
            found["error"] = str(error)
        return found


def _sandpod(discovery: Json) -> str:
    return f"{discovery['groupVersion']} answers"
