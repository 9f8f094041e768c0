"""`sandpod pause`: puts sandboxes to sleep, and keeps them asleep."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sandpod.cli import _changing
from sandpod.cli._arguments import Parser

if TYPE_CHECKING:
    from sandpod.sandbox import Sandbox

DESCRIPTION = """\
Put sandboxes to sleep, and keep them asleep until `resume`: no request wakes them.

Sessions are saved where there is a workspace, and all that runs is ended. Without a workspace files are lost,
as with every sleep."""

EXAMPLES = """
sandpod pause demo
sandpod pause demo other --no-wait
"""


def configure(parser: Parser) -> None:
    _changing.configure(parser, until="asleep")


def run(args: argparse.Namespace) -> int:
    return _changing.run(args, change=_change, asked="is paused", done="is asleep")


def _change(sandbox: Sandbox, wait: bool, timeout: float) -> None:
    sandbox.pause(wait=wait, timeout=timeout, on_change=_changing.progress)
