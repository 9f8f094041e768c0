"""`sandpod create`: makes a sandbox, and tells what it is waiting for until it is Ready."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sandpod._duration import format_duration
from sandpod._observation import observe
from sandpod.cli import _advice, _arguments, _output
from sandpod.cli._arguments import Parser, tell
from sandpod.errors import Conflict, Invalid, TimedOut

if TYPE_CHECKING:
    from sandpod.sandbox import Sandbox

Json = dict[str, Any]

DESCRIPTION = """\
Make a sandbox and wait until it can run commands.

What it is waiting for is told on standard error, as it changes. If that is not over in time the exit
code is 1; the sandbox stays, and the cluster goes on trying to start it."""

EXAMPLES = """
sandpod create demo
sandpod create demo --image python:3.13 --cpu 2 --memory 4Gi --sleep-after 1h
sandpod create demo --env STAGE=test --env API_TOKEN      # the second from this environment
sandpod create demo --workspace 10Gi --setup 'pip install flask' --process web='flask run --port 8080'
sandpod create demo -f sandbox.yaml                       # a manifest, under another name
sandpod create demo --no-wait -o yaml
"""


def configure(parser: Parser) -> None:
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        type=_arguments.sandbox_name,
        help="may be left out if the manifest has it",
    )
    parser.add_argument("--image", metavar="IMAGE", help="the image it runs (default: the cluster's)")
    parser.add_argument(
        "--env",
        "-e",
        metavar="K=V",
        action="append",
        default=[],
        help="a variable; K alone takes it from here; may be repeated",
    )
    parser.add_argument("--cpu", metavar="CPUS", help="CPUs it is given and held to, such as 500m or 2")
    parser.add_argument(
        "--memory", metavar="SIZE", help="memory it is given and held to, such as 512Mi or 4Gi"
    )
    parser.add_argument(
        "--sleep-after", metavar="TIME", help="how long after the last work it falls asleep, such as 10m"
    )
    parser.add_argument("--keep-alive", action="store_true", default=None, help="never fall asleep by itself")
    parser.add_argument("--template", metavar="NAME", help="the SandboxTemplate that has the other fields")
    parser.add_argument("--pool", metavar="NAME", help="the SandboxPool to take a warm pod from")
    parser.add_argument("--workspace", metavar="SIZE", help="a volume that outlives sleep, such as 10Gi")
    parser.add_argument("--storage-class", metavar="NAME", help="the kind of that volume")
    parser.add_argument(
        "--setup",
        metavar="CMD",
        action="append",
        default=[],
        help="a shell command that makes the workspace ready, once; may be repeated",
    )
    parser.add_argument(
        "--process",
        metavar="NAME=CMD",
        action="append",
        default=[],
        help="a program that runs whenever the sandbox does; may be repeated",
    )
    parser.add_argument(
        "--egress", choices=["None", "Internet", "Restricted"], help="where it may connect to"
    )
    parser.add_argument(
        "-f", "--file", metavar="FILE", help="a Sandbox in YAML or JSON to begin from; - is standard input"
    )
    parser.add_argument("--no-wait", action="store_true", help="return as soon as the cluster knows of it")
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=_arguments.duration,
        default=120.0,
        help="how long to wait (default: 2m)",
    )
    parser.add_argument(
        "-o", "--output", choices=["json", "yaml", "name"], help="print the sandbox in this form"
    )


def run(args: argparse.Namespace) -> int:
    base = _manifest(args.file) if args.file else {}
    metadata: Json = base.get("metadata") or {}
    if args.name is None and not metadata.get("name"):
        raise Invalid("The sandbox needs a name.", hint=f"As in: {args.program} create demo")
    begun = time.monotonic()
    sandbox = _made(args, base)
    if args.no_wait:
        _say(args, sandbox, f"{_output.qualified(sandbox.to_dict())} created")
        return 0
    tell(f"{sandbox.name}: created")
    _wait(args, sandbox)
    took = format_duration(time.monotonic() - begun)
    _say(args, sandbox, f"{_output.qualified(sandbox.to_dict())} is Ready after {took}")
    return 0


def _made(args: argparse.Namespace, base: Json) -> Sandbox:
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args)
    try:
        return Sandbox.create(
            args.name,
            image=args.image,
            env=_env(args.env),
            cpu=args.cpu,
            memory=args.memory,
            sleep_after=args.sleep_after,
            keep_alive=args.keep_alive,
            template=args.template,
            pool=args.pool,
            workspace=args.workspace,
            storage_class=args.storage_class,
            setup=args.setup,
            processes=_processes(args.process),
            egress=args.egress,
            manifest=base,
            namespace=args.namespace,
            wait=False,
            client=client,
        )
    except Conflict as error:
        name = args.name or base["metadata"]["name"]
        raise Conflict(
            f'There is a sandbox "{name}" already.',
            hint=f"Use it: {args.program} exec {name} -- COMMAND\n"
            f"Or make room for another: {args.program} delete {name}",
        ) from error


def _wait(args: argparse.Namespace, sandbox: Sandbox) -> None:
    warned: set[str] = set()

    def progress(changed: Sandbox) -> None:
        now = observe(changed.to_dict())
        if not now.ready:
            tell(f"{changed.name}: {now}")
        if now.warning and now.warning not in warned:
            warned.add(now.warning)
            tell(f"{changed.name}: warning: {now.warning}")

    try:
        sandbox.wait_ready(timeout=args.timeout, on_change=progress)
    except TimedOut as error:
        advice = _advice.not_ready(error, waited=args.timeout)
        advice.hint += f"\nIt goes on trying. Give it up: {args.program} delete {_advice.place(error)}"
        raise advice from error
    except KeyboardInterrupt:
        tell(f"\n{sandbox.name}: stays, and goes on starting")
        raise


def _manifest(source: str) -> Json:
    """The one Sandbox of a file."""
    import yaml

    if source == "-" and sys.stdin is None:
        raise Invalid("There is no standard input to read a manifest from.")
    text = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    try:
        documents: list[object] = [each for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        raise Invalid(f"{source} is not YAML: {' '.join(str(error).split())}.") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise Invalid(
            f"{source} has {len(documents)} documents, where one Sandbox belongs.",
            hint="For several at once there is kubectl apply.",
        )
    return cast("Json", documents[0])


def _env(items: list[str]) -> dict[str, str]:
    try:
        return _arguments.env_pairs(items)
    except ValueError as error:
        raise Invalid(f"{error}.") from error


def _processes(items: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items:
        name, equals, command = item.partition("=")
        if not (name and equals and command.strip()):
            raise Invalid(
                f"--process {item}: a name and a command belong here.",
                hint="As in: --process web='npm start'",
            )
        found[name] = command
    return found


def _say(args: argparse.Namespace, sandbox: Sandbox, sentence: str) -> None:
    if args.output is None:
        print(sentence)
    else:
        _output.show(sandbox.to_dict(), form=args.output)
