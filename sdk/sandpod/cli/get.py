"""`sandpod get`: a table as kubectl would print it, made by the API server; or the objects themselves."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sandpod import _requests
from sandpod._watch import Expired
from sandpod.cli import _advice, _arguments, _output
from sandpod.cli._arguments import Parser, tell
from sandpod.errors import ConnectionLost, Invalid, NotFound

if TYPE_CHECKING:
    from sandpod._client import Client

Json = dict[str, Any]

_RETRY_SECONDS = 1.0

DESCRIPTION = "List sandboxes, or show one."

EXAMPLES = """
sandpod get
sandpod get demo -o yaml
sandpod get -A -o wide
sandpod get -w                                            # and go on with each change
sandpod get -l team=blue -o name | xargs sandpod delete
"""


def configure(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", type=_arguments.sandbox_name)
    _arguments.add_selection(parser)
    parser.add_argument(
        "-o", "--output", choices=["wide", "json", "yaml", "name"], help="the form (default: a table)"
    )
    parser.add_argument("-w", "--watch", action="store_true", help="then print each change, until Ctrl-C")


def run(args: argparse.Namespace) -> int:
    client = _arguments.connect(args)
    if args.name is not None and args.all_namespaces:
        raise Invalid("One sandbox is in one namespace.", hint="Leave out either the name or -A.")
    view: _Rows | _Objects = _Objects(args) if args.output in ("json", "yaml", "name") else _Rows(args)
    version = ""
    try:
        version = _present(client, args, view)
    except NotFound:
        if args.name is None:
            raise
    if args.name is not None and not view.shown:
        raise _advice.not_found(client, name=args.name, program=args.program)
    if args.watch:
        _follow(client, args, view, version=version)
    elif not view.shown and args.name is None and args.output is None:
        where = "in any namespace" if args.all_namespaces else f"in namespace {client.namespace}"
        tell(f"There are no sandboxes {where}. Make one with: {args.program} create NAME")
    return 0


class _Rows:
    """Answers of the API server in the form of a Table."""

    accept = _requests.TABLE

    def __init__(self, args: argparse.Namespace) -> None:
        self._wide: bool = args.output == "wide"
        self._namespaced: bool = args.all_namespaces
        self._table = _output.Table()
        self._cells: list[int] = []
        self.shown = 0

    def page(self, answer: Json) -> None:
        self._print(answer["rows"], columns=answer)

    def end(self) -> None:
        pass

    def event(self, kind: str, answer: Json) -> None:
        self._print(answer["rows"], columns=answer, note=" (deleted)" if kind == "DELETED" else "")

    def _print(self, rows: list[Json], *, columns: Json, note: str = "") -> None:
        lines = [_output.row(entry, cells=self._cells, namespaced=self._namespaced) for entry in rows]
        # Only the first answer names the columns, and headings over nothing are no answer.
        if not self._cells and rows:
            headings, self._cells = _output.columns(columns, wide=self._wide, namespaced=self._namespaced)
            lines = [
                headings,
                *(_output.row(entry, cells=self._cells, namespaced=self._namespaced) for entry in rows),
            ]
        self.shown += len(rows)
        for line in self._table.lines(lines):
            sys.stdout.write(f"{line}{note}\n")
        sys.stdout.flush()


class _Objects:
    """The objects themselves, for programs."""

    accept = "application/json"

    def __init__(self, args: argparse.Namespace) -> None:
        self._form: str = args.output
        self._one: bool = args.name is not None
        self._items: list[Json] = []
        self.shown = 0

    def page(self, answer: Json) -> None:
        items: list[Json] = answer.get("items", [answer])
        typed = [{"apiVersion": _requests.API_VERSION, "kind": _requests.KIND, **item} for item in items]
        self._items += [_output.presentable(item) for item in typed]

    def end(self) -> None:
        items, self._items = self._items, []
        self.shown += len(items)
        if self._form == "name" or self._one:
            for item in items:
                _output.show(item, form=self._form)
        else:
            listed: Json = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}
            sys.stdout.write(_output.serialized(listed, form=self._form))

    def event(self, kind: str, answer: Json) -> None:
        if self._form == "yaml":
            sys.stdout.write("---\n")
        _output.show(answer, form=self._form)


def _present(client: Client, args: argparse.Namespace, view: _Rows | _Objects) -> str:
    """Prints what there is now; the version from which a watch goes on."""
    version = ""
    for answer in _pages(client, args, accept=view.accept):
        view.page(answer)
        version = str(answer["metadata"].get("resourceVersion") or "")
    view.end()
    return version


def _pages(client: Client, args: argparse.Namespace, *, accept: str) -> Iterator[Json]:
    if args.name is not None and not args.watch:
        yield client.send(_requests.get(namespace=client.namespace, name=args.name, accept=accept))
        return
    namespace = None if args.all_namespaces else client.namespace
    after = ""
    while True:
        answer = client.send(
            _requests.list_page(
                namespace=namespace, name=args.name, after=after, label_selector=args.selector, accept=accept
            )
        )
        yield answer
        after = str(answer["metadata"].get("continue") or "")
        if not after:
            return


def _follow(client: Client, args: argparse.Namespace, view: _Rows | _Objects, *, version: str) -> None:
    while True:
        request = _requests.watch(
            namespace=None if args.all_namespaces else client.namespace,
            name=args.name,
            resource_version=version,
            label_selector=args.selector,
            accept=view.accept,
        )
        try:
            for event in client.watch(request):
                version = str(event["object"]["metadata"].get("resourceVersion") or version)
                if event["type"] != "BOOKMARK":
                    view.event(event["type"], event["object"])
        except Expired:
            version = _present(client, args, view)
        except ConnectionLost:
            # Begun again where it ended; if the cluster is gone for good, that says so.
            time.sleep(_RETRY_SECONDS)
