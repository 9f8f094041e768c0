"""The whole gateway behind a real HAProxy: a preview that is asked for twice goes straight to its program."""

import asyncio
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.gateway_harness import PREFIX, Harness
from tests.support.haproxy import FOLDER, HAProxy


@pytest.fixture
def haproxy() -> Generator[HAProxy]:
    with tempfile.TemporaryDirectory(prefix="sandpod-") as folder:
        running = HAProxy(Path(folder), SANDPOD_SCHEME="https")
        yield running
        running.kill()


@pytest_asyncio.fixture
async def gateway(built: Harness, haproxy: HAProxy) -> Harness:
    await haproxy.listening()
    await built.start(sockets=str(haproxy.folder), haproxy_map=str(FOLDER / "hosts.map"))
    return built


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    headers = request.headers
    return web.Response(
        text=f"{request.raw_path} for {headers['X-Forwarded-For']} by {headers['X-Forwarded-Proto']}"
    )


async def test_a_preview_that_is_in_use_does_not_pass_the_python_process(
    gateway: Harness, haproxy: HAProxy
) -> None:
    await gateway.raw_runtime()
    await gateway.expose("hello", {"port": 8080})
    host = gateway.preview_host("hello")
    await gateway.program(echo)

    async with asyncio.timeout(20):
        while True:
            answer = await haproxy.get("/path?x", host=host, headers="X-Forwarded-For: 6.6.6.6\r\n")
            assert answer.endswith(b"/path?x for 127.0.0.1 by https"), answer
            passed = (await haproxy.admin.answered())["2xx"]
            if passed >= 3:
                return


async def carried(gateway: Harness, haproxy: HAProxy) -> str:
    """The host of a preview, once HAProxy carries it."""
    await gateway.raw_runtime()
    await gateway.expose("hello", {"port": 8080})
    host = gateway.preview_host("hello")
    before = (await haproxy.admin.answered())["2xx"]
    async with asyncio.timeout(20):
        while (await haproxy.admin.answered())["2xx"] == before:
            await haproxy.get(host=host)
    return host


@pytest.mark.parametrize("upgrade", ["", "Upgrade: websocket\r\n"], ids=["request", "WebSocket"])
async def test_an_open_preview_opens_nothing_beside_it(
    gateway: Harness, haproxy: HAProxy, upgrade: str
) -> None:
    program = await gateway.raw_program()
    host = await carried(gateway, haproxy)
    label, _, domain = host.partition(".")
    token = label[-20:]
    before = len(program.received)

    for other in (
        *(f"{port}-hello-{token}" for port in ("08080", "+8080", "18080", "8081", "3000")),
        f"8080-other-{token}",
        f"8080-hello-{token[1:]}{token[0]}",
        f"x-{label}",
    ):
        answer = await haproxy.get(host=f"{other}.{domain}", headers=upgrade)
        assert answer.split()[1] in (b"400", b"404"), (other, answer)

    await gateway.expose("hello", {"port": 8080, "access": "Private"})
    async with asyncio.timeout(5):
        while (answer := await haproxy.get(host=host, headers=upgrade)).split()[1] != b"401":
            # Until it is out of HAProxy's map
            assert answer.split()[1] == b"200"
            before = len(program.received)
    assert len(program.received) == before


async def test_a_port_that_is_taken_back_is_closed_everywhere(gateway: Harness, haproxy: HAProxy) -> None:
    await gateway.program(echo)
    host = await carried(gateway, haproxy)

    await gateway.expose("hello", {"port": 9999})

    async with asyncio.timeout(5):
        while not (await haproxy.get(host=host)).startswith(b"HTTP/1.1 404"):
            pass
    passed = (await haproxy.admin.answered())["2xx"]
    assert (await haproxy.get(host=host)).startswith(b"HTTP/1.1 404")
    assert (await haproxy.admin.answered())["2xx"] == passed


async def test_once_it_is_said_that_a_port_is_taken_back_its_url_opens_nothing(
    gateway: Harness, haproxy: HAProxy
) -> None:
    await gateway.program(echo)
    port = f"{PREFIX}/namespaces/default/sandboxes/hello/ports/8080"
    for _ in range(20):
        host = await carried(gateway, haproxy)

        taken_back = await gateway.request("DELETE", port)
        answer = await haproxy.get(host=host)

        assert taken_back.status == 200
        assert answer.startswith(b"HTTP/1.1 404"), answer


async def test_the_address_of_a_client_is_the_one_that_haproxy_saw(
    gateway: Harness, haproxy: HAProxy
) -> None:
    await haproxy.get("/v1/namespaces/default/sandboxes", host="api", headers="X-Forwarded-For: 6.6.6.6\r\n")

    assert '"source":"127.0.0.1"' in gateway.log.getvalue()
