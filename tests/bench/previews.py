"""Previews through the gateway on loopback: by HAProxy, by the Python process alone, and beside them what the
same requests cost directly and through a plain nginx. Each proxy has one core for itself, the program and the
load the other.
"""

import asyncio
import contextlib
import http.client
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass

import uvloop

from tests.bench import preview_rig as rig
from tests.bench.bodies import Place, down, echo, round_trips, up
from tests.bench.hostile import attacked
from tests.bench.stats import Row, Section, ms, p50, p99
from tests.support.haproxy import HAProxy, program
from tests.support.ports import free_port

CONNECTIONS = 32
SECONDS = 4
ROUNDS = 3
# Half of the goal
RATE = 4000
IDLE = 10_000


@dataclass(frozen=True)
class Way:
    """A way to the program, and the process group whose CPU time it costs."""

    name: str
    port: int
    host: str
    group: int | None = None


def measure() -> list[Section]:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sandpod-"))
        large = stack.enter_context(rig.large())
        direct, plain, logging = free_port(), free_port(), free_port()
        stack.enter_context(rig.nginx(folder, "backend", rig.BACKEND.format(port=direct), core=rig.LOAD_CORE))
        content = rig.PROXY.format(port=plain, backend=direct)
        nginx = stack.enter_context(rig.nginx(folder, "proxy", content, core=rig.PROXY_CORE))
        content = rig.PROXY.format(port=logging, backend=direct)
        log = f"{folder}/access.log"
        logged = stack.enter_context(rig.nginx(folder, "logging", content, core=rig.PROXY_CORE, log=log))
        one, hosts = stack.enter_context(rig.steered(direct, large, cores=(rig.PROXY_CORE,)))
        both = (rig.PROXY_CORE, rig.LOAD_CORE)
        two, hosts_of_two = stack.enter_context(rig.steered(direct, large, cores=both))
        python, hosts_of_python = stack.enter_context(rig.gateway(direct, large, "", core=rig.PROXY_CORE))
        ways = [
            Way("directly", direct, "x"),
            Way("nginx, `proxy_pass` with a pool", plain, "x", nginx.pid),
            Way("the gateway, by HAProxy", one.port, hosts[0], one.process.pid),
            Way("the gateway's Python process alone", python.port, hosts_of_python[0], python.group),
            Way("by HAProxy with two threads, on both cores", two.port, hosts_of_two[0], two.process.pid),
            Way("nginx that writes a line for each request, as the gateway does", logging, "x", logged.pid),
        ]
        return [
            _rates(ways),
            _latencies(ways[:3], neighbour=hosts[1]),
            *_bodies(large, one, hosts[1], Way("", python.port, hosts_of_python[1], python.group)),
        ]


def _rates(ways: list[Way]) -> Section:
    found: dict[str, list[float]] = {}
    cost: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for way in ways:
            before = rig.cpu(way.group)
            requests, seconds = _wrk(way)
            found.setdefault(way.name, []).append(requests / seconds)
            cost.setdefault(way.name, []).append((rig.cpu(way.group) - before) / requests)
    least = p50(cost[ways[1].name])
    rows: list[Row] = []
    for way in ways:
        figure, how = f"{p50(found[way.name]):,.0f}/s", ""
        if way.group:
            each = p50(cost[way.name])
            # What a core gave a process depends on who else wanted it; what it took does not.
            figure += f"; {1 / each:,.0f} in a second of its CPU"
            how = f"{each * 1e6:.0f} µs of CPU each; {least / each:.0%} of nginx"
        goal = "≥ 8,000/s, ≥ 50 % of nginx" if way is ways[2] else ""
        rows.append(Row(what=way.name, figure=figure, goal=goal, how=how))
    title = f"Previews: small answers, {CONNECTIONS} connections, one core for the proxy, on loopback"
    return Section(title=title, rows=rows)


