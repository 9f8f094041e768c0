"""The fast path with a real HAProxy: what it sends to a pod, for how long, and what it leaves to the Python
process. Both answer with their names.
"""

import asyncio
import contextlib
import dataclasses
import signal
import socket
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sandpod_gateway.fastpath.admin import Unavailable
from sandpod_gateway.routes import ExposedPort

from tests.support.haproxy import HOST, KEY, PORT, World, until, world

SOON = 10.0


@pytest_asyncio.fixture
async def fast() -> AsyncIterator[World]:
    async with world() as built:
        yield built


async def answered_by(fast: World, name: bytes, *, host: str = HOST) -> None:
    async with asyncio.timeout(SOON):
        while not (await fast.haproxy.get(host=host)).endswith(b"\r\n\r\n" + name):
            pass


async def test_a_host_that_was_served_goes_straight_to_its_pod(fast: World) -> None:
    assert (await fast.haproxy.get()).endswith(b"python")

    await fast.open()

    assert (await fast.haproxy.get("/a//b?x=%2f")).endswith(b"pod")
    assert fast.pod.heads[0].startswith(b"GET /a//b?x=%2f HTTP/1.1\r\n")
    assert not fast.python.heads


async def test_a_host_is_read_without_its_port_and_in_any_case(fast: World) -> None:
    await fast.open()

    assert (await fast.haproxy.get(host=f"{HOST.upper()}:8080")).endswith(b"pod")


@pytest.mark.parametrize(
    "headers",
    [
        "Cookie: a=1; __host-SANDPOD=login\r\n",
        "Connection: X-Private\r\nX-Private: 1\r\n",
        "Upgrade: h2c\r\n",
    ],
    ids=["our cookie", "named by Connection", "another upgrade"],
)
async def test_what_is_unusual_is_left_to_the_python_process(fast: World, headers: str) -> None:
    await fast.open()

    assert (await fast.haproxy.get(headers=headers)).endswith(b"python")
    assert not fast.pod.heads


@pytest.mark.parametrize("target", ["http://{host}/", "*"])
async def test_a_target_that_is_no_path_is_left_to_the_python_process(fast: World, target: str) -> None:
    await fast.open()

    head = f"OPTIONS {target.format(host=HOST)} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"

    assert (await fast.haproxy.ask(head.encode())).endswith(b"python")


async def test_a_client_cannot_say_who_it_is(fast: World) -> None:
    await fast.open()

    await fast.haproxy.get(
        headers="X-Forwarded-For: 6.6.6.6\r\nx_forwarded_proto: gopher\r\nForwarded: for=6.6.6.6\r\n"
        "X-Real-IP: 6.6.6.6\r\nX-Sandpod-Credential: x\r\nX_Sandpod_Credential: x\r\nTE: trailers\r\n"
    )

    assert sorted(fast.pod.heads[0].split(b"\r\n")[1:]) == sorted(
        [
            f"host: {HOST}".encode(),
            b"x-forwarded-for: 127.0.0.1",
            f"x-forwarded-host: {HOST}".encode(),
            b"x-forwarded-proto: http",
            b"",
            b"",
        ]
    )


async def test_a_trusted_proxy_says_who_the_client_is() -> None:
    async with world(SANDPOD_TRUSTED_PROXIES="10.0.0.0/8 127.0.0.0/8") as fast:
        for chain, source in (
            ("6.6.6.6, 192.0.2.7", b"192.0.2.7"),
            ("6.6.6.6, 192.0.2.7, 10.0.0.1, 10.0.0.2", b"192.0.2.7"),
            ("2001:db8::7", b"2001:db8::7"),
            ("nonsense", b"127.0.0.1"),
        ):
            headers = f"X-Forwarded-For: {chain}\r\nX-Forwarded-Proto: gopher, HTTPS\r\n"
            await fast.haproxy.get(headers=headers)

            assert b"\r\nx-forwarded-for: " + source + b"\r\n" in fast.python.heads[-1]
            assert b"\r\nx-forwarded-proto: https\r\n" in fast.python.heads[-1]


async def test_secrets_and_cookies_for_others_do_not_reach_the_browser(fast: World) -> None:
    await fast.open()

    lines = (await fast.haproxy.get("/headers")).lower().split(b"\r\n")

    assert b"set-cookie: mine=1" in lines
    assert not [line for line in lines if b"domain=" in line or b"sandpod" in line or b"keep-alive" in line]


