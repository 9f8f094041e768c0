"""What the image and the machine say about themselves: small, pure parsers, and a reader for their files."""

import os
import re
import stat
from dataclasses import dataclass

_MOST_READ = 65_536
_QUOTES = "'\""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    total: int
    used: int
    available: int


def text(path: str) -> str:
    """The beginning of a file; nothing when there is none, or something that a read could wait for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, _MOST_READ).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def os_release(content: str) -> dict[str, str]:
    """The names and values of an /etc/os-release, which is written as for a shell."""
    found: dict[str, str] = {}
    for line in content.splitlines():
        name, equals, value = line.strip().partition("=")
        if not equals or not name or name.startswith("#"):
            continue
        if len(value) >= 2 and value[0] in _QUOTES and value[-1] == value[0]:
            value = value[1:-1]
        found[name] = re.sub(r"\\(.)", r"\1", value)
    return found


def meminfo(content: str) -> dict[str, int]:
    """The bytes in a /proc/meminfo."""
    found: dict[str, int] = {}
    for match in re.finditer(r"^(\w+):\s+(\d{1,18}) kB$", content, re.MULTILINE | re.ASCII):
        found[match[1]] = int(match[2]) * 1024
    return found


def busy_seconds(content: str, *, ticks: int) -> float | None:
    """The seconds in which the CPUs of the machine were not idle, from a /proc/stat."""
    found = re.match(r"cpu +((?:\d{1,18} +){4,}\d{1,18})", content, re.ASCII)
    if not found:
        return None
    user, nice, system, _idle, _waiting, *others = (int(field) for field in found[1].split())
    # The last two are time of guests, which is in the first two as well.
    return (user + nice + system + sum(others[:3])) / ticks


def disk(path: str) -> Disk | None:
    """None when there is nothing at this path."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return Disk(
        total=found.f_blocks * found.f_frsize,
        used=(found.f_blocks - found.f_bfree) * found.f_frsize,
        available=found.f_bavail * found.f_frsize,
    )


def process_count() -> int:
    return sum(name.isdecimal() for name in os.listdir("/proc"))  # noqa: PTH208 (no Path for each is needed)
