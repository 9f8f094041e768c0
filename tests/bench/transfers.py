"""1 GiB out of a command and of a file, on loopback, beside the least that the same bytes cost: a socket with
`sendfile` or `write`.

The client sends from memory and discards what it gets, so that it is not what is measured.
"""

import hashlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench.stats import QUIETLY, Row, Section
from tests.support.runtime import Runtime

SIZE = 1 << 30
PIECE = 1 << 20


STREAM_GOAL = "≥ 300 MB/s, ≤ 64 MiB"
FILE_GOAL = "≥ 500 MB/s, ≤ 32 MiB"
LINES = "yes 'a line of some length, as programs write it' | head -c 1073741824"


def measure() -> list[Section]:
    """All rows in one run, on one disk."""
    runtime = Runtime(arguments=QUIETLY)
    try:
        return [_streams(runtime), _files(runtime)]
    finally:
        runtime.dispose()


def _streams(runtime: Runtime) -> Section:
    rows = [
        _runtime_row(
            f"output as {encoding}", runtime, partial(_stream, runtime, encoding=encoding), goal=STREAM_GOAL
        )
        for encoding in ("utf-8", "base64")
    ]
    return Section(title="1 GiB of output from an exec stream, on loopback", rows=rows)


def _files(runtime: Runtime) -> Section:
    path = runtime.workspace / "large"
    rows = [_row("written to a file from a socket", lambda: _plain_up(path))]
    path.unlink()
    rows.append(_runtime_row("PUT: up", runtime, lambda: _put(runtime, path, ""), goal=FILE_GOAL))
    digest = hashlib.sha256(bytes(SIZE)).hexdigest()
    up = partial(_put, runtime, path, f"&sha256={digest}")
    rows.append(_runtime_row("PUT: up, with its SHA-256", runtime, up))
    rows.append(_row("sent from a file through a socket", lambda: _plain_down(path)))
    rows.append(_runtime_row("GET: down", runtime, lambda: _get(runtime, path), goal=FILE_GOAL))
    rows.append(_row("SHA-256 of Python's own, which the shipped runtime has", _builtin_sha256))
    path.unlink()
    return Section(title="A file of 1 GiB, on loopback", rows=rows)


def _runtime_row(what: str, runtime: Runtime, work: Callable[[], None], *, goal: str = "") -> Row:
    # Resets the peak: what earlier rows took is not this one's.
    Path(f"/proc/{runtime.pid}/clear_refs").write_text("5")
    before = runtime.memory()
    row = _row(what, work)
    more = runtime.memory("VmHWM") - before
    return Row(
        what=what,
        figure=f"{row.figure}, {more} MiB more RSS",
        goal=goal,
        how="of the payload; peak RSS less what it was before",
    )


def _row(what: str, work: Callable[[], None]) -> Row:
    began = time.perf_counter()
    work()
    return Row(what=what, figure=f"{SIZE / 1e6 / (time.perf_counter() - began):.0f} MB/s")


def _stream(runtime: Runtime, *, encoding: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", runtime.port)
    body = json.dumps({"command": LINES, "outputEncoding": encoding})
    connection.request("POST", "/api/execute/stream", body)
    assert _drained(connection) > SIZE


def _put(runtime: Runtime, path: Path, query: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", runtime.port)
    connection.putrequest("PUT", f"/api/files/raw?path={path}{query}")
    connection.putheader("Content-Length", str(SIZE))
    connection.endheaders()
    _send_zeros(connection.sock)
    _finished(connection)


def _get(runtime: Runtime, path: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", runtime.port)
    connection.request("GET", f"/api/files/raw?path={path}")
    assert _drained(connection) == SIZE


def _drained(connection: http.client.HTTPConnection) -> int:
    answer = connection.getresponse()
    buffer = memoryview(bytearray(PIECE))
    count = 0
    while got := answer.readinto(buffer):
        count += got
    connection.close()
    return count


def _finished(connection: http.client.HTTPConnection) -> None:
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.status == 200, body


def _plain_up(path: Path) -> None:
    def receive(server: socket.socket) -> None:
        buffer = memoryview(bytearray(PIECE))
        with path.open("wb", buffering=0) as file:
            while got := server.recv_into(buffer):
                file.write(buffer[:got])

    _through_a_socket(receive, _send_zeros)


def _plain_down(path: Path) -> None:
    def send(server: socket.socket) -> None:
        with path.open("rb") as file:
            server.sendfile(file)

    _through_a_socket(send, _discard)


def _through_a_socket(serve: Callable[[socket.socket], None], use: Callable[[socket.socket], None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            with listening.accept()[0] as server:
                serve(server)

        thread = threading.Thread(target=accept)
        thread.start()
        with socket.create_connection(listening.getsockname()) as client:
            use(client)
            client.shutdown(socket.SHUT_WR)
            thread.join()


def _send_zeros(connection: socket.socket) -> None:
    piece = bytes(PIECE)
    for _ in range(SIZE // PIECE):
        connection.sendall(piece)


def _discard(connection: socket.socket) -> None:
    buffer = bytearray(PIECE)
    while connection.recv_into(buffer):
        pass


def _builtin_sha256() -> None:
    digest = vars(hashlib)["__get_builtin_constructor"]("sha256")()
    piece = bytes(65_536)
    for _ in range(SIZE // len(piece)):
        digest.update(piece)
