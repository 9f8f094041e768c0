"""Previews through a real ingress controller: what a program in a sandbox gets of what a browser sends, and
the other way round.
"""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from ipaddress import ip_address

import aiohttp
import httpx
import pytest

from tests.support.cluster import RELEASE, SYSTEM, Json, kubectl, upgrade
from tests.support.ingress import Ingress, Preview
from tests.support.preview_boxes import PORT, opened, program_in
from tests.support.preview_program import CONTENT
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually

SIZE = 1 << 28
FORGED = {
    "X-Forwarded-For": "6.6.6.6",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "gopher",
    "X-Real-Ip": "6.6.6.6",
    "Forwarded": "for=6.6.6.6;host=evil.example",
    "X-Sandpod-Credential": "forged",
}


@pytest.fixture(scope="module")
def box(shared_sandbox: Sandboxes, api: httpx.Client) -> Sandbox:
    box = shared_sandbox("box", keepAlive=True, ports=[{"port": PORT}]).wait()
    program_in(api, box)
    return box


@pytest.fixture(scope="module")
def preview(box: Sandbox, ingress: Ingress) -> Preview:
    return opened(ingress, box)


@pytest.fixture
def heads(preview: Preview) -> "Heads":
    seen = Heads(preview)
    seen.take()
    return seen


class Heads:
    """Of the requests that the program got."""

    def __init__(self, preview: Preview) -> None:
        self._preview = preview

    def take(self) -> list[str]:
        """Those since the last time."""
        with self._preview.client() as client:
            return client.get("/heads").raise_for_status().json()


@contextlib.asynccontextmanager
async def session(preview: Preview) -> AsyncGenerator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(headers={"Host": preview.host}, timeout=timeout) as session:
        yield session


async def say(preview: Preview, session: aiohttp.ClientSession, word: str) -> None:
    async with session.post(preview.at("/say"), data=word) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_program_is_reached(preview: Preview, scheme: str) -> None:
    with preview.client(scheme=scheme) as client:
        answer = client.post("/some/path?a=1&b=%20", content=b"content")
    found: Json = answer.raise_for_status().json()
    assert found["head"].startswith("POST /some/path?a=1&b=%20 HTTP/1.1\r\n")
    assert f"\r\nhost: {preview.host}\r\n" in found["head"].lower()
    assert found["sha256"] == hashlib.sha256(b"content").hexdigest()


@pytest.mark.parametrize("scheme", ["ws", "wss"])
async def test_a_websocket_echoes(preview: Preview, scheme: str) -> None:
    async with (
        session(preview) as client,
        client.ws_connect(
            preview.at("/socket", scheme=scheme), ssl=preview.ingress.trust, server_hostname=preview.name
        )
        if scheme == "wss"
        else client.ws_connect(preview.at("/socket", scheme=scheme)) as socket,
    ):
        for text in ("short", "x" * 60_000, "y" * 70_000):
            await socket.send_str(text)
            assert await socket.receive_str(timeout=20) == text


async def test_a_websocket_has_a_protocol_compression_pings_and_messages_of_any_size(
    preview: Preview,
) -> None:
    await heard(preview)
    async with (
        session(preview) as client,
        client.ws_connect(
            preview.at("/socket", scheme="ws"), protocols=("one.v1", "two.v2"), compress=15, autoping=False
        ) as socket,
    ):
        assert (socket.protocol, socket.compress) == ("two.v2", 15)
        for size in (0, 1, 125, 126, 65_535, 65_536, 1 << 20):
            message = os.urandom(size)
            await socket.send_bytes(message)
            assert await socket.receive_bytes(timeout=20) == message
        await socket.ping(b"are you there?")
        pong, ping = await socket.receive(timeout=20), await socket.receive(timeout=20)
        assert (pong.type, pong.data) == (aiohttp.WSMsgType.PONG, b"are you there?")
        assert (ping.type, ping.data) == (aiohttp.WSMsgType.PING, b"and you?")
        await socket.pong(b"here")
        await socket.close(code=4001, message=b"bye")
        assert socket.close_code == 4001
    assert await heard(preview) == ["pong: here", "closed: 4001 bye"]


