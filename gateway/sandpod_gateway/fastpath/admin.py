"""HAProxy's admin socket: commands in, answers out, and what of it the fast path asks for. Nothing is kept
between two calls, so that an HAProxy that was restarted is found as it is.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

# It answers in less than a millisecond; one that does not answer for so long does not serve either.
SECONDS: Final = 2.0
# All hosts with their counters, or all sessions, of which each takes two kilobytes
MOST_BYTES: Final = 32 * 1024 * 1024
_PROMPT: Final = "\n> "
_ENTRY: Final = re.compile(r"^0x[0-9a-f]+: key=(?P<host>\S+) (?P<data>.*)$", re.MULTILINE)
_SESSION: Final = re.compile(r"^(?P<id>0x[0-9a-f]+): ", re.MULTILINE)
_SERVER: Final = re.compile(r"^ +server=pod \(id=\d+\) addr=(?P<address>\S+)", re.MULTILINE)

_LOST: Final = re.compile(r"^DroppedLogs: (?P<count>\d+)$", re.MULTILINE)


class Unavailable(Exception):
    """HAProxy has not done what was asked, or nobody knows whether it has."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one host has moved since HAProxy began to count. `streams` are under way now."""

    streams: int = 0
    requests: int = 0
    answers: int = 0
    received: int = 0
    sent: int = 0


class Admin:
    def __init__(self, *, socket: str, map_file: str) -> None:
        self._socket = socket
        self._map = map_file

    async def begin(self) -> None:
        """Nobody knows any more what an earlier process has let through: all of it ends."""
        await self._do(f"clear map {self._map}", "shutdown sessions server pods/pod", "clear table hosts")

    async def put(self, entries: Mapping[str, str]) -> None:
        hosts = list(entries)
        answers = await self._do(*(f"set map {self._map} {host} {entries[host]}" for host in hosts))
        new = [host for host, answer in zip(hosts, answers, strict=True) if "not found" in answer]
        if new:
            await self._do(*(f"add map {self._map} {host} {entries[host]}" for host in new))

    async def remove(self, hosts: Iterable[str]) -> None:
        await self._do(*(f"del map {self._map} {host}" for host in hosts))

    async def traffic(self) -> dict[str, Traffic]:
        return traffic_in((await self._do("show table hosts"))[0])

    async def answered(self) -> dict[str, int]:
        """Answers of pods by the class of their code, since HAProxy was started."""
        return codes_in((await self._do("show stat pods 4 1"))[0])

    async def refused(self) -> int:
        """Requests that were none, or could be read in two ways, since HAProxy was started."""
        return refused_in((await self._do("show stat web 1 -1"))[0])

    async def lost_lines(self) -> int:
        """Lines of the audit log that nobody took fast enough, since HAProxy was started."""
        found = _LOST.search((await self._do("show info"))[0])
        return int(found["count"]) if found else 0

    async def cut(self, addresses: Iterable[str]) -> None:
        """Ends what is under way to these."""
        sessions = sessions_to((await self._do("show sess all"))[0], addresses=set(addresses))
        if sessions:
            await self._do(*(f"shutdown session {each}" for each in sessions))

    async def _do(self, *commands: str) -> Sequence[str]:
        if not commands:
            return ()
        try:
            async with asyncio.timeout(SECONDS):
                text = await self._exchange("".join(f"{each}\n" for each in ("prompt", *commands, "quit")))
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise Unavailable(f"HAProxy's admin socket: {error or 'no answer'}") from error
        # The first is the answer to `prompt`, what follows the last prompt is the end.
        answers = text.split(_PROMPT)[1:-1]
        if len(answers) != len(commands):
            raise Unavailable("HAProxy has not answered every command")
        return answers

    async def _exchange(self, text: str) -> str:
        reader, writer = await asyncio.open_unix_connection(self._socket)
        try:
            writer.write(text.encode())
            data = bytearray()
            while piece := await reader.read(65_536):
                data += piece
                if len(data) > MOST_BYTES:
                    raise Unavailable("HAProxy's answer is longer than any should be")
            return data.decode("ascii", "replace")
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def traffic_in(text: str) -> dict[str, Traffic]:
    """Of `show table`."""
    found: dict[str, Traffic] = {}
    for entry in _ENTRY.finditer(text):
        pairs = (item.partition("=") for item in entry["data"].split())
        data = {name: int(value) for name, _, value in pairs if value.isdigit()}
        found[entry["host"]] = Traffic(
            streams=data.get("conn_cur", 0),
            requests=data.get("http_req_cnt", 0),
            answers=data.get("gpc0", 0),
            received=data.get("bytes_in_cnt", 0),
            sent=data.get("bytes_out_cnt", 0),
        )
    return found


def sessions_to(text: str, *, addresses: set[str]) -> list[str]:
    """Of `show sess all`: the ids of those that have reached one of these pods."""
    found: list[str] = []
    heads = list(_SESSION.finditer(text))
    for head, after in zip_longest(heads, heads[1:]):
        server = _SERVER.search(text, head.end(), len(text) if after is None else after.start())
        if server is not None and server["address"] in addresses:
            found.append(head["id"])
    return found


def codes_in(text: str) -> dict[str, int]:
    """Of `show stat`: the one row of the server for pods."""
    row = _row(text, "pod")
    counts = {f"{digit}xx": row.get(f"hrsp_{digit}xx", "") for digit in range(1, 6)}
    return {name: int(value) for name, value in counts.items() if value.isdigit()}


def refused_in(text: str) -> int:
    """Of `show stat`: the one row of a frontend."""
    row = _row(text, "FRONTEND")
    return sum(int(row[name]) for name in ("ereq", "dreq") if row.get(name, "").isdigit())


def _row(text: str, name: str) -> dict[str, str]:
    head, *lines = [line for line in text.splitlines() if line.strip()] or [""]
    names = head.removeprefix("# ").split(",")
    rows = (dict(zip(names, line.split(","), strict=False)) for line in lines)
    return next((row for row in rows if row.get("svname") == name), dict[str, str]())
