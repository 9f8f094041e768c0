"""Permissions: as clients write them, as `ls` shows them, and changed for a file or a tree."""

import os
import stat
from collections.abc import Callable, Iterator

from sandpod_runtime.errors import invalid

LARGEST = 0o7777
# With these its owner can list and enter a directory.
_ENTERABLE = stat.S_IRUSR | stat.S_IXUSR


def permission_bits(given: str | int, *, field: str = "mode") -> int:
    """A text is octal as for chmod ("644", "0755"), a number is the number itself (420 is 0644)."""
    if isinstance(given, str):
        digits = given.removeprefix("0o")
        if not 1 <= len(digits) <= 5 or any(digit not in "01234567" for digit in digits):
            raise invalid(field, 'give octal digits, such as "644" or "0755"')
        given = int(digits, 8)
    if not 0 <= given <= LARGEST:
        raise invalid(field, "permissions are between 0 and 7777 (octal)")
    return given


def symbolic(mode: int) -> str:
    """Nine characters, as the protocol has them: nothing about kind, setuid or the sticky bit."""
    return "".join(
        letter if mode & (1 << (8 - position)) else "-" for position, letter in enumerate("rwxrwxrwx")
    )


def change(path: str, bits: int, *, recursive: bool, check: Callable[[], None]) -> int:
    """Follows a link that is `path`, and none below. Returns how many were changed."""
    if not (recursive and os.path.isdir(path)):
        os.chmod(path, bits)
        return 1
    count = 0
    # Rights that let us in are given on the way down, rights that keep us out on the way back.
    down = bits & _ENTERABLE == _ENTERABLE
    for name in _tree(path, down=down):
        check()
        os.chmod(name, bits)
        count += 1
    return count


def _tree(path: str, *, down: bool) -> Iterator[str]:
    """A directory and all below it but links; directories before or after what they hold."""
    stack: list[tuple[str, bool]] = [(path, False)]
    while stack:
        name, is_done = stack.pop()
        if is_done:
            yield name
            continue
        if down:
            yield name
        else:
            stack.append((name, True))
        with os.scandir(name) as entries:
            below = [
                (entry.path, entry.is_dir(follow_symlinks=False), entry.is_symlink()) for entry in entries
            ]
        for entry, is_directory, is_link in below:
            if not is_link:
                stack.append((entry, not is_directory))
