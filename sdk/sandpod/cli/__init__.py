"""The command line: `sandpod …`, which is also `kubectl sandbox …`.

Each command is a module with `configure` and `run`. Only the one that was asked for is imported, and so
`--help` and mistakes are answered without an HTTP client ever being loaded.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from sandpod.cli import _arguments, _guard

COMMANDS = {
    "create": "make a sandbox and wait until it is Ready",
    "list": "who works and who sleeps, since when and why",
    "get": "list sandboxes, or show one, as kubectl does",
    "exec": "run a command in a sandbox",
    "logs": "what a sandbox's setup has written",
    "pause": "put sandboxes to sleep, and keep them asleep",
    "resume": "end a pause",
    "wake": "wake sandboxes that sleep",
    "sleep": "put sandboxes to sleep until the next request",
    "expose": "give a port of a sandbox a URL",
    "unexpose": "take a port's URL back",
    "open": "show a port in your browser",
    "ports": "the exposed ports of a sandbox and their URLs",
    "delete": "delete sandboxes",
    "version": "versions of this program and of the cluster",
    "completion": "print a script that completes commands and names in your shell",
}


def main(argv: Sequence[str] | None = None) -> int:
    try:
        # Not list(…): once the command of that name is imported, it is what stands for it here.
        return _dispatch([*(sys.argv[1:] if argv is None else argv)])
    except KeyboardInterrupt:
        return _guard.INTERRUPTED
    finally:
        _guard.settle()


def _dispatch(words: list[str]) -> int:
    program = _arguments.program(sys.argv[0])
    # What the shell's completion asks; not a command for people.
    if words[:1] == ["__complete"]:
        from sandpod.cli import completion

        return completion.answer(words[1:])
    options, name, rest = _arguments.split(words)
    if name == "help":
        options, name, rest = [], rest[0] if rest else "", ["--help"] if rest else []
    top = _arguments.top_parser(program, COMMANDS)
    chosen = top.parse_args(options)
    chosen.program = program
    if chosen.version:
        name = "version"
        rest = ["--client"]
    if not name:
        top.print_help()
        return 0
    if name not in COMMANDS:
        top.error(_arguments.unknown_command(name, COMMANDS))
    command = importlib.import_module(f"sandpod.cli.{name}")
    parser = _arguments.Parser(prog=f"{program} {name}", description=command.DESCRIPTION)
    parser.failure_code = getattr(command, "FAILURE_CODE", 1)
    parser.usage_code = getattr(command, "FAILURE_CODE", 2)
    parser.epilog = _arguments.examples(command.EXAMPLES, program)
    command.configure(parser)
    _arguments.add_target_options(parser)
    return _guard.run(parser, lambda: command.run(parser.parse(rest, chosen)))
