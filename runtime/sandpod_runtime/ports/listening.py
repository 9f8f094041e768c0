"""Who listens: the kernel's table of sockets, and the processes that hold them."""

import os
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from sandpod_runtime.process import procfs

# The first is the reader's own. One who is none of those that this /proc shows (strict/world.py) has none.
_NETWORKS = ("/proc/net", "/proc/1/net")
_TABLES = (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6))
# Sockets that listen come before the connections, of which there may be any number.
_TABLE_READ = 4 << 20
_LISTENING = b"0A"
_MAPPED = bytes(10) + b"\xff\xff"
# Processes with very many descriptors are not looked through to the end.
_MOST_DESCRIPTORS = 100_000
_COMMAND_SHOWN = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Socket:
    address: str
    port: int
    uid: int
    inode: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    pid: int
    name: str
    command: str
    # Its parent, the parent's parent, and so on.
    ancestors: tuple[int, ...]


def listening() -> list[tuple[Socket, Holder | None]]:
    """Every listening socket, and the process that holds it: of several the first, which forked the others.
    None where that is not ours to see.
    """
    found: list[Socket] = []
    network = next((each for each in _NETWORKS if os.access(f"{each}/tcp", os.R_OK)), _NETWORKS[0])
    for table, family in _TABLES:
        try:
            found += parsed(_head(f"{network}/{table}"), family=family)
        except OSError:
            continue  # a kernel without IPv6
    holders = _holders({each.inode for each in found})
    parents = {pid: stat.parent for pid, stat in procfs.processes()[0].items()} if holders else {}
    return [
        (each, _holder(holders[each.inode], parents) if each.inode in holders else None)
        for each in sorted(found, key=lambda each: (each.port, each.address))
    ]


def parsed(table: bytes, *, family: int) -> list[Socket]:
    """The listening sockets of a /proc/net/tcp or tcp6; lines that make no sense are passed over."""
    found: list[Socket] = []
    for line in table.split(b"\n")[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != _LISTENING:
            continue
        try:
            address, _, port = fields[1].partition(b":")
            found.append(
                Socket(
                    address=shown_address(bytes.fromhex(address.decode("ascii")), family=family),
                    port=int(port, 16),
                    uid=int(fields[7]),
                    inode=int(fields[9]),
                )
            )
        except ValueError:
            continue
    return found


def shown_address(words: bytes, *, family: int) -> str:
    """The kernel prints the address as 32-bit numbers of the machine's own byte order."""
    if len(words) != (4 if family == socket.AF_INET else 16):
        raise ValueError("this is no address")
    packed = b"".join(
        int.from_bytes(words[at : at + 4]).to_bytes(4, sys.byteorder) for at in range(0, len(words), 4)
    )
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(family, packed)


def ancestors(pid: int, parents: dict[int, int]) -> tuple[int, ...]:
    found: list[int] = []
    while (pid := parents.get(pid, 0)) and pid not in found:
        found.append(pid)
    return tuple(found)


def _holders(wanted: Iterable[int]) -> dict[int, int]:
    links = {f"socket:[{inode}]": inode for inode in wanted}
    found: dict[int, int] = {}
    left = _MOST_DESCRIPTORS
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()):  # noqa: PTH208
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 (as for all of /proc: many, and cheap)
        except OSError:
            continue  # it has ended, or is another user's
        for name in descriptors[: max(0, left)]:
            try:
                link = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
            except OSError:
                continue
            if (inode := links.get(link)) is not None:
                found.setdefault(inode, pid)
        left -= len(descriptors)
    return found


def _holder(pid: int, parents: dict[int, int]) -> Holder | None:
    try:
        name = procfs.read(f"/proc/{pid}/comm").rstrip(b"\n")
        command = procfs.read(f"/proc/{pid}/cmdline")[:_COMMAND_SHOWN].rstrip(b"\0")
    except OSError:
        return None
    return Holder(
        pid=pid,
        name=name.decode("utf-8", "replace"),
        command=command.replace(b"\0", b" ").decode("utf-8", "replace"),
        ancestors=ancestors(pid, parents),
    )


def _head(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts: list[bytes] = []
        size = 0
        while size < _TABLE_READ and (part := os.read(descriptor, 65_536)):
            parts.append(part)
            size += len(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)
