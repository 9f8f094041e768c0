"""`sandpod sleep`: puts sandboxes to sleep until the next request."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sandpod.cli import _changing
from sandpod.cli._arguments import Parser

if TYPE_CHECKING:
    from sandpod.sandbox import Sandbox

DESCRIPTION = """\
Put sandboxes to sleep now, whatever they are doing; the next request wakes them. `pause` keeps them asleep.

Sessions are saved where there is a workspace, and all that runs is ended. Without a workspace files are lost,
as with every sleep."""

EXAMPLES = """
sandpod sleep demo
sandpod sleep demo other --no-wait
"""


def configure(parser: Parser) -> None:
    _changing.configure(parser, until="asleep")


def run(args: argparse.Namespace) -> int:
    return _changing.run(args, change=_change, asked="is told to sleep", done="is asleep")


def _change(sandbox: Sandbox, wait: bool, timeout: float) -> None:
    sandbox.sleep(wait=wait, timeout=timeout, on_change=_changing.progress)
