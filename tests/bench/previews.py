"""Previews through the gateway on loopback: by HAProxy, by the Python process alone, and beside them what the
same requests cost directly and through a plain nginx. Each proxy has one core for itself, the program and the
load the other.
"""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tests.bench.stats import Row, Section, ms, p50, p99
from tests.support.haproxy import HAProxy, free_port, program

CONNECTIONS = 32
SECONDS = 4
ROUNDS = 3
# Half of the goal
RATE = 4000
SIZE = 1 << 30
PIECE = 1 << 20
PROXY_CORE, LOAD_CORE = "0", "1"

# No log, no file, no limit: the least that nginx can be.
NGINX = """
daemon off; worker_processes 1; pid {folder}/{name}.pid; error_log /dev/null crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  {content}
}}
"""
BACKEND = (
    'server {{ listen 127.0.0.1:{port}; location / {{ return 200 "a small answer of a program\\n"; }} }}'
)
PROXY = """
  upstream program {{ server 127.0.0.1:{backend}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://program; proxy_http_version 1.1; proxy_buffering off;
      proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
    }}
  }}
"""


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
        large = stack.enter_context(_large())
        direct, nginx = free_port(), free_port()
        stack.enter_context(_nginx(folder, "backend", BACKEND.format(port=direct), core=LOAD_CORE))
        content = PROXY.format(port=nginx, backend=direct)
        proxy = stack.enter_context(_nginx(folder, "proxy", content, core=PROXY_CORE))
        haproxy = HAProxy(Path(folder))
        stack.callback(haproxy.kill)
        _pin(haproxy.process.pid)
        asyncio.run(haproxy.listening())
        # It steers HAProxy from the other core: this is not what is measured.
        _, hosts = stack.enter_context(_gateway(direct, large, folder, core=LOAD_CORE))
        python, python_hosts = stack.enter_context(_gateway(direct, large, "", core=PROXY_CORE))
        ways = [
            Way("directly", direct, "x"),
            Way("nginx, `proxy_pass` with a pool", nginx, "x", proxy.pid),
            Way("the gateway, by HAProxy", haproxy.port, hosts[0], haproxy.process.pid),
            Way("the gateway's Python process alone", python.port, python_hosts[0], python.group),
        ]
        return [
            _rates(ways),
            _latencies(ways[:3]),
            _bodies(haproxy, hosts[1], Way("", python.port, python_hosts[1], python.group)),
        ]


def _rates(ways: list[Way]) -> Section:
    found: dict[str, list[float]] = {}
    cost: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for way in ways:
            before = _cpu(way.group)
            requests, seconds = _wrk(way)
            found.setdefault(way.name, []).append(requests / seconds)
            cost.setdefault(way.name, []).append((_cpu(way.group) - before) / requests)
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
        ["taskset", "-c", LOAD_CORE, *command, f"http://127.0.0.1:{way.port}/"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    ).stdout
    found = re.search(r"(\d+) requests in ([0-9.]+)s", text)
    assert found is not None, text
    assert "Non-2xx" not in text, text
    return int(found[1]), float(found[2])


def _latencies(ways: list[Way]) -> Section:
    took: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for way in ways:
            took.setdefault(way.name, []).extend(uvloop.run(_paced(way)))
    rows = [
        Row(what=name, figure=f"{ms(p50(values))} / {ms(p99(values))}", how="p50 / p99")
        for name, values in took.items()
    ]
    direct, nginx, gateway = (took[way.name] for way in ways)
    goal = "p50 < 0.5 ms, p99 < 3 ms"
    for what, values, wanted in (("added by nginx", nginx, ""), ("added by the gateway", gateway, goal)):
        added = f"{ms(p50(values) - p50(direct))} / {ms(p99(values) - p99(direct))}"
        rows.append(Row(what=what, figure=added, goal=wanted))
    return Section(title=f"Previews: time to an answer at {RATE:,} requests a second", rows=rows)


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

    os.sched_setaffinity(0, {int(LOAD_CORE)})
    await asyncio.gather(*(ask(number) for number in range(CONNECTIONS)))
    return took


