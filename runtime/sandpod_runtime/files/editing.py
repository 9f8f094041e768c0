"""Changes of a file's content: written anew, appended to, or edited in memory and replaced as a whole."""

import contextlib
import os
from collections.abc import Callable, Sequence

from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.files import lines
from sandpod_runtime.files.draft import Draft
from sandpod_runtime.files.opening import open_file
from sandpod_runtime.files.replacing import LARGEST, Edit, TooLargeError, UnfitError, replaced
from sandpod_runtime.files.source import Source
from sandpod_runtime.files.temporary import write_all
from sandpod_runtime.paths import shown


def write(path: str, parts: Sequence[bytes], *, mode: int | None = None, create_only: bool = False) -> int:
    draft = Draft(path, mode=mode, create_only=create_only)
    try:
        draft.write(parts)
        draft.publish()
    finally:
        draft.discard()
    return draft.size


def append(path: str, parts: Sequence[bytes]) -> int:
    """In place, as only that leaves what others append meanwhile."""
    try:
        file = open_file(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        return write(path, parts)
    try:
        before = os.fstat(file).st_size
        try:
            write_all(file, parts)
        except OSError:
            # A part of it would be worse than nothing.
            with contextlib.suppress(OSError):
                os.ftruncate(file, before)
            raise
        return os.fstat(file).st_size
    finally:
        os.close(file)


def insert(path: str, parts: Sequence[bytes], *, line: int) -> tuple[int, int]:
    """The size and the number of lines after that."""

    def change(data: bytes) -> bytes:
        text = b"".join(parts)
        if len(data) + len(text) > LARGEST:
            raise TooLargeError(len(data) + len(text))
        if (changed := lines.inserted(data, text, line=line)) is None:
            total = lines.count(data)
            raise invalid("line", f"the file has {total} lines, so this can be at most {total + 1}")
        return changed

    data = _changed(path, change, operation="file.insert")
    return len(data), lines.count(data)


def replace(path: str, edits: Sequence[Edit], *, given: str) -> tuple[int, list[int]]:
    """The size after that, and how often each edit was made."""
    counts: list[int] = []

    def change(data: bytes) -> bytes:
        try:
            changed, made = replaced(data, edits)
        except UnfitError as error:
            raise _unfit(error, path=given) from error
        counts.extend(made)
        return changed

    return len(_changed(path, change, operation="file.replace")), counts


def _changed(path: str, change: Callable[[bytes], bytes], *, operation: str) -> bytes:
    source = Source(path)
    try:
        if source.size > LARGEST:
            raise too_large(path, source.size, operation=operation)
        data = source.read(0, LARGEST)
    finally:
        source.close()
    try:
        changed = change(data)
    except TooLargeError as error:
        raise too_large(path, error.size, operation=operation) from error
    if changed != data:
        write(path, [changed])
    return changed


def too_large(path: str, size: int, *, operation: str, suggestion: str | None = None) -> Fault:
    return Fault(
        "FILE_TOO_LARGE",
        f"{shown(path)}: {size} bytes are more than the limit of {LARGEST} ({LARGEST >> 20} MiB)",
        context={"path": shown(path), "operation": operation, "maxSize": LARGEST, "actualSize": size},
        operation=operation,
        suggestion=suggestion,
    )


def _unfit(error: UnfitError, *, path: str) -> Fault:
    field = f"edits[{error.index}].old"
    hint = None
    if not error.found:
        message = "this text was not found; it has to be exactly as in the file"
        code = "NOT_FOUND"
        if error.near:
            first = error.near[0]
            message += f" (see line {first.line}: {first.difference})"
    else:
        at = ", ".join(map(str, error.lines))
        message = f"this text was found {error.found} times, at lines {at}; it has to be there once"
        code = "NOT_UNIQUE"
        hint = "add the text around it, or say all: true"
    return Fault(
        "VALIDATION_FAILED",
        f"{shown(path)}: {field}: {message}; nothing was changed",
        context={
            "path": shown(path),
            "operation": "file.replace",
            "validationErrors": [{"field": field, "message": message, "code": code}],
            "edit": error.index,
            "found": error.found,
            "lines": error.lines,
            "nearMisses": [
                {"line": near.line, "text": near.text, "difference": near.difference} for near in error.near
            ],
        },
        operation="file.replace",
        suggestion=hint,
    )