async def test_a_program_closes_a_websocket_with_a_code_of_its_own(preview: Preview) -> None:
    async with session(preview) as client, client.ws_connect(preview.at("/socket", scheme="ws")) as socket:
        await socket.send_str("close")
        closed = await socket.receive(timeout=20)
        assert (closed.type, closed.data, closed.extra) == (aiohttp.WSMsgType.CLOSE, 4000, "as you say")


async def heard(preview: Preview) -> list[str]:
    """Pongs and closes that the program got since the last time."""
    async with session(preview) as client, client.get(preview.at("/heard")) as answer:
        return await answer.json(content_type=None)


async def test_events_arrive_one_by_one(preview: Preview) -> None:
    async with session(preview) as client, client.get(preview.at("/events")) as stream:
        assert stream.content_type == "text/event-stream"
        for word in ("first", "second", "third"):
            await say(preview, client, word)
            assert await stream.content.readuntil(b"\n\n") == f"data: {word}\n\n".encode()
        await say(preview, client, "end")
        assert await stream.content.read() == b""


async def test_a_long_poll_is_held_while_others_are_answered_until_there_is_something(
    preview: Preview, heads: Heads
) -> None:
    async with session(preview) as client, asyncio.TaskGroup() as tasks:

        async def poll() -> bytes:
            async with client.get(preview.at("/poll")) as answer:
                return await answer.read()

        waiting = tasks.create_task(poll())
        await asyncio.to_thread(eventually, lambda: any("GET /poll " in head for head in heads.take()))
        async with client.get(preview.at("/content")) as other:
            assert await other.read() == CONTENT
        assert not waiting.done()
        await say(preview, client, "news")
        assert await waiting == b"news"


async def test_a_body_in_chunks_arrives_as_it_was(preview: Preview) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for number in range(100):
            yield f"{number:05}".encode() * 1000

    whole = b"".join([piece async for piece in chunks()])
    async with session(preview) as client, client.post(preview.at("/"), data=chunks()) as answer:
        found = await answer.json(content_type=None)
    assert (found["size"], found["sha256"]) == (len(whole), hashlib.sha256(whole).hexdigest())


async def test_whoever_waits_for_100_gets_it(preview: Preview) -> None:
    async with (
        session(preview) as client,
        client.post(preview.at("/"), data=b"content", expect100=True) as answer,
    ):
        assert (await answer.json(content_type=None))["size"] == 7