async def test_a_site_that_is_linked_to_does_not_learn_the_token(fast: World) -> None:
    await fast.open()

    assert b"\r\nreferrer-policy: no-referrer\r\n" in await fast.haproxy.get()
    assert b"\r\nreferrer-policy: origin\r\n" in await fast.haproxy.get("/policy")


async def test_a_request_that_the_pod_does_not_accept_goes_to_the_python_process_at_once(fast: World) -> None:
    await fast.open()
    await fast.haproxy.admin.put({HOST: f"127.0.0.1|1|{(time.time() + 60) * 1000:.0f}"})

    head = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"

    assert (await fast.haproxy.ask(head.encode())).endswith(b"python")
    assert fast.python.heads[-1].startswith(b"POST / ")


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_request_whose_fate_is_unknown_is_never_sent_again(fast: World, method: str) -> None:
    await fast.open()

    head = f"{method} /break HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    assert (await fast.haproxy.ask(head.encode())).startswith(b"HTTP/1.1 502")
    assert len(fast.pod.heads) == 1
    assert not fast.python.heads


async def test_an_unused_host_runs_out_with_the_lease_of_its_pod(fast: World) -> None:
    await fast.open()

    await until(lambda: fast.fast.hosts == 0)
    asked = fast.leases_asked

    assert (await fast.haproxy.get()).endswith(b"python")
    assert fast.leases_asked == asked


async def test_a_used_host_stays_as_its_lease_is_renewed(fast: World) -> None:
    await fast.open()
    asked = fast.leases_asked

    while fast.leases_asked < asked + 3:
        assert (await fast.haproxy.get()).endswith(b"pod")


async def test_a_stream_that_moves_keeps_its_sandbox_awake(fast: World) -> None:
    await fast.open()
    reader, writer = await fast.websocket()

    until_now = fast.leases_asked
    async with asyncio.timeout(SOON):
        while fast.leases_asked < until_now + 3:
            writer.write(b"x")
            await reader.readexactly(1)
    writer.close()
    await until(lambda: fast.fast.hosts == 0)


async def test_a_program_that_thinks_keeps_its_sandbox_awake(fast: World) -> None:
    await fast.open()
    asking = asyncio.create_task(fast.haproxy.get("/wait"))

    before = fast.leases_asked
    await until(lambda: fast.leases_asked >= before + 3)
    fast.pod.release.set()

    assert (await asking).endswith(b"pod")


async def test_what_nobody_writes_anew_ends_with_the_lease(fast: World) -> None:
    """The process that steers is stopped or killed."""
    await fast.open()
    fast.steering.cancel()

    await answered_by(fast, b"python")

    fast.pod.heads.clear()
    assert (await fast.haproxy.get()).endswith(b"python")
    assert not fast.pod.heads


@pytest.mark.parametrize(
    "change",
    [
        {"ports": ()},
        {"ports": (dataclasses.replace(PORT, private=True),)},
        {"ports": (dataclasses.replace(PORT, token_version=2),)},
        {"uid": "another"},
        {"deleting": True},
    ],
    ids=["unexposed", "private", "rotated", "made anew", "deleted"],
)
async def test_what_is_taken_back_is_closed_and_cut(fast: World, change: dict[str, object]) -> None:
    await fast.open()
    reader, writer = await fast.websocket()

    fast.table.put(KEY, dataclasses.replace(fast.route, **change))

    async with asyncio.timeout(SOON):
        assert await reader.read() == b""
    assert (await fast.haproxy.get()).endswith(b"python")
    await until(lambda: fast.pod.ended == 1)
    writer.close()


@pytest.mark.parametrize(
    "change",
    [{"paused": True}, {"phase": "Draining"}, {"pod_uid": "next"}, {"ready": False}],
    ids=["paused", "draining", "next pod", "not ready"],
)
async def test_nothing_new_goes_to_a_pod_that_leaves(fast: World, change: dict[str, object]) -> None:
    await fast.open()
    reader, writer = await fast.websocket()

    fast.table.put(KEY, dataclasses.replace(fast.route, **change))

    await answered_by(fast, b"python")
    writer.write(b"still here")
    assert await reader.readexactly(10) == b"still here"
    writer.close()


async def test_another_port_of_the_same_sandbox_is_not_cut(fast: World) -> None:
    other = ExposedPort(port=9000, private=False, token_version=1)
    fast.table.put(KEY, dataclasses.replace(fast.route, ports=(PORT, other)))
    await fast.open()
    _, writer = await fast.websocket()

    fast.table.put(KEY, dataclasses.replace(fast.route, ports=(PORT,)))

    assert (await fast.haproxy.get()).endswith(b"pod")
    assert fast.pod.ended == 0
    writer.close()