def _bodies(haproxy: HAProxy, host: str, python: Way) -> Section:
    rows: list[Row] = []
    pids = _group(haproxy.process.pid)
    for what, transfer in (("down", _down), ("up", _up)):
        _open(haproxy, host)
        for pid in pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        before = sum(_memory(pid, "VmRSS") for pid in pids)
        rate = transfer(haproxy.port, host)
        more = sum(_memory(pid, "VmHWM") for pid in pids) - before
        figure = f"{rate:.0f} MB/s, {more} MiB more RSS"
        rows.append(Row(what=f"1 GiB {what}, by HAProxy", figure=figure, goal="≥ 300 MB/s, ≤ 32 MiB"))
        rate = transfer(python.port, python.host)
        rows.append(Row(what=f"1 GiB {what}, by the Python process", figure=f"{rate:.0f} MB/s"))
    return Section(title="Previews: large bodies, on loopback", rows=rows)


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


def _down(port: int, host: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/large", headers={"Host": host})
    began = time.perf_counter()
    answer = connection.getresponse()
    buffer, count = memoryview(bytearray(PIECE)), 0
    while got := answer.readinto(buffer):
        count += got
    connection.close()
    assert count == SIZE, (answer.status, count)
    return SIZE / 1e6 / (time.perf_counter() - began)


def _up(port: int, host: str) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    began = time.perf_counter()
    connection.putrequest("POST", "/", skip_host=True)
    connection.putheader("Host", host)
    connection.putheader("Content-Length", str(SIZE))
    connection.endheaders()
    piece = bytes(PIECE)
    for _ in range(SIZE // PIECE):
        connection.sock.sendall(piece)
    answer = connection.getresponse()
    assert answer.read() == str(SIZE).encode(), answer.status
    connection.close()
    return SIZE / 1e6 / (time.perf_counter() - began)


@contextlib.contextmanager
def _large() -> Generator[int]:
    """A program that sends and takes 1 GiB from and to memory."""

    def serve(client: socket.socket) -> None:
        piece, buffer = bytes(PIECE), memoryview(bytearray(PIECE))
        with client, contextlib.suppress(OSError):
            data = b""
            while b"\r\n\r\n" not in data:
                data += client.recv(65_536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
            count, wanted = len(body), int(length[1]) if length else 0
            while count < wanted:
                count += client.recv_into(buffer)
            answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: "
            if head.startswith(b"GET /large "):
                client.sendall(answer + b"%d\r\n\r\n" % SIZE)
                for _ in range(SIZE // PIECE):
                    client.sendall(piece)
            else:
                text = str(count).encode()
                client.sendall(answer + b"%d\r\n\r\n" % len(text) + text)

    def accept(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _nginx(folder: str, name: str, content: str, *, core: str) -> "Generator[subprocess.Popen[bytes]]":
    path = Path(folder) / f"{name}.conf"
    path.write_text(NGINX.format(folder=folder, name=name, content=content))
    command = ["taskset", "-c", core, program("nginx"), "-e", "/dev/null", "-p", folder, "-c", path]
    with subprocess.Popen(command, start_new_session=True) as process:
        yield process
        _stop(process)


@dataclass(frozen=True)
class Running:
    port: int
    group: int


@contextlib.contextmanager
def _gateway(small: int, large: int, folder: str, *, core: str) -> Generator[tuple[Running, list[str]]]:
    command = [sys.executable, "-m", "tests.bench.preview_gateway", str(small), str(large), folder]
    with subprocess.Popen(
        ["taskset", "-c", core, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield Running(told["port"], process.pid), told["hosts"]
        _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _pin(group: int) -> None:
    for pid in _group(group):
        os.sched_setaffinity(pid, {int(PROXY_CORE)})


def _group(leader: int) -> list[int]:
    """The processes of a process group."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(path.name)) == leader:
                found.append(int(path.name))
    return found


def _cpu(group: int | None) -> float:
    """Seconds of all processes of a group."""
    ticks = 0
    for pid in [] if group is None else _group(group):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory(pid: int, entry: str) -> int:
    """In MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{entry}:"):
            return int(line.split()[1]) // 1024
    return 0
