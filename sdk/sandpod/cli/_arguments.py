"""What the commands have in common on the command line, and a parser that tells mistakes briefly."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from sandpod._duration import parse_duration

if TYPE_CHECKING:
    from sandpod._client import Client

_TARGET_OPTIONS = {
    ("-n", "--namespace"): ("namespace", "NAMESPACE", "the namespace (default: the context's)"),
    ("--context",): ("context", "CONTEXT", "the kubeconfig's context (default: the current one)"),
    ("--kubeconfig",): ("kubeconfig", "FILE", "the kubeconfig (default: $KUBECONFIG, then ~/.kube/config)"),
    ("--as",): ("as_user", "USER", "impersonate this user"),
    ("--as-group",): ("as_groups", "GROUP", "impersonate a member of this group; may be repeated"),
}
_NAME_PREFIXES = ("sandbox.sandpod.dev/", "sandboxes.sandpod.dev/", "sandbox/", "sandboxes/", "sbx/")


class Parser(argparse.ArgumentParser):
    failure_code = 1
    usage_code = 2
    # For exec, whose words after `--` are a program of their own and not arguments of ours.
    keeps_words = False

    def __init__(self, *, prog: str, description: str) -> None:
        # Argparse would break lines at the terminal's full width, where nobody reads comfortably.
        width = min(_terminal_width(), 110)
        super().__init__(
            prog=prog,
            description=description,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=width),
        )

    def parse(self, rest: Sequence[str], chosen: argparse.Namespace) -> argparse.Namespace:
        """Reads what follows the command's name, on top of the options that came before it."""
        mine = list(rest)
        if not self.keeps_words:
            return self.parse_args(mine, chosen)
        if "--" in mine:
            at = mine.index("--")
            chosen.words = mine[at + 1 :]
            return self.parse_args(mine[:at], chosen)
        # Options of the command may then stand among ours: exec itself says what to write, with an example.
        chosen.words = None
        args, unknown = self.parse_known_args(mine, chosen)
        if args.rest:
            args.rest = mine[mine.index(args.rest[0]) :]
        elif unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return args

    def error(self, message: str) -> NoReturn:
        self.exit(self.usage_code, f"{self.prog}: {message}\nTry: {self.prog} --help\n")


def _terminal_width() -> int:
    # What shutil does, without the archive modules that come with importing it.
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns or 80
    except (OSError, ValueError):
        return 80


def program(argv0: str) -> str:
    """`kubectl sandbox` when kubectl started us as its plugin."""
    name = argv0.replace("\\", "/").rpartition("/")[2]
    return "kubectl sandbox" if name.startswith("kubectl-") else "sandpod"


def split(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Options before the command, the command, all after it."""
    with_value = {flag for flags in _TARGET_OPTIONS for flag in flags}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if words[at] in with_value else 1
    return list(words[:at]), words[at] if at < len(words) else "", list(words[at + 1 :])


def top_parser(prog: str, commands: Mapping[str, str]) -> Parser:
    listed = "\n".join(f"  {name:<12}{text}" for name, text in commands.items())
    parser = Parser(prog=prog, description=f"Linux computers in a Kubernetes cluster.\n\ncommands:\n{listed}")
    parser.usage = f"{prog} [options] COMMAND …"
    parser.epilog = (
        f"{prog} COMMAND --help says more about one, with examples. What says which cluster may also\n"
        "stand after the command."
    )
    parser.add_argument("--version", action="store_true", help="print the version of this program")
    add_target_options(parser, default=None)
    return parser


def add_target_options(parser: Parser, *, default: Any = argparse.SUPPRESS) -> None:
    # Suppressed after the command, or the default there would undo what was given before it.
    group = parser.add_argument_group("which cluster, and as whom")
    for flags, (dest, metavar, text) in _TARGET_OPTIONS.items():
        action = "append" if dest == "as_groups" else "store"
        group.add_argument(*flags, dest=dest, metavar=metavar, help=text, default=default, action=action)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Of which sandboxes, for commands that show several."""
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="those of every namespace")
    parser.add_argument(
        "-l",
        "--selector",
        metavar="LABELS",
        default="",
        help="only those with these labels, such as team=blue",
    )


def connect(args: argparse.Namespace, *, may_read_stdin: bool = True) -> Client:
    from sandpod._client import Client

    return Client(
        kubeconfig=args.kubeconfig,
        context=args.context,
        namespace=args.namespace,
        impersonate=args.as_user,
        impersonate_groups=args.as_groups or (),
        may_read_stdin=may_read_stdin,
    )


def unknown_command(name: str, commands: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, commands, n=1)
    return f"{name!r} is not a command" + (f"; did you mean {near[0]}?" if near else "")


def examples(text: str, prog: str) -> str:
    lines = text.strip("\n").replace("sandpod ", f"{prog} ").splitlines()
    return "\n".join(["examples:", *(f"  {line}" if line else "" for line in lines)])


def duration(text: str) -> float:
    """An argparse type."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def sandbox_name(text: str) -> str:
    """An argparse type: also takes the names that `-o name` prints, so that one command can feed another."""
    for prefix in _NAME_PREFIXES:
        text = text.removeprefix(prefix)
    if not text:
        raise argparse.ArgumentTypeError("a sandbox's name is not empty")
    return text


def env_pairs(items: Iterable[str], *, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`K=V`, or `K` for the value that this program's environment has. Raises ValueError with a sentence."""
    pairs: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not name:
            raise ValueError(f"--env {item}: there is no name before the =")
        if not equals and name not in environ:
            raise ValueError(
                f"--env {item}: write {item}=VALUE; this environment has no {item} to take it from"
            )
        pairs[name] = value if equals else environ[name]
    return pairs


def tell(message: str) -> None:
    """A line for the person, not for the pipe."""
    if sys.stderr is not None:
        print(message, file=sys.stderr, flush=True)