def test_trailers_arrive_behind_the_answer(preview: Preview) -> None:
    """By HAProxy. The Python process, which has a preview's first requests, passes on what is before them."""
    request = f"GET /trailers HTTP/1.1\r\nHost: {preview.host}\r\nConnection: close\r\n\r\n".encode()

    def come() -> bool:
        head, _, body = (answer := preview.raw(request).lower()).partition(b"\r\n\r\n")
        assert head.startswith(b"http/1.1 200 "), answer
        assert body in (b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\nx-sum: 5d41\r\n\r\n"), answer
        return b"x-sum" in body

    eventually(come)


def test_a_range_is_a_part(preview: Preview) -> None:
    with preview.client(Range="bytes=10-19") as client:
        answer = client.get("/content")
    assert (answer.status_code, answer.content) == (206, CONTENT[10:20])
    assert answer.headers["content-range"] == f"bytes 10-19/{len(CONTENT)}"


def test_a_head_has_the_length_and_no_body(preview: Preview) -> None:
    with preview.client() as client:
        answer = client.head("/content")
        assert (answer.status_code, answer.headers["content-length"]) == (200, str(len(CONTENT)))
        assert client.get("/content").content == CONTENT


def test_the_methods_are_the_programs(preview: Preview) -> None:
    with preview.client() as client:
        for method in ("OPTIONS", "PUT", "PATCH", "DELETE"):
            answer = client.request(method, "/")
            assert answer.json()["head"].startswith(f"{method} / "), answer.text
            assert answer.headers["allow"] == "GET, POST, OPTIONS"


def test_large_headers_pass_within_the_bound(preview: Preview) -> None:
    with preview.client(**{"X-Large": "x" * 6000}) as client:
        assert "x" * 6000 in client.get("/").json()["head"]
    with preview.client(**{"X-Large": "x" * 60_000}) as client:
        assert client.get("/").status_code in (400, 431)
        assert client.get("/", headers={"X-Large": ""}).status_code == 200


def test_who_forwards_is_said_by_the_gateway_alone(preview: Preview, heads: Heads) -> None:
    with preview.client(**FORGED) as client:
        client.get("/")
    (head,) = heads.take()
    lower = head.lower()
    assert f"x-forwarded-host: {preview.host}\r\n" in lower
    assert lower.count("x-forwarded-for:") == lower.count("x-forwarded-proto:") == 1
    for word in ("6.6.6.6", "evil.example", "gopher", "credential", "\r\nforwarded:", "x-real-ip"):
        assert word not in lower, head


def test_another_token_is_nobodys(ingress: Ingress, preview: Preview) -> None:
    """The controller has no such host, and the gateway no such token."""
    label, _, domain = preview.name.partition(".")
    wrong = f"{label[:-20]}{'a' * 20}.{domain}"
    with Preview(ingress, preview.url.replace(preview.name, wrong)).client() as client:
        assert client.get("/").status_code == 404


def test_a_large_body_is_streamed_and_not_kept(preview: Preview) -> None:
    before = memory_of_gateways(from_now_on=True)
    with preview.client() as client:
        found = client.post("/", content=zeros()).raise_for_status().json()
        assert found["size"] == SIZE
        with client.stream("GET", f"/large?{SIZE}") as answer:
            assert sum(len(piece) for piece in answer.iter_raw()) == SIZE
    assert memory_of_gateways() - before < 32 << 20


def zeros() -> Iterator[bytes]:
    for _ in range(SIZE >> 20):
        yield bytes(1 << 20)


def memory_of_gateways(*, from_now_on: bool = False) -> int:
    """The most that the processes in the gateway's pods have held, in bytes."""
    component = "app.kubernetes.io/component=gateway"
    names = "jsonpath={range .items[*].spec.containers[*]}{.name} {end}"
    containers = kubectl("-n", SYSTEM, "get", "pods", "-l", component, "-o", names).stdout.split()
    look = ("exec", f"deployment/{RELEASE}-gateway", "-c")
    forget = "for each in /proc/[0-9]*; do echo 5 > $each/clear_refs; done; " if from_now_on else ""
    script = f"{forget}grep -h VmHWM /proc/[0-9]*/status"
    shown = "".join(
        kubectl("-n", SYSTEM, *look, name, "--", "sh", "-c", script).stdout for name in containers
    )
    return sum(int(line.split()[1]) << 10 for line in shown.splitlines())


def test_an_ingress_that_is_trusted_says_who_came_and_how(
    preview: Preview, heads: Heads, ingress: Ingress
) -> None:
    controller = ingress.pod_address()
    assert who_and_how(preview, heads) == (controller, "http")
    upgrade("--set", f"gateway.fastPath.trustedProxies={{{controller}/32}}")
    try:
        # The controller goes on to ask the gateway's pod of before until that has gone.
        client = eventually(lambda: who_came_by_https(preview, heads), timeout=60)
    finally:
        upgrade()
    assert ip_address(client) not in (ip_address(controller), ip_address(FORGED["X-Forwarded-For"]))


def who_came_by_https(preview: Preview, heads: Heads) -> str | None:
    client, scheme = who_and_how(preview, heads)
    return client if scheme == "https" else None


def who_and_how(preview: Preview, heads: Heads) -> tuple[str, str]:
    """Of a request over TLS, as the program in the sandbox is told."""
    with preview.client(scheme="https", **FORGED) as client:
        assert client.get("/").status_code == 200
    head = heads.take()[-1]
    told = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
    return told["x-forwarded-for"], told["x-forwarded-proto"]


async def test_without_the_fast_path_the_gateways_own_process_carries_previews(preview: Preview) -> None:
    upgrade("--set", "gateway.fastPath.enabled=false")
    try:
        with preview.client() as client:
            assert client.get("/content").raise_for_status().content == CONTENT
        async with (
            session(preview) as client,
            client.ws_connect(preview.at("/socket", scheme="ws")) as socket,
        ):
            await socket.send_str("hello")
            assert await socket.receive_str(timeout=20) == "hello"
    finally:
        upgrade()
