"""`sandpod resume`: ends a pause, and starts the sandboxes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sandpod.cli import _changing
from sandpod.cli._arguments import Parser

if TYPE_CHECKING:
    from sandpod.sandbox import Sandbox

DESCRIPTION = """\
End a pause: the sandboxes start, with their sessions and processes, and sleep by themselves again."""

EXAMPLES = """
sandpod resume demo
sandpod resume demo other --no-wait
"""


def configure(parser: Parser) -> None:
    _changing.configure(parser, until="Ready")


def run(args: argparse.Namespace) -> int:
    return _changing.run(args, change=_change, asked="is resumed", done="is Ready")


def _change(sandbox: Sandbox, wait: bool, timeout: float) -> None:
    sandbox.resume(wait=wait, timeout=timeout, on_change=_changing.progress)
