"""`sandpod wake`: wakes sandboxes that sleep."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sandpod.cli import _changing
from sandpod.cli._arguments import Parser

if TYPE_CHECKING:
    from sandpod.sandbox import Sandbox

DESCRIPTION = """\
Wake sandboxes that sleep, as a request to them would. One that is awake stays so for another
sleepAfter; one that is paused is not woken: `resume` it."""

EXAMPLES = """
sandpod wake demo
sandpod wake demo --no-wait
"""


def configure(parser: Parser) -> None:
    _changing.configure(parser, until="Ready")


def run(args: argparse.Namespace) -> int:
    return _changing.run(args, change=_change, asked="is asked to wake", done="is Ready")


def _change(sandbox: Sandbox, wait: bool, timeout: float) -> None:
    sandbox.wake(wait=wait, timeout=timeout, on_change=_changing.progress)
