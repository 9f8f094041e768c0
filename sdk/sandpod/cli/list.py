"""`sandpod list`: who works and who sleeps, since when, why, and when the others will."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import datetime
from typing import Any

from sandpod._observation import observe
from sandpod.cli import _arguments, _output
from sandpod.cli._arguments import Parser, tell

Json = dict[str, Any]

DESCRIPTION = """\
List sandboxes with what they do: who sleeps, since when and why, and after how long without work the others
will. `get` prints the table that kubectl has."""

EXAMPLES = """
sandpod list
sandpod list -A -o wide
sandpod list -o json | jq -r '.items[] | select(.status.phase == "Asleep") | .metadata.name'
"""

_HEADINGS = ("NAME", "PHASE", "SINCE", "WHY", "SLEEPS-AFTER")
_WIDE = ("WORKSPACE", "POD", "WAKES", "URL")


def configure(parser: Parser) -> None:
    _arguments.add_selection(parser)
    parser.add_argument("-o", "--output", choices=["wide", "json"], help="the form (default: a table)")


def run(args: argparse.Namespace) -> int:
    from sandpod.sandbox import Sandbox

    client = _arguments.connect(args)
    found = Sandbox.list(all_namespaces=args.all_namespaces, label_selector=args.selector, client=client)
    items = [each.to_dict() for each in found]
    if args.output == "json":
        shown = [_output.presentable(item) for item in items]
        listed: Json = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": shown}
        sys.stdout.write(_output.serialized(listed, form="json"))
        return 0
    if not items:
        where = "in any namespace" if args.all_namespaces else f"in namespace {client.namespace}"
        tell(f"There are no sandboxes {where}. Make one with: {args.program} create NAME")
        return 0
    wide = args.output == "wide"
    first = ("NAMESPACE",) if args.all_namespaces else ()
    rows = [[*first, *_HEADINGS, *(_WIDE if wide else ())]]
    now = time.time()
    for item in items:
        where = [item["metadata"]["namespace"]] if args.all_namespaces else []
        rows.append([*where, *row(item, now=now), *(_more(item) if wide else [])])
    for line in _output.Table().lines(rows):
        print(line)
    return 0


def row(sandbox: Json, *, now: float) -> list[str]:
    seen = observe(sandbox)
    status: Json = sandbox.get("status") or {}
    spec: Json = sandbox.get("spec") or {}
    asleep = seen.phase == "Asleep"
    since = status.get("asleepSince") if asleep else status.get("startedAt")
    why = status.get("sleepReason") if asleep else "" if seen.ready else seen.reason
    after = "paused" if spec.get("paused") else status.get("sleepAfter")
    return [sandbox["metadata"]["name"], seen.phase, age(since, now=now), str(why or ""), str(after or "")]


def _more(sandbox: Json) -> list[str]:
    status: Json = sandbox.get("status") or {}
    ports: list[Json] = status.get("ports") or []
    url = next((str(port["url"]) for port in ports if port.get("url")), "")
    wakes = status.get("wakes") or 0
    return [str(status.get("workspaceClaim") or ""), str(status.get("podName") or ""), str(wakes), url]


def age(since: object, *, now: float) -> str:
    """As kubectl shows it, roughly: 45s, 12m, 5h, 3d."""
    try:
        seconds = max(0, int(now - datetime.fromisoformat(str(since)).timestamp()))
    except ValueError:
        return ""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
