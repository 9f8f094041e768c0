"""For how long the fast path leads to a pod, and when it ends, with a real HAProxy. The pod and the Python
process both answer with their names.
"""

import asyncio
import dataclasses
import signal
import socket
from collections.abc import AsyncIterator, Iterable

import pytest
import pytest_asyncio
from sandpod_gateway.fastpath.admin import Admin, Unavailable
from sandpod_gateway.routes import ExposedPort

from tests.support.haproxy import BRIEF_LEASE, HOST, KEY, PORT, World, until, world

SOON = 10.0


@pytest_asyncio.fixture
async def brief() -> AsyncIterator[World]:
    async with world(lease_seconds=BRIEF_LEASE) as built:
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


async def test_an_unused_host_runs_out_with_the_lease_of_its_pod(brief: World) -> None:
    await brief.open()

    await until(lambda: brief.fast.hosts == 0)
    asked = brief.leases_asked

    assert (await brief.haproxy.get()).endswith(b"python")
    assert brief.leases_asked == asked


async def test_a_used_host_stays_as_its_lease_is_renewed(brief: World) -> None:
    await brief.open()
    asked, by_pod, by_python = brief.leases_asked, 0, 0

    async with asyncio.timeout(3 * SOON):
        while brief.leases_asked < asked + 3:
            answer = await brief.haproxy.get()
            by_pod += answer.endswith(b"pod")
            if answer.endswith(b"python"):
                # On a busy machine a lease can end before it is renewed; then Python takes the request.
                by_python += 1
                await brief.open()
    assert by_pod > by_python


async def test_a_stream_that_moves_keeps_its_sandbox_awake(brief: World) -> None:
    await brief.open()
    reader, writer = await brief.websocket()

    until_now = brief.leases_asked
    async with asyncio.timeout(SOON):
        while brief.leases_asked < until_now + 3:
            writer.write(b"x")
            await reader.readexactly(1)
    writer.close()
    await until(lambda: brief.fast.hosts == 0)


async def test_a_program_that_thinks_keeps_its_sandbox_awake(brief: World) -> None:
    await brief.open()
    asking = asyncio.create_task(brief.haproxy.get("/wait"))

    before = brief.leases_asked
    await until(lambda: brief.leases_asked >= before + 3)
    brief.pod.release.set()

    assert (await asking).endswith(b"pod")


async def test_what_nobody_writes_anew_ends_with_the_lease(brief: World) -> None:
    """The process that steers is stopped or killed."""
    await brief.open()
    brief.steering.cancel()

    await answered_by(brief, b"python")

    brief.pod.heads.clear()
    assert (await brief.haproxy.get()).endswith(b"python")
    assert not brief.pod.heads


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


async def test_a_host_that_is_opened_again_while_it_is_closed_stays_open(
    fast: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fast.open()
    next_route = dataclasses.replace(fast.route, pod_uid="next")
    next_runtime = dataclasses.replace(fast.runtime, pod_uid="next")
    remove, closed = Admin.remove, asyncio.Event()

    async def while_it_is_opened(admin: Admin, hosts: Iterable[str]) -> None:
        monkeypatch.setattr(Admin, "remove", remove)
        await fast.leases.ensure(pod_uid="next", address=next_runtime.address, credential="c")
        fast.fast.served(
            host=HOST, key=KEY, route=next_route, port=PORT, runtime=next_runtime, address=fast.address
        )
        await remove(admin, hosts)
        closed.set()

    monkeypatch.setattr(Admin, "remove", while_it_is_opened)
    fast.table.put(KEY, next_route)

    async with asyncio.timeout(SOON):
        await closed.wait()
    await answered_by(fast, b"pod")


async def test_another_port_of_the_same_sandbox_is_not_cut(fast: World) -> None:
    other = ExposedPort(port=9000, private=False, token_version=1)
    fast.table.put(KEY, dataclasses.replace(fast.route, ports=(PORT, other)))
    await fast.open()
    _, writer = await fast.websocket()

    fast.table.put(KEY, dataclasses.replace(fast.route, ports=(PORT,)))

    assert (await fast.haproxy.get()).endswith(b"pod")
    assert fast.pod.ended == 0
    writer.close()


async def test_a_pod_that_refuses_a_lease_gets_nothing_more(brief: World) -> None:
    await brief.open()
    brief.grants = False

    await answered_by(brief, b"python")
    await until(lambda: brief.fast.hosts == 0)


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


async def test_a_restarted_haproxy_is_filled_again(brief: World) -> None:
    await brief.open()

    await brief.haproxy.restart()
    assert (await brief.haproxy.get()).endswith(b"python")

    await brief.open()


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


async def test_a_stop_loses_no_request_that_is_under_way(fast: World) -> None:
    await fast.open()
    waiting = asyncio.create_task(fast.haproxy.get("/wait"))
    await until(lambda: len(fast.pod.heads) == 1)

    fast.haproxy.process.send_signal(signal.SIGTERM)
    await until(lambda: not _listens(fast.haproxy.port))
    fast.pod.release.set()

    assert (await waiting).endswith(b"pod")
    await until(lambda: fast.haproxy.process.poll() is not None)


async def test_answers_of_pods_are_counted_by_their_code(brief: World) -> None:
    await brief.open()

    await until(lambda: 'requests_total{door="fast",code="2xx"}' in brief.metrics.text())


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
