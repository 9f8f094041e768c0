"""Odd hosts, proxies in front, and ports that are taken back while somebody waits or listens."""

import asyncio

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateway_harness import Harness, until
from tests.support.gateway_previews import echo, exposed


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ("{host}", 200),
        ("{host}:8080", 200),
        ("{upper}", 200),
        ("{host}.", 200),
        ("{upper}.:8080", 200),
        ("{host}..", 404),
        (".", 404),
        ("{host}:abc", 400),
        ("{host}:", 400),
        ("{host}:123456", 400),
        ("user@{host}", 400),
        ("{host}/x", 400),
        ("{host}, {host}", 400),
        ("{host}\\x", 400),
        ("[::1]", 404),
        ("[::1]:80", 404),
        ("[{host}]", 400),
        ("x.{host}", 404),
        ("{host}\u00e9", 400),
        ("", 400),
    ],
)
async def test_a_host_is_written_in_one_way(gateway: Harness, form: str, status: int) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program()
    written = form.format(host=host, upper=host.upper())
    answer = await gateway.raw_preview(f"GET / HTTP/1.1\r\nHost: {written}\r\n\r\n".encode())
    assert answer.split()[1] == str(status).encode()
    assert program.connections == (status == 200)


async def test_a_request_without_a_host_or_with_two_is_refused(gateway: Harness) -> None:
    host = await exposed(gateway)
    for hosts in ("", f"Host: {host}\r\nHost: {host}\r\n"):
        answer = await gateway.raw_preview(f"GET / HTTP/1.1\r\n{hosts}\r\n".encode())
        assert answer.split()[1] == b"400"


async def test_a_proxy_that_is_trusted_says_who_came_and_how(built: Harness) -> None:
    await built.start(trusted_proxies=["127.0.0.0/8", "::1"])
    host = await exposed(built)
    program = await built.raw_program()

    await built.preview(
        "GET", host=host, headers={"X-Forwarded-For": "6.6.6.6, 192.0.2.1", "X-Forwarded-Proto": "https"}
    )

    head = program.head()
    assert b"X-Forwarded-For: 192.0.2.1" in head
    assert b"X-Forwarded-Proto: https" in head
    assert built.audit_lines()[-1]["source"] == "192.0.2.1"


async def test_a_host_cannot_add_a_header(gateway: Harness) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program()
    for written in (f"{host}\rX-Evil: 1", f"{host}\r\n X-Evil: 1", f"{host}\x00"):
        answer = await gateway.raw_preview(f"GET / HTTP/1.1\r\nHost: {written}\r\n\r\n".encode())
        assert answer.split()[1] == b"400"
    assert program.connections == 0


async def test_a_port_that_is_taken_back_while_a_request_waits_for_its_program_is_closed_to_it(
    built: Harness,
) -> None:
    await built.start(port_wait_seconds=5)
    runtime = await built.raw_runtime()
    place = built.not_listening()
    await built.expose("hello", {"port": 8080})
    waiting = asyncio.create_task(built.preview("GET", host=built.preview_host("hello")))
    await until(lambda: runtime.leases >= 2)
    await built.expose("hello", {"port": 8080, "tokenVersion": 2})
    await built.program(echo, place=place)
    # Either it was cut while it waited, or it was told when the program was there.
    try:
        answer = await waiting
    except aiohttp.ServerDisconnectedError:
        return
    assert answer.status == 404


@pytest.mark.parametrize("change", [{"tokenVersion": 2}, {"access": "Private"}, {"port": 9999}])
async def test_a_stream_ends_when_its_address_opens_nothing_any_more(
    built: Harness, change: dict[str, str | int]
) -> None:
    async def socket(request: web.BaseRequest) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for _ in ws:
            pass
        return ws

    await built.start(lease_seconds=0.05)
    host = await exposed(built)
    await built.program(socket)
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"ws://127.0.0.1:{built.gateway.http_port}/", headers={"Host": host}) as ws,
    ):
        await built.expose("hello", {"port": 8080, **change})
        assert (await ws.receive(timeout=5)).type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE)
        assert ws.close_code == aiohttp.WSCloseCode.ABNORMAL_CLOSURE