async def test_a_pod_that_refuses_a_lease_gets_nothing_more(fast: World) -> None:
    await fast.open()
    fast.grants = False

    await answered_by(fast, b"python")
    await until(lambda: fast.fast.hosts == 0)


async def test_a_private_port_is_never_opened(fast: World) -> None:
    await fast.leases.ensure(pod_uid="p", address=fast.runtime.address, credential="c")

    fast.fast.served(
        host=HOST,
        key=KEY,
        route=fast.route,
        port=dataclasses.replace(PORT, private=True),
        runtime=fast.runtime,
        address=fast.address,
    )

    assert fast.fast.hosts == 0


async def test_a_restarted_haproxy_is_filled_again(fast: World) -> None:
    await fast.open()

    await fast.haproxy.restart()
    assert (await fast.haproxy.get()).endswith(b"python")

    await fast.open()


async def test_what_is_taken_back_while_haproxy_does_not_answer_is_cut_when_it_does(fast: World) -> None:
    await fast.open()
    reader, writer = await fast.websocket()
    fast.haproxy.signal(signal.SIGSTOP)
    asking = asyncio.create_task(fast.haproxy.admin.traffic())
    with pytest.raises(Unavailable):
        await asking

    fast.table.put(KEY, dataclasses.replace(fast.route, ports=()))
    fast.haproxy.signal(signal.SIGCONT)

    async with asyncio.timeout(SOON):
        assert await reader.read() == b""
    writer.close()


async def test_one_source_cannot_take_all_connections() -> None:
    async with world(SANDPOD_CONNECTIONS_PER_SOURCE="4") as fast:
        idle = [await asyncio.open_connection("127.0.0.1", fast.haproxy.port) for _ in range(4)]

        with contextlib.suppress(ConnectionResetError):
            assert await fast.haproxy.get() == b""
        assert not fast.python.heads

        for _, writer in idle:
            writer.close()
        async with asyncio.timeout(SOON):
            while not fast.python.heads:
                # Until HAProxy has seen that they are closed
                with contextlib.suppress(ConnectionResetError):
                    await fast.haproxy.get()


async def test_requests_to_one_sandbox_are_bounded() -> None:
    async with world(SANDPOD_REQUESTS_PER_SANDBOX="1") as fast:
        await fast.open()
        waiting = asyncio.create_task(fast.haproxy.get("/wait"))
        await until(lambda: len(fast.pod.heads) == 1)

        assert (await fast.haproxy.get()).startswith(b"HTTP/1.1 429 ")

        fast.pod.release.set()
        assert (await waiting).endswith(b"pod")


async def test_a_stop_loses_no_request_that_is_under_way(fast: World) -> None:
    await fast.open()
    waiting = asyncio.create_task(fast.haproxy.get("/wait"))
    await until(lambda: len(fast.pod.heads) == 1)

    fast.haproxy.process.send_signal(signal.SIGTERM)
    await until(lambda: not _listens(fast.haproxy.port))
    fast.pod.release.set()

    assert (await waiting).endswith(b"pod")
    await until(lambda: fast.haproxy.process.poll() is not None)


async def test_answers_of_pods_are_counted_by_their_code(fast: World) -> None:
    await fast.open()

    await until(lambda: 'requests_total{door="fast",code="2xx"}' in fast.metrics.text())


async def test_ambiguous_requests_are_refused_or_made_plain(fast: World) -> None:
    await fast.open()
    host = f"Host: {HOST}\r\n"

    for head in (
        f"GET / HTTP/1.1\r\n{host}Host: other\r\n\r\n",
        f"GET http://other/ HTTP/1.1\r\n{host}\r\n",
        f"POST / HTTP/1.1\r\n{host}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        f"POST / HTTP/1.1\r\n{host}Content-Length: +3\r\n\r\nabc",
        f"POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        f"GET /\0 HTTP/1.1\r\n{host}\r\n",
        f"GET / HTTP/1.1\r\n{host}A\0: b\r\n\r\n",
        f"GET / HTTP/1.1\r\n{host}A : b\r\n\r\n",
    ):
        answer = await fast.haproxy.ask(head.encode())
        assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 422")), (head, answer)
    assert not fast.pod.heads

    both = f"POST / HTTP/1.1\r\n{host}Content-Length: 44\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    hidden = f"GET /hidden HTTP/1.1\r\n{host}\r\n"
    await fast.haproxy.ask((both + hidden).encode())

    assert b"content-length" not in fast.pod.heads[0]
    assert not [head for head in fast.pod.heads + fast.python.heads if b"/hidden" in head]


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
