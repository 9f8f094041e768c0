"""Objects and tables on standard output, in the forms that kubectl has."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

Json = dict[str, Any]

_GAP = "   "


class Table:
    """Columns wide enough for what was seen so far: a watch's later rows stay in line with the first."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def lines(self, rows: Iterable[Sequence[str]]) -> list[str]:
        rows = list(rows)
        for row in rows:
            self._widths += [0] * (len(row) - len(self._widths))
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, row, strict=False)]
        return [
            _GAP.join(cell.ljust(width) for cell, width in zip(row, self._widths, strict=False)).rstrip()
            for row in rows
        ]


def columns(table: Json, *, wide: bool, namespaced: bool) -> tuple[list[str], list[int]]:
    """The headings, and which of a row's cells stand under them, of a Table made by the API server."""
    shown = [
        (index, str(column["name"]).upper())
        for index, column in enumerate(table["columnDefinitions"])
        if wide or not column.get("priority")
    ]
    return ["NAMESPACE"] * namespaced + [name for _, name in shown], [index for index, _ in shown]


def row(entry: Json, *, cells: Sequence[int], namespaced: bool) -> list[str]:
    values: list[Any] = entry["cells"]
    shown = ["" if values[index] is None else str(values[index]) for index in cells]
    return [str(entry["object"]["metadata"].get("namespace", ""))] * namespaced + shown


def qualified(manifest: Json) -> str:
    return f"sandbox.sandpod.dev/{manifest['metadata']['name']}"


def presentable(manifest: Json) -> Json:
    """Without the bookkeeping of field managers, which nobody reads."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    return {**manifest, "metadata": metadata}


def serialized(document: Json, *, form: str) -> str:
    """As `json` or `yaml`, with a final newline."""
    if form == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    import yaml

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def show(manifest: Json, *, form: str) -> None:
    if form == "name":
        sys.stdout.write(qualified(manifest) + "\n")
    else:
        sys.stdout.write(serialized(presentable(manifest), form=form))
    sys.stdout.flush()
