"""`sandpod completion`: scripts for bash, zsh and fish, which ask this program for what could stand next."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from itertools import pairwise

from sandpod.cli import _arguments
from sandpod.cli._arguments import Parser
from sandpod.errors import SandpodError

DESCRIPTION = "Print a script that completes commands, options and the names of sandboxes in your shell."

EXAMPLES = """
source <(sandpod completion bash)                         # in ~/.bashrc
sandpod completion zsh > "${fpath[1]}/_sandpod"
sandpod completion fish > ~/.config/fish/completions/sandpod.fish
"""

_SCRIPTS = {
    "bash": """\
_sandpod() {
    local IFS=$'\\n'
    COMPREPLY=($(sandpod __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _sandpod sandpod
""",
    "zsh": """\
#compdef sandpod
_sandpod() {
    local -a found
    found=("${(@f)$(sandpod __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
if [[ "$funcstack[1]" = _sandpod ]]; then _sandpod "$@"; else compdef _sandpod sandpod; fi
""",
    "fish": """\
complete -c sandpod -f -a '(sandpod __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}
_SEVERAL = {"delete", "pause", "resume", "sleep", "wake"}
_NAMED = {"get", "exec", "expose", "logs", "open", "ports", "unexpose", *_SEVERAL}
_OPTION = re.compile(r"(--?[a-z][a-z-]*)(?: (\{[^}]*\}|[A-Z][A-Z=]*))?")


def configure(parser: Parser) -> None:
    parser.add_argument("shell", choices=sorted(_SCRIPTS))


def run(args: argparse.Namespace) -> int:
    sys.stdout.write(_SCRIPTS[args.shell])
    return 0


def answer(words: Sequence[str]) -> int:
    """Prints what could stand for the last word, one to a line. Says nothing rather than anything wrong."""
    *before, current = words or [""]
    for candidate in _candidates(before, current):
        if candidate.startswith(current):
            print(candidate)
    return 0


def _candidates(before: Sequence[str], current: str) -> list[str]:
    from sandpod.cli import COMMANDS

    if "--" in before:
        return []
    options, name, rest = _arguments.split(before)
    if name and name not in COMMANDS:
        return []
    known = options_of(name) if name else _options(_arguments.top_parser("sandpod", COMMANDS))
    wants = known.get(before[-1]) if before else None
    if wants is not None:
        return wants
    if current.startswith("-"):
        return sorted(known)
    if not name:
        return [*COMMANDS]
    if name == "completion":
        return sorted(_SCRIPTS)
    # Neither options nor their values: the names that are there already.
    taken = [word for last, word in pairwise(["", *rest]) if word[:1] != "-" and known.get(last) is None]
    if name in _NAMED and (name in _SEVERAL or not taken):
        return [each for each in _names([*options, *rest]) if each not in taken]
    return []


def options_of(name: str) -> dict[str, list[str] | None]:
    """A command's options. With those that take a value comes a list of what that can be, if it is known."""
    parser = Parser(prog="sandpod", description="")
    importlib.import_module(f"sandpod.cli.{name}").configure(parser)
    _arguments.add_target_options(parser)
    return _options(parser)


def _options(parser: Parser) -> dict[str, list[str] | None]:
    # Read off the help, because argparse has no public list of them: the lines that begin with an option.
    found: dict[str, list[str] | None] = {}
    for line in parser.format_help().splitlines():
        if line.startswith("  -"):
            named: list[tuple[str, str]] = _OPTION.findall(line.strip().split("  ")[0])
            # Newer versions of Python name the value only once, after the last of the spellings.
            value = named[-1][1]
            choices: list[str] = value[1:-1].split(",") if value.startswith("{") else []
            found |= {option: choices if value else None for option, _ in named}
    return found


def _names(words: Sequence[str]) -> list[str]:
    from sandpod.sandbox import Sandbox

    target = _arguments.Parser(prog="", description="")
    _arguments.add_target_options(target, default=None)
    try:
        args, _ = target.parse_known_args(list(words))
        with _arguments.connect(args, may_read_stdin=False) as client:
            return [sandbox.name for sandbox in Sandbox.list(client=client)]
    except (SandpodError, SystemExit):
        return []