def _wrk(way: Way) -> tuple[int, float]:
    command = [program("wrk"), "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-H", f"Host: {way.host}"]
    text = subprocess.run(
        ["taskset", "-c", rig.LOAD_CORE, *command, f"http://127.0.0.1:{way.port}/"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    ).stdout
    found = re.search(r"(\d+) requests in ([0-9.]+)s", text)
    assert found is not None, text
    assert "Non-2xx" not in text, text
    return int(found[1]), float(found[2])


def _latencies(ways: list[Way], *, neighbour: str) -> Section:
    took: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for way in ways:
            took.setdefault(way.name, []).extend(uvloop.run(_paced(way)))
    direct, nginx, gateway = (took[way.name] for way in ways)
    rows = [
        Row(what=name, figure=f"{ms(p50(values))} / {ms(p99(values))}", how="p50 / p99")
        for name, values in took.items()
    ]
    for what, goal, others in _others(ways[2], neighbour=neighbour):
        with others:
            beside = [each for _ in range(ROUNDS) for each in uvloop.run(_paced(ways[2]))]
        figure = f"{ms(p50(beside))} / {ms(p99(beside))}; {p99(beside) / p99(gateway):.1f} times the p99"
        how = "p50 / p99" if goal else "p50 / p99; that process has the same core as load and program"
        rows.append(Row(what=f"the same beside {what}", figure=figure, goal=goal, how=how))
    goal = "p50 < 0.5 ms, p99 < 3 ms"
    for what, values, wanted in (("added by nginx", nginx, ""), ("added by the gateway", gateway, goal)):
        added = f"{ms(p50(values) - p50(direct))} / {ms(p99(values) - p99(direct))}"
        rows.append(Row(what=what, figure=added, goal=wanted))
    return Section(title=f"Previews: time to an answer at {RATE:,} requests a second", rows=rows)


def _others(way: Way, *, neighbour: str) -> list[tuple[str, str, contextlib.AbstractContextManager[None]]]:
    """Who else is there, what is wanted then, and how they come. `neighbour` is another sandbox's host."""
    twice = "≤ 2 times"
    hostile = {
        "1,000 connections that drip their heads": "drip",
        "20 that send heads of 60 KB, again and again": "flood",
        "64 that guess tokens without a pause": "guess",
    }
    return [
        (
            f"{IDLE:,} idle connections of ten addresses",
            twice,
            rig.idle(IDLE, port=way.port, host=way.host),
        ),
        *((what, twice, attacked(kind, port=way.port, core=rig.LOAD_CORE)) for what, kind in hostile.items()),
        (
            "64 that send a neighbour what HAProxy leaves to the Python process",
            "",
            attacked("unusual", port=way.port, core=rig.LOAD_CORE, host=neighbour),
        ),
    ]


async def _paced(way: Way) -> list[float]:
    """Each connection asks at its own times, whatever the last answer took. The first second, in which the
    gateway's Python process opens the host for HAProxy, does not count for any of them.
    """
    took: list[float] = []
    begun = time.perf_counter() + 0.1
    request = f"GET / HTTP/1.1\r\nHost: {way.host}\r\n\r\n".encode()

    async def ask(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        for turn in range(RATE * (1 + SECONDS) // CONNECTIONS):
            due = begun + (turn * CONNECTIONS + number) / RATE
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            sent = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"(?i)content-length: (\d+)", head)
            assert found is not None, head
            await reader.readexactly(int(found[1]))
            if due >= begun + 1:
                took.append(time.perf_counter() - sent)
        writer.close()

    os.sched_setaffinity(0, {int(rig.LOAD_CORE)})
    await asyncio.gather(*(ask(number) for number in range(CONNECTIONS)))
    return took


def _bodies(direct: int, haproxy: HAProxy, host: str, python: Way) -> list[Section]:
    """The program and the client share a core, and with the proxies' kernel threads the other one."""
    places = {
        "directly": (Place("127.0.0.1", direct, host), None),
        "by HAProxy": (Place("127.0.0.1", haproxy.port, host), haproxy.process.pid),
        "by the Python process": (Place("127.0.0.1", python.port, python.host), python.group),
    }
    rows: list[Row] = []
    for what, transfer in (("1 GiB down", down), ("1 GiB up", up), ("echoed by a WebSocket", echo)):
        for name, (place, group) in places.items():
            if name == "by HAProxy":
                _open(haproxy, host)
            before = rig.memory(group, "VmRSS", clear=True)
            figure = f"{transfer(place) / 1e6:.0f} MB/s"
            if group is not None:
                figure += f", {rig.memory(group, 'VmHWM') - before} MiB more RSS"
            goal = "≥ 300 MB/s, ≤ 32 MiB" if name == "by HAProxy" else ""
            rows.append(Row(what=f"{what}, {name}", figure=figure, goal=goal))
    _open(haproxy, host)
    took = {name: round_trips(place) for name, (place, _) in places.items()}
    trips = [
        Row(what=name, figure=f"{ms(p50(values))} / {ms(p99(values))}", how="p50 / p99")
        for name, values in took.items()
    ]
    return [
        Section(title="Previews: large bodies, on loopback", rows=rows),
        Section(title="Previews: a small message of a WebSocket and its echo, on loopback", rows=trips),
    ]


def _open(haproxy: HAProxy, host: str) -> None:
    """Until requests for this host do not pass the Python process."""
    before = asyncio.run(haproxy.admin.answered())["2xx"]
    deadline = time.monotonic() + 10
    while asyncio.run(haproxy.admin.answered())["2xx"] < before + 2:
        assert time.monotonic() < deadline, "the fast path does not open"
        connection = http.client.HTTPConnection("127.0.0.1", haproxy.port)
        connection.request("GET", "/", headers={"Host": host})
        connection.getresponse().read()
        connection.close()
