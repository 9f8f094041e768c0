"""The API server for people with tokens of their own: what goes there with them, and what never does."""

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration
from sandpod_crds import errors, kube
from sandpod_crds.kube import Kube, watchful_socket
from sandpod_gateway import api_server
from sandpod_gateway.api_server import ApiServer

from tests.support.gateway_certificates import Authority

CA = Authority("cluster-ca")


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[tuple[int, list[Any]]]:
    """One with TLS that takes client certificates; what it saw of them and of the headers."""
    seen: list[Any] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        seen.append((request.transport.get_extra_info("peercert"), request.headers.get("Authorization")))
        return web.Response(text="ok")

    issued = CA.issue("kubernetes", dns=("kubernetes.default.svc",))
    pair = tmp_path / "server.pem"
    pair.write_text(issued.certificate + issued.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    context.load_verify_locations(cadata=CA.pem)
    context.verify_mode = ssl.CERT_OPTIONAL
    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield runner.addresses[0][1], seen
    await runner.cleanup()


def configured(port: int, tmp_path: Path, *, ca: Authority = CA) -> Configuration:
    """As a developer's kubeconfig has it: with a client certificate that may do everything."""
    ours = CA.issue("kubernetes-admin", client=True)
    for name, text in (("ca.pem", ca.pem), ("cert.pem", ours.certificate), ("key.pem", ours.key)):
        (tmp_path / name).write_text(text)
    configuration = Configuration()
    configuration.host = f"https://127.0.0.1:{port}"
    configuration.ssl_ca_cert = str(tmp_path / "ca.pem")
    configuration.cert_file = str(tmp_path / "cert.pem")
    configuration.key_file = str(tmp_path / "key.pem")
    configuration.api_key = {"BearerToken": "ours"}
    configuration.tls_server_name = "kubernetes.default.svc"
    return configuration


async def test_neither_our_certificate_nor_our_token_goes_along(
    server: tuple[int, list[Any]], tmp_path: Path
) -> None:
    port, seen = server
    api = ApiServer(configured(port, tmp_path))

    theirs = {"Authorization": "Bearer theirs"}
    for headers in (theirs, {}):
        answer = await api.send("GET", "/apis", headers=headers, body=None, endless=False)
        assert await answer.text() == "ok"
    await api.close()

    assert [(certificate or None, token) for certificate, token in seen] == [
        (None, "Bearer theirs"),
        (None, None),
    ]


async def test_a_connection_whose_other_side_has_died_is_noticed_by_the_kernel(
    server: tuple[int, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, _ = server
    made: list[socket.socket] = []

    def noted(address: Any) -> socket.socket:
        made.append(watchful_socket(address))
        return made[-1]

    monkeypatch.setattr(api_server, "watchful_socket", noted)
    monkeypatch.setattr(kube, "watchful_socket", noted)
    passed_on, ours = ApiServer(configured(port, tmp_path)), Kube(configured(port, tmp_path))
    answer = await passed_on.send("GET", "/", headers={}, body=None, endless=True)
    with contextlib.suppress(errors.ApiError):
        await ours.get("/")

    assert [each.getpeername()[1] for each in made] == [port, port]
    for each in made:
        assert each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert each.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
    answer.close()
    await passed_on.close()
    await ours.close()


async def test_a_server_that_the_clusters_ca_does_not_vouch_for_gets_no_token(
    server: tuple[int, list[Any]], tmp_path: Path
) -> None:
    port, seen = server
    api = ApiServer(configured(port, tmp_path, ca=Authority("another-ca")))

    with pytest.raises(aiohttp.ClientConnectorError):
        await api.send("GET", "/", headers={"Authorization": "Bearer theirs"}, body=None, endless=False)
    await api.close()

    assert seen == []
