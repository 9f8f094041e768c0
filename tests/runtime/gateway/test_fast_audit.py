"""The audit log of what HAProxy carries: who asked which sandbox for what, and nothing that a client could
make it say.
"""

import asyncio
import re
import socket
import time
from datetime import datetime

import pytest

from tests.support.haproxy import HOST, Json, World, until

SOON = 10.0
TRACEPARENT = f"00-{'a' * 32}-{'b' * 16}-01"


async def line_of(fast: World, path: str) -> Json:
    """Of the one request for this path. HAProxy writes it a moment after the answer: the last line
    may still be that of an earlier request.
    """

    def lines() -> list[Json]:
        return [each for each in fast.haproxy.audit_lines() if each["path"] == path]

    await until(lambda: bool(lines()))
    (line,) = lines()
    return line


async def test_what_passes_by_the_python_process_is_audited_without_query_and_token(fast: World) -> None:
    await fast.open()
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    headers = f"Cookie: a=secret\r\nTraceparent: 00-{trace}-00f067aa0ba902b7-01\r\n"
    await fast.haproxy.get('/say/"so"\\?key=secret', headers=headers)

    line = await line_of(fast, '/say/"so"\\')
    assert abs(datetime.fromisoformat(line.pop("time")).timestamp() - time.time()) < SOON
    assert 0 <= line.pop("seconds") < SOON
    assert line == {
        "audit": "fast",
        "verb": "preview",
        "subresource": f"ports/{fast.address[1]}",
        "namespace": "default",
        "sandbox": "hello",
        "method": "GET",
        "path": '/say/"so"\\',
        "status": 200,
        "source": "127.0.0.1",
        "traceId": trace,
    }
    assert f"\r\ntraceparent: 00-{trace}-00f067aa0ba902b7-01\r\n".encode() in fast.pod.heads[-1]


async def test_how_long_it_took_is_told_in_seconds_as_the_python_process_does(fast: World) -> None:
    await fast.open()
    begun = time.perf_counter()
    waiting = asyncio.create_task(fast.haproxy.get("/wait"))
    await until(lambda: any(head.startswith(b"GET /wait ") for head in fast.pod.heads))
    # What is to be seen in the log
    await asyncio.sleep(0.2)
    fast.pod.release.set()
    await waiting
    took = time.perf_counter() - begun

    assert 0.1 <= (await line_of(fast, "/wait"))["seconds"] <= took + 0.01


@pytest.mark.parametrize(
    "headers",
    [
        "",
        "Traceparent: nonsense\r\n",
        f"Traceparent: 00-{'0' * 32}-00f067aa0ba902b7-01\r\n",
        f"Traceparent: {TRACEPARENT}\r\nTraceparent: {TRACEPARENT}\r\n",
        f'Traceparent: {TRACEPARENT}\r\nTraceparent: x-","status":200,"user":"system:admin","x":"\r\n',
        f'Traceparent: {TRACEPARENT}","user":"system:admin\r\n',
        f"Traceparent: {TRACEPARENT}\r\nTraceparent: x-\x1b\x07{'y' * 6000}\r\n",
    ],
    ids=["none", "nonsense", "zero", "two", "another line", "more", "controls"],
)
async def test_a_trace_is_made_where_none_is_well_formed_and_nobody_writes_into_the_log(
    fast: World, headers: str
) -> None:
    await fast.open()

    await fast.haproxy.get("/traced", headers=headers)

    line = await line_of(fast, "/traced")
    traces = re.findall(rb"\r\ntraceparent: (.*)\r\n", fast.pod.heads[-1])
    assert traces == [b"00-%b-%b-00" % tuple(traces[0].split(b"-")[1:3])]
    assert (line["traceId"], line["sandbox"], "user" in line) == (
        traces[0].split(b"-")[1].decode(),
        "hello",
        False,
    )
    assert re.fullmatch("[0-9a-f]{32}", line["traceId"])


async def test_what_is_refused_and_lines_that_are_lost_are_counted(fast: World) -> None:
    await fast.open()
    await fast.haproxy.ask(b"no request\r\n\r\n")
    await fast.haproxy.ask(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nHost: other\r\n\r\n".encode())

    await until(lambda: "requests_malformed_total 2" in fast.metrics.text())
    assert "audit_lines_lost_total 0" in fast.metrics.text()


async def test_what_the_python_process_answers_is_audited_there_alone_and_what_is_refused_nowhere(
    fast: World,
) -> None:
    await fast.open()
    before = len(fast.haproxy.audit_lines())
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        closed = nobody.getsockname()[1]

    await fast.haproxy.get("/unknown", host="of.nobody")
    line = f"127.0.0.1|{closed}|{(time.time() + 60) * 1000:.0f}|default|hello"
    await fast.haproxy.admin.put({HOST: line})
    assert (await fast.haproxy.get("/closed")).endswith(b"python")
    await fast.haproxy.ask(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nHost: other\r\n\r\n".encode())

    await fast.haproxy.ask(b"no request\r\n\r\n")
    (await asyncio.open_connection("127.0.0.1", fast.haproxy.port))[1].close()

    # Or anybody could fill the log. The next line is that of the next request.
    await fast.open()
    await fast.haproxy.get("/next")
    await line_of(fast, "/next")
    assert {each["path"] for each in fast.haproxy.audit_lines()[before:]} == {"/opened", "/next"}
