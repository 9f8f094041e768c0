"""Paths as clients send them: checked, resolved against a directory, and shown again."""

import os

from sandpod_runtime.errors import invalid

LONGEST = 4096


def checked(path: str | None, *, field: str = "path") -> str:
    """The path, if the kernel could take it."""
    if not path:
        raise invalid(field, "give a path", code="INVALID_PATH")
    if "\0" in path:
        raise invalid(field, "a path cannot hold NUL", code="INVALID_PATH")
    if len(os.fsencode(path)) > LONGEST:
        raise invalid(field, f"a path is at most {LONGEST} bytes long", code="INVALID_PATH")
    return path


def resolved(path: str, *, base: str) -> str:
    """Absolute, because the runtime has no directory of its own. `..` stays: only the kernel knows what it
    means behind a link.
    """
    return path if path.startswith("/") else os.path.join(base, path)  # noqa: PTH118 (pathlib would tidy it)


def shown(path: str) -> str:
    """A path for a reply. Names are bytes; what is not UTF-8 in them becomes U+FFFD, or no JSON could hold
    it.
    """
    return os.fsencode(path).decode("utf-8", "replace")
