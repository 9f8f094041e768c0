"""What previews.py measures: an nginx, an HAProxy and gateways on loopback, each on the core that it is
given, and what they use of CPU and memory.
"""

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from tests.bench import large_program
from tests.support.haproxy import HAProxy, program

PROXY_CORE, LOAD_CORE = "0", "1"

# No file, no limit, and where none is asked for no log: the least that nginx can be.
NGINX = """
daemon off; worker_processes 1; pid {folder}/{name}.pid; error_log /dev/null crit;
events {{ worker_connections 4096; }}
http {{
  access_log {log}; keepalive_requests 1000000000;
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


@contextlib.contextmanager
def large() -> Generator[int]:
    """The port of a program that sends, takes and echoes large bodies."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=large_program.accept, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def nginx(
    folder: str, name: str, content: str, *, core: str, log: str = "off"
) -> "Generator[subprocess.Popen[bytes]]":
    path = Path(folder) / f"{name}.conf"
    path.write_text(NGINX.format(folder=folder, name=name, content=content, log=log))
    command = ["taskset", "-c", core, program("nginx"), "-e", "/dev/null", "-p", folder, "-c", path]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            yield process
        finally:
            _stop(process)


@dataclass(frozen=True)
class Running:
    port: int
    group: int


@contextlib.contextmanager
def gateway(small: int, large: int, folder: str, *, core: str) -> Generator[tuple[Running, list[str]]]:
    command = [sys.executable, "-m", "tests.bench.preview_gateway", str(small), str(large), folder]
    with subprocess.Popen(
        ["taskset", "-c", core, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            told = json.loads(process.stdout.readline())
            yield Running(told["port"], process.pid), told["hosts"]
        finally:
            _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def steered(small: int, large: int, *, cores: tuple[str, ...]) -> "Generator[tuple[HAProxy, list[str]]]":
    """An HAProxy with a thread for each of its cores. What steers it is on the other core: it is not what is
    measured.
    """
    with tempfile.TemporaryDirectory(prefix="sandpod-") as folder:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {int(core) for core in cores})
        # Whatever it starts inherits the cores.
        haproxy = HAProxy(Path(folder), SANDPOD_THREADS=str(len(cores)))
        os.sched_setaffinity(0, before)
        try:
            asyncio.run(haproxy.listening())
            with gateway(small, large, folder, core=LOAD_CORE) as (_, hosts):
                yield haproxy, hosts
        finally:
            haproxy.kill()


@contextlib.contextmanager
def idle(count: int, *, port: int, host: str) -> Generator[None]:
    """So many connections of ten addresses, each of which has been answered once and is kept."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    connections: list[socket.socket] = []
    try:
        for number in range(count):
            connections.append(socket.socket())
            connections[-1].bind((f"127.0.0.{2 + number % 10}", 0))
            connections[-1].connect(("127.0.0.1", port))
            connections[-1].sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            answer = connections[-1].recv(65_536)
            assert answer.startswith(b"HTTP/1.1 200 "), (number, answer)
        yield
    finally:
        for each in connections:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def members(leader: int) -> list[int]:
    """The processes of a process group."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(path.name)) == leader:
                found.append(int(path.name))
    return found


def cpu(group: int | None) -> float:
    """Seconds of all processes of a group."""
    ticks = 0
    for pid in [] if group is None else members(group):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(group: int | None, entry: str, *, clear: bool = False) -> int:
    """Of all processes of a group, in MiB; `clear` lets the highest begin anew."""
    total = 0
    for pid in [] if group is None else members(group):
        if clear:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{entry}:"):
                total += int(line.split()[1])
    return total // 1024
