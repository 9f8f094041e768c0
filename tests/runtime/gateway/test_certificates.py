"""Certificates and CAs that change while the gateway runs, or are not there yet when it starts."""

import asyncio
import base64
import contextlib
import ssl

import aiohttp
import pytest

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_certificates import Authority
from tests.support.gateway_harness import FRONT_PROXY, PREFIX, Harness, proxy_path, until


async def served_certificate(built: Harness) -> bytes:
    """The one that a new connection is shown."""
    _, writer = await built.connect()
    shown: ssl.SSLObject = writer.get_extra_info("ssl_object")
    certificate = shown.getpeercert(binary_form=True)
    writer.close()
    assert certificate is not None
    return certificate


async def status_for(built: Harness, context: ssl.SSLContext) -> int | None:
    """What a fresh connection with this context gets; None when TLS fails already."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        with contextlib.suppress(aiohttp.ClientError):
            return (await built.request("GET", PREFIX, session=session)).status
    return None


async def test_a_new_certificate_is_served_without_a_restart(built: Harness) -> None:
    await built.start(refresh_seconds=0.05)
    before = await served_certificate(built)

    issued = built.renew_certificate()

    async with asyncio.timeout(5):
        while (now := await served_certificate(built)) == before:
            pass
    assert base64.b64encode(now).decode() in issued.certificate.replace("\n", "")


async def test_the_front_proxys_new_ca_is_believed_and_the_old_one_no_more(built: Harness) -> None:
    await built.start(refresh_seconds=0.05)
    new_ca = Authority("front-proxy-ca-2")
    old, new = built.front_proxy_context(), built.front_proxy_context(by=new_ca)
    assert (await status_for(built, old), await status_for(built, new)) == (200, None)

    built.api.authentication = built.authentication(new_ca)

    async with asyncio.timeout(5):
        while await status_for(built, new) != 200:
            pass
    assert await status_for(built, old) is None


async def test_a_connection_from_before_the_ca_changed_ends_with_its_next_answer(built: Harness) -> None:
    await built.start(refresh_seconds=0.05)
    assert "Connection" not in (await built.request("GET", PREFIX)).headers

    built.api.authentication = built.authentication(Authority("front-proxy-ca-2"))
    # A connection of the old CA's cannot be made again: that the new one is in force shows in this.
    probe = built.front_proxy_context()
    async with asyncio.timeout(5):
        while await status_for(built, probe) is not None:
            pass

    answer = await built.request("GET", PREFIX)
    assert (answer.status, answer.headers["Connection"]) == (200, "close")
    with pytest.raises(aiohttp.ClientError):
        await built.request("GET", PREFIX)


async def test_the_answer_of_a_runtime_too_ends_an_old_connection(built: Harness) -> None:
    await built.start(refresh_seconds=0.05)
    await built.raw_runtime()
    await built.api.put(sandbox("hello"))
    assert (await built.request("POST", proxy_path("hello"))).status == 200
    before = await served_certificate(built)
    built.renew_certificate()
    async with asyncio.timeout(5):
        while await served_certificate(built) == before:
            pass

    answer = await built.request("POST", proxy_path("hello"))

    assert (answer.body, answer.headers["Connection"]) == (b"ok", "close")


async def test_a_name_that_is_allowed_no_more_is_refused_on_open_connections(built: Harness) -> None:
    await built.start(refresh_seconds=0.05)
    assert (await built.request("GET", PREFIX)).status == 200

    built.api.authentication["requestheader-allowed-names"] = '["another-front-proxy"]'

    async with asyncio.timeout(5):
        while (await built.request("GET", PREFIX)).status != 401:
            pass


@pytest.mark.parametrize("broken", ["certificate", "key of another", "ca", "nothing"])
async def test_what_does_not_fit_leaves_the_old_certificate_in_place(built: Harness, broken: str) -> None:
    await built.start(refresh_seconds=0.02)
    before = await served_certificate(built)
    pair = built.api.secrets["sandpod-gateway-tls"]
    match broken:
        case "certificate":
            built.api.secrets["sandpod-gateway-tls"] = {**pair, "tls.crt": b"garbage"}
        case "key of another":
            other = built.serving_ca.issue("other").key.encode()
            built.api.secrets["sandpod-gateway-tls"] = {**pair, "tls.key": other}
        case "ca":
            built.api.authentication = {**built.api.authentication, "requestheader-client-ca-file": "garbage"}
        case _:
            del built.api.secrets["sandpod-gateway-tls"]

    reads = built.api.reads
    await until(lambda: built.api.reads > reads + 6)

    assert await served_certificate(built) == before
    assert (await built.request("GET", PREFIX)).status == 200
    assert not built.running.done()


async def test_the_gateway_waits_for_secrets_that_the_operator_has_yet_to_make(built: Harness) -> None:
    secrets = dict(built.api.secrets)
    built.api.secrets.clear()
    await built.start_api()
    await built.start_gateway()
    await until(lambda: built.api.reads > 3)
    assert built.gateway.https_port is None

    built.api.secrets.update(secrets)

    await built.until_ready()
    assert (await built.request("GET", PREFIX)).status == 200


async def test_the_gateway_waits_for_a_pair_that_fits(built: Harness) -> None:
    pair = built.api.secrets["sandpod-gateway-tls"]
    built.api.secrets["sandpod-gateway-tls"] = {**pair, "tls.crt": b"garbage"}
    await built.start_api()
    await built.start_gateway()
    await until(lambda: built.api.reads > 3)

    built.api.secrets["sandpod-gateway-tls"] = pair

    await built.until_ready()


async def test_only_current_protocols_are_spoken(gateway: Harness) -> None:
    context = gateway.front_proxy_context(FRONT_PROXY)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert await status_for(gateway, context) is None

    context = gateway.front_proxy_context(FRONT_PROXY)
    context.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.gateway.https_port, ssl=context)
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    writer.close()
