"""What one client, one sandbox and one namespace can hold of HAProxy, and that others find room."""

import asyncio
import contextlib
import resource
import socket

import pytest
from sandpod_gateway.fastpath import path

from tests.support.haproxy import HOST, World, until, world

SOON = 10.0
IDLE, SOURCES = 10_000, 10


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


async def test_a_full_port_leaves_the_kubelet_its_answer() -> None:
    async with world(SANDPOD_MAX_CONNECTIONS="20") as fast:
        idle = [await asyncio.open_connection("127.0.0.1", fast.haproxy.port) for _ in range(30)]

        reader, writer = await asyncio.open_connection("127.0.0.1", fast.haproxy.health_port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(SOON):
            assert (await reader.read()).endswith(b"ok\n")

        for _, each in [*idle, (reader, writer)]:
            each.close()


async def test_who_guesses_tokens_waits_and_is_in_nobodys_way() -> None:
    async with world(SANDPOD_ERRORS_PER_SOURCE="3") as fast:
        await fast.open()
        for _ in range(4):
            assert (await fast.haproxy.get("/unknown", host="wrong.token")).startswith(b"HTTP/1.1 404 ")

        begun, seen = asyncio.get_running_loop().time(), len(fast.python.heads)
        answer = await fast.haproxy.get("/unknown", host="wrong.token")
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert b"\r\nretry-after: 1\r\n" in answer
        # Not a limit on how long it may take, but on how little.
        assert asyncio.get_running_loop().time() - begun >= 1.0
        assert len(fast.python.heads) == seen

        assert (await fast.haproxy.get()).endswith(b"pod")
        assert (await fast.haproxy.get(host="wrong.token", source="127.0.0.2")).endswith(b"python")


async def test_one_preview_does_not_take_the_python_process_from_others() -> None:
    async with world(SANDPOD_UNUSUAL_PER_HOST="3") as fast:
        await fast.open()
        for _ in range(3):
            await fast.haproxy.get(headers="Connection: x\r\n")
        seen = len(fast.python.heads)

        for unusual in ({"headers": "Connection: x\r\n"}, {"host": f"{HOST}."}):
            begun = asyncio.get_running_loop().time()
            answer = await fast.haproxy.get(**unusual)
            assert answer.startswith(b"HTTP/1.1 429 ")
            assert b"\r\nretry-after: 1\r\n" in answer
            assert asyncio.get_running_loop().time() - begun >= 1.0
        assert len(fast.python.heads) == seen

        assert (await fast.haproxy.get()).endswith(b"pod")
        assert (await fast.haproxy.get(host=f"8001{HOST[4:]}")).endswith(b"python")


async def test_what_is_held_back_counts_neither_against_the_preview_nor_against_who_asks() -> None:
    async with world(SANDPOD_UNUSUAL_PER_HOST="3", SANDPOD_ERRORS_PER_SOURCE="2") as fast:

        async def ask() -> bytes:
            return await fast.haproxy.get(headers="Connection: x\r\n")

        while (await ask()).endswith(b"python"):
            pass
        held_back = await asyncio.gather(*(ask() for _ in range(10)))
        assert all(answer.startswith(b"HTTP/1.1 429 ") for answer in held_back)
        assert (await fast.haproxy.get(host="api.sandpod.localhost")).endswith(b"python")

        # Whoever goes on has his turn again within the ten seconds that are counted.
        async with asyncio.timeout(30):
            while not (await ask()).endswith(b"python"):
                pass


async def test_the_apis_host_is_not_taken_for_a_preview_however_much_it_is_asked() -> None:
    async with world(SANDPOD_UNUSUAL_PER_HOST="3") as fast:
        for _ in range(10):
            assert (await fast.haproxy.get(host="api.sandpod.localhost")).endswith(b"python")


async def test_requests_to_one_port_of_a_sandbox_are_bounded() -> None:
    async with world(SANDPOD_REQUESTS_PER_SANDBOX="1") as fast:
        await fast.open()
        waiting = asyncio.create_task(fast.haproxy.get("/wait"))
        await until(lambda: len(fast.pod.heads) == 1)

        assert (await fast.haproxy.get()).startswith(b"HTTP/1.1 429 ")

        fast.pod.release.set()
        assert (await waiting).endswith(b"pod")


async def test_requests_to_the_sandboxes_of_one_namespace_are_bounded_together() -> None:
    another, elsewhere = f"another-{HOST}", f"elsewhere-{HOST}"
    async with world(SANDPOD_REQUESTS_PER_NAMESPACE="1") as fast:
        await fast.open()
        await fast.open(another)
        await fast.open(elsewhere, key=("team-b", "hello"))
        waiting = asyncio.create_task(fast.haproxy.get("/wait"))
        await until(lambda: len(fast.pod.heads) == 1)

        answer = await fast.haproxy.get(host=another)
        assert answer.startswith(b"HTTP/1.1 429 ")
        assert b"namespace" in answer
        assert (await fast.haproxy.get(host=elsewhere)).endswith(b"pod")

        fast.pod.release.set()
        assert (await waiting).endswith(b"pod")


async def test_a_head_that_drips_is_not_waited_for() -> None:
    async with world(SANDPOD_HEAD_SECONDS="1") as fast:
        reader, writer = await asyncio.open_connection("127.0.0.1", fast.haproxy.port)
        writer.write(b"GET / HTTP/1.1\r\nX: ")
        dripping = asyncio.create_task(_drip(writer))
        async with asyncio.timeout(SOON):
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        dripping.cancel()
        writer.close()


async def _drip(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)


async def test_a_flood_of_headers_ends_before_it_fills_the_memory(fast: World) -> None:
    await fast.open()
    head = f"GET / HTTP/1.1\r\nHost: {HOST}\r\n".encode()

    for flood in (b"X: " + b"x" * 40_000 + b"\r\n", b"X: x\r\n" * 1000):
        reader, writer = await asyncio.open_connection("127.0.0.1", fast.haproxy.port)
        with contextlib.suppress(ConnectionError):
            writer.write(head + flood + b"\r\n")
            async with asyncio.timeout(SOON):
                assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()

    assert not fast.pod.heads + fast.python.heads


async def test_thousands_of_idle_connections_of_many_sources_are_in_nobodys_way(fast: World) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    await fast.open()
    idle: list[socket.socket] = []
    try:
        for number in range(IDLE):
            idle.append(socket.socket())
            idle[-1].bind((f"127.0.0.{2 + number % SOURCES}", 0))
            idle[-1].connect(("127.0.0.1", fast.haproxy.port))
            if number % 500 == 0:
                assert (await fast.haproxy.get()).endswith(b"\r\n\r\npod")

        for _ in range(50):
            assert (await fast.haproxy.get()).endswith(b"\r\n\r\npod")

        before = fast.pod.accepted
        await _ask_in_a_row(fast, times=20)
        assert fast.pod.accepted == before + 1
    finally:
        for each in idle:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def _ask_in_a_row(fast: World, *, times: int) -> None:
    """By one connection, as a browser does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", fast.haproxy.port)
    for _ in range(times):
        writer.write(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        async with asyncio.timeout(SOON):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(3) == b"pod"
    writer.close()


async def test_a_namespace_that_has_all_places_gives_one_up_for_another(
    fast: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path, "MOST", 2)
    await fast.open()
    await fast.open(f"another-{HOST}")

    await fast.open(f"elsewhere-{HOST}", key=("team-b", "hello"))

    assert fast.fast.hosts == 2
