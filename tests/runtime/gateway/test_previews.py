"""Previews at the gateway's own port: what opens a program in a sandbox, what it gets, and what is shown
instead of it.
"""

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from sandpod_gateway.preview_headers import COOKIE

from tests.support.gateway_harness import Harness, until


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(
        text=f"{request.method} {request.raw_path}", headers={"X-Body": (await request.read()).decode()}
    )


async def exposed(gateway: Harness, **values: Any) -> str:
    """A sandbox that exposes port 8080; returns the host of its preview."""
    await gateway.raw_runtime()
    await gateway.expose("hello", {"port": 8080}, **values)
    return gateway.preview_host("hello")


async def test_the_address_opens_the_program_and_its_path_is_passed_on_as_it_is(gateway: Harness) -> None:
    host = await exposed(gateway)
    await gateway.program(echo)

    answer = await gateway.preview("POST", "/a%2Fb/../c//d?x=%20&y", host=host, data=b"body")

    assert (answer.status, answer.body) == (200, b"POST /a%2Fb/../c//d?x=%20&y")
    assert answer.headers["X-Body"] == "body"


async def test_a_path_with_two_slashes_stays_a_path_of_this_program(gateway: Harness) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program()

    request = f"GET //evil.example/x HTTP/1.1\r\nHost: {host}\r\n\r\n"
    assert (await gateway.raw_preview(request.encode())).startswith(b"HTTP/1.1 200")
    assert program.head()[0] == b"GET //evil.example/x HTTP/1.1"


