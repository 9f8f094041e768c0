"""Previews with `access: Private`: who is let in, for how long, and what the program learns of it."""

import asyncio

import aiohttp
import pytest
from aiohttp import web
from sandpod_gateway.preview_headers import COOKIE

from tests.support.gateway_harness import Harness, until
from tests.support.gateway_previews import V1, cookie_of, echo, exposed
from tests.support.gateway_visitors import JANES

BEARER = {"Authorization": f"Bearer {JANES}"}


async def test_the_address_alone_opens_nothing_and_wakes_nothing(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private", phase="Asleep", ready=False, pod_ip="")

    program = await gateway.preview("GET", host=host)
    person = await gateway.preview("GET", host=host, headers={"Accept": "text/html"})

    assert (program.status, program.json["code"]) == (401, "LOGIN_NEEDED")
    assert program.headers["WWW-Authenticate"] == "Bearer"
    assert (person.status, b"sandpod open" in person.body) == (401, True)
    assert gateway.api.wakes == []


async def test_a_bearer_token_that_may_see_the_ports_opens_it_and_stays_at_the_gateway(
    gateway: Harness,
) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()

    answer = await gateway.preview("POST", host=host, headers=BEARER, data=b"x")

    assert (answer.status, answer.body) == (200, b"ok")
    assert JANES.encode() not in bytes(program.received)
    assert gateway.api.reviews[-1]["user"] == "jane"
    assert gateway.api.reviews[-1]["resourceAttributes"] == {
        "group": "sandpod.dev",
        "version": "v1alpha1",
        "resource": "sandboxes",
        "subresource": "ports",
        "verb": "get",
        "namespace": "default",
        "name": "",
    }
    assert gateway.audit_lines()[-1]["user"] == "jane"


async def test_when_nobody_says_whether_somebody_may_the_page_does_not_promise_a_sandbox(
    gateway: Harness,
) -> None:
    host = await exposed(gateway, access="Private")
    gateway.api.down = True

    program = await gateway.preview("GET", host=host, headers=BEARER)
    person = await gateway.preview("GET", host=host, headers={**BEARER, "Accept": "text/html"})

    assert (program.status, program.json["code"]) == (503, "NOT_CHECKED")
    assert program.headers["Retry-After"] == "2"
    assert b"could not be checked" in person.body
    assert b"Waking" not in person.body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer of-nobody"}, 401),
        ({"Authorization": "Basic amFuZTpqYW5l"}, 401),
        ({"Cookie": f"{COOKIE}=forged.forged"}, 401),
        ({"Cookie": f"{COOKIE}=.; {COOKIE}="}, 401),
    ],
)
async def test_whoever_proves_nothing_is_not_let_in(
    gateway: Harness, headers: dict[str, str], status: int
) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    assert (await gateway.preview("GET", host=host, headers=headers)).status == status
    assert program.connections == 0


async def test_who_may_not_see_the_ports_gets_neither_in_nor_a_link(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    gateway.api.allow = lambda spec: False

    assert (await gateway.preview("GET", host=host, headers=BEARER)).status == 403
    refused = await gateway.v1("POST", f"{V1}/hello/ports/8080/login")

    assert (refused.status, program.connections) == (403, 0)
    assert 'cannot get resource "sandboxes/ports"' in refused.json["message"]


async def test_a_right_that_is_taken_away_ends_access_however_good_the_cookie(built: Harness) -> None:
    await built.start(authorization_cache_seconds=0.05)
    host = await exposed(built, access="Private")
    await built.program(echo)
    cookie = {"Cookie": await cookie_of(built)}
    assert (await built.preview("GET", host=host, headers=cookie)).status == 200

    built.api.allow = lambda spec: False

    async with asyncio.timeout(5):
        while (await built.preview("GET", host=host, headers=cookie)).status != 403:
            pass


async def test_a_right_that_is_taken_away_while_a_request_waits_counts(built: Harness) -> None:
    await built.start(authorization_cache_seconds=0, wake_wait_seconds=5)
    host = await exposed(built, access="Private", phase="Asleep", ready=False, pod_ip="")
    program = await built.raw_program()
    waiting = asyncio.create_task(built.preview("GET", host=host, headers=BEARER))
    await until(lambda: bool(built.api.wakes))

    built.api.allow = lambda spec: False
    await built.expose("hello", {"port": 8080, "access": "Private"})

    assert ((await waiting).status, program.connections) == (403, 0)


async def test_a_port_that_is_made_private_while_a_request_waits_is_closed_to_it(built: Harness) -> None:
    await built.start(wake_wait_seconds=5)
    host = await exposed(built, phase="Asleep", ready=False, pod_ip="")
    program = await built.raw_program()
    waiting = asyncio.create_task(built.preview("GET", host=host))
    await until(lambda: bool(built.api.wakes))

    await built.expose("hello", {"port": 8080, "access": "Private"})

    assert ((await waiting).status, program.connections) == (401, 0)


async def test_with_a_login_authorization_is_the_programs_own(gateway: Harness) -> None:
    host = await exposed(gateway, access="Private")
    program = await gateway.raw_program()
    headers = {"Cookie": await cookie_of(gateway), "Authorization": "token of-jupyter"}
    assert (await gateway.preview("GET", host=host, headers=headers)).status == 200
    assert b"Authorization: token of-jupyter" in program.head()


async def test_a_page_of_the_preview_opens_websockets_with_its_login(gateway: Harness) -> None:
    async def socket(request: web.BaseRequest) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        await ws.send_str("hello")
        return ws

    host = await exposed(gateway, access="Private")
    await gateway.program(socket)
    url = f"ws://127.0.0.1:{gateway.gateway.http_port}/"
    for who in ({"Cookie": await cookie_of(gateway), "Origin": f"http://{host}"}, BEARER):
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.ws_connect(url, headers={"Host": host, **who}) as ws,
        ):
            assert (await ws.receive(timeout=5)).data == "hello"