@pytest.mark.parametrize("form", ["http://evil.example/", "evil.example:443", "*"])
async def test_a_target_that_is_no_path_is_refused(gateway: Harness, form: str) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program()

    answer = await gateway.raw_preview(f"GET {form} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert program.connections == 0


async def test_a_wrong_token_wakes_nothing_and_looks_like_a_name_that_is_not_there(gateway: Harness) -> None:
    host = await exposed(gateway, phase="Asleep", ready=False, pod_ip="")
    wrong = host.replace(host.split(".")[0][-20:], "a" * 20)

    known = await gateway.preview("GET", host=wrong)
    unknown = await gateway.preview("GET", host=wrong.replace("hello", "nobody"))

    assert (known.status, known.body) == (404, unknown.body)
    assert {**known.headers} | {"Date": ""} == {**unknown.headers} | {"Date": ""}
    assert gateway.api.wakes == []


async def test_a_token_opens_one_port_of_one_sandbox(gateway: Harness) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program(port=8081)
    await gateway.expose("hello", {"port": 8080}, {"port": 8081})
    token = host.split(".")[0][-20:]

    for label in ("8081-hello", "8080-other", "3000-hello", "08080-hello"):
        assert (await gateway.preview("GET", host=f"{label}-{token}.sandpod.localhost")).status == 404
    assert program.connections == 0


async def test_a_port_that_is_taken_back_or_rotated_is_closed_at_once(gateway: Harness) -> None:
    host = await exposed(gateway)
    await gateway.program(echo)
    assert (await gateway.preview("GET", host=host)).status == 200

    await gateway.expose("hello", {"port": 8080, "tokenVersion": 2})
    assert (await gateway.preview("GET", host=host)).status == 404
    assert (await gateway.preview("GET", host=gateway.preview_host("hello", version=2))).status == 200

    await gateway.expose("hello")
    assert (await gateway.preview("GET", host=gateway.preview_host("hello", version=2))).status == 404


async def test_the_program_learns_who_came_how_and_cannot_be_lied_to_about_it(gateway: Harness) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program()

    await gateway.preview(
        "GET",
        host=f"{host}:8080",
        headers={
            "X-Forwarded-For": "1.2.3.4",
            "X-Forwarded-Proto": "https",
            "X_Forwarded_Host": "evil.example",
            "Forwarded": "for=1.2.3.4",
            "X-Real-IP": "1.2.3.4",
            "X-Sandpod-Credential": "x",
            "Authorization": "Bearer of-the-app",
            "Cookie": f"a=1; {COOKIE}=secret; b=2",
        },
    )

    head = [line for line in program.head()[1:] if not line.lower().startswith((b"accept", b"user-agent"))]
    assert sorted(head) == sorted(
        (
            f"Host: {host}:8080".encode(),
            b"Authorization: Bearer of-the-app",
            b"Cookie: a=1; b=2",
            b"X-Forwarded-For: 127.0.0.1",
            f"X-Forwarded-Host: {host}:8080".encode(),
            b"X-Forwarded-Proto: http",
        )
    )


async def test_a_program_sets_cookies_for_its_own_host_only_and_leaks_no_referrer(
    gateway: Harness,
) -> None:
    host = await exposed(gateway)
    await gateway.raw_program(
        answer=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: mine=1; Path=/\r\n"
        b"Set-Cookie: theirs=1; DOMAIN = sandpod.localhost\r\nX-Sandpod-Credential: x\r\n"
        b"set-cookie: __host-sandpod=forged; Secure; Path=/\r\n\r\n"
    )

    answer = await gateway.preview("GET", host=host)

    assert answer.headers.getall("Set-Cookie") == ["mine=1; Path=/"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "X-Sandpod-Credential" not in answer.headers


async def test_a_referrer_policy_of_the_program_itself_stands(gateway: Harness) -> None:
    host = await exposed(gateway)
    await gateway.raw_program(
        answer=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nReferrer-Policy: origin\r\n\r\n"
    )
    assert (await gateway.preview("GET", host=host)).headers.getall("Referrer-Policy") == ["origin"]


async def test_a_program_that_answers_503_is_not_taken_for_a_runtime_going_to_sleep(
    gateway: Harness,
) -> None:
    host = await exposed(gateway)
    body = b'{"code":"CONTAINER_UNAVAILABLE"}'
    program = await gateway.raw_program(
        answer=b"HTTP/1.1 503 Busy\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    answer = await gateway.preview("GET", host=host)
    assert (answer.status, answer.body, program.connections) == (503, body, 1)


async def test_websockets_pass_both_ways(gateway: Harness) -> None:
    async def socket(request: web.BaseRequest) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(message.data[::-1])
        return ws

    host = await exposed(gateway)
    await gateway.program(socket)
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"ws://127.0.0.1:{gateway.gateway.http_port}/x", headers={"Host": host}) as ws,
    ):
        await ws.send_str("abc")
        assert (await ws.receive()).data == "cba"


async def test_a_websocket_needs_the_token_as_every_request_does(gateway: Harness) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program()
    wrong = host.replace(host.split(".")[0][-20:], "a" * 20)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(f"ws://127.0.0.1:{gateway.gateway.http_port}/", headers={"Host": wrong})
    assert (refused.value.status, program.connections) == (404, 0)


async def test_a_port_on_which_nobody_listens_is_said_to_people_and_programs(gateway: Harness) -> None:
    host = await exposed(gateway)

    program = await gateway.preview("GET", host=host)
    person = await gateway.preview("GET", host=host, headers={"Accept": "text/html,*/*"})

    assert (program.status, program.json["code"]) == (502, "PORT_NOT_LISTENING")
    assert (person.status, person.headers["Retry-After"]) == (502, "2")
    assert b'http-equiv="refresh"' in person.body


async def test_a_request_waits_for_a_program_that_is_just_starting(gateway: Harness) -> None:
    runtime = await gateway.raw_runtime()
    place = gateway.not_listening()
    await gateway.expose("hello", {"port": 8080})
    waiting = asyncio.create_task(gateway.preview("GET", "/x", host=gateway.preview_host("hello")))
    # Once before the port is tried, and once more because nobody was there.
    await until(lambda: runtime.leases >= 2)
    await gateway.program(echo, place=place)
    assert (await waiting).body == b"GET /x"


async def test_a_paused_sandbox_is_said_to_be_and_not_woken(gateway: Harness) -> None:
    host = await exposed(gateway, phase="Asleep", ready=False, pod_ip="", paused=True)
    answer = await gateway.preview("GET", host=host)
    assert (answer.status, answer.json["code"], gateway.api.wakes) == (409, "SANDBOX_PAUSED", [])


async def test_a_request_wakes_a_sleeping_sandbox_once_however_many_come(gateway: Harness) -> None:
    host = await exposed(gateway, phase="Asleep", ready=False, pod_ip="")
    await gateway.program(echo)
    waiting = [asyncio.create_task(gateway.preview("GET", f"/{n}", host=host)) for n in range(20)]
    await until(lambda: bool(gateway.api.wakes))
    await gateway.expose("hello", {"port": 8080})

    answers = await asyncio.gather(*waiting)

    assert sorted(answer.body for answer in answers) == sorted(f"GET /{n}".encode() for n in range(20))
    assert len(gateway.api.wakes) == 1


async def test_a_private_port_is_not_opened_by_its_address_alone(gateway: Harness) -> None:
    await gateway.raw_runtime()
    program = await gateway.raw_program()
    await gateway.expose("hello", {"port": 8080, "access": "Private"})
    answer = await gateway.preview("GET", host=gateway.preview_host("hello"))
    assert (answer.status, answer.json["code"], program.connections) == (401, "LOGIN_NEEDED", 0)
