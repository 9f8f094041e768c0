"""Previews at the gateway's own port: what opens a program in a sandbox, what it gets, and what is shown
instead of it.
"""

import asyncio

import aiohttp
import pytest
from aiohttp import web
from sandpod_gateway import preview
from sandpod_gateway.preview_headers import COOKIE
from sandpod_gateway.proxy import Proxy, Runtime

from tests.support.gateway_harness import Harness, until
from tests.support.gateway_previews import echo, exposed

TRACE = f"00-{'a' * 32}-{'b' * 16}-01"


async def test_the_address_opens_the_program_and_its_path_is_passed_on_as_it_is(gateway: Harness) -> None:
    host = await exposed(gateway)
    await gateway.program(echo)

    answer = await gateway.preview("POST", "/a%2Fb/../c//d?x=%20&y", host=host, data=b"body")

    assert (answer.status, answer.body) == (200, b"POST /a%2Fb/../c//d?x=%20&y")
    assert answer.headers["X-Body"] == "body"


@pytest.mark.parametrize("form", ["http://evil.example/", "evil.example:443", "*"])
async def test_a_target_that_is_no_path_is_refused(gateway: Harness, form: str) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program()

    answer = await gateway.raw_preview(f"GET {form} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    assert b" 400 " in answer.partition(b"\r\n")[0]
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
            "Traceparent": TRACE,
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
            f"Traceparent: {TRACE}".encode(),
        )
    )


@pytest.mark.parametrize("said", [None, "nonsense", f"00-{'0' * 32}-{'1' * 16}-00"])
async def test_the_program_gets_the_trace_that_the_audit_log_names(
    gateway: Harness, said: str | None
) -> None:
    host = await exposed(gateway)
    program = await gateway.raw_program()

    await gateway.preview("GET", host=host, headers={"Traceparent": said} if said else {})

    traces = [line for line in program.head() if line.lower().startswith(b"traceparent:")]
    assert traces == [b"Traceparent: 00-%b-%b-00" % tuple(traces[0].split(b"-")[1:3])]
    await until(lambda: bool(gateway.audit_lines()))
    assert gateway.audit_lines()[-1]["traceId"].encode() == traces[0].split(b"-")[1]


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


async def test_trailers_of_an_answer_end_here_and_the_next_answer_is_whole(gateway: Harness) -> None:
    host = await exposed(gateway)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
    await gateway.raw_program(answer=head + b"Trailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 444b\r\n\r\n")
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.gateway.http_port)
    for _ in range(2):
        writer.write(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert b"trailer" not in (await reader.readuntil(b"\r\n\r\n")).lower()
        assert await reader.readuntil(b"\r\n\r\n") == b"2\r\nok\r\n0\r\n\r\n"
    writer.close()


async def test_a_poll_is_held_while_others_are_answered(gateway: Harness) -> None:
    held, news = asyncio.Event(), asyncio.Event()

    async def program(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/poll":
            held.set()
            await news.wait()
        return web.Response(text=request.path)

    host = await exposed(gateway)
    await gateway.program(program)
    poll = asyncio.create_task(gateway.preview("GET", "/poll", host=host))
    await held.wait()

    assert (await gateway.preview("GET", "/other", host=host)).body == b"/other"
    assert not poll.done()
    news.set()
    assert (await poll).body == b"/poll"


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


async def test_a_program_that_begins_to_listen_just_then_is_not_taken_for_one_that_has_ended(
    gateway: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await gateway.raw_runtime()
    place = gateway.not_listening()
    await gateway.expose("hello", {"port": 8080})
    host = gateway.preview_host("hello")
    refused, answered, is_awake = asyncio.Event(), asyncio.Event(), Proxy.is_awake

    async def is_awake_after_a_while(proxy: Proxy, runtime: Runtime) -> bool:
        refused.set()
        await answered.wait()
        return await is_awake(proxy, runtime)

    monkeypatch.setattr(Proxy, "is_awake", is_awake_after_a_while)
    first = asyncio.create_task(gateway.preview("GET", "/first", host=host))
    await refused.wait()
    await gateway.program(echo, place=place)
    assert (await gateway.preview("GET", "/second", host=host)).body == b"GET /second"

    answered.set()

    assert (await first).body == b"GET /first"


async def test_a_paused_sandbox_is_said_to_be_and_not_woken(gateway: Harness) -> None:
    host = await exposed(gateway, phase="Asleep", ready=False, pod_ip="", paused=True)
    answer = await gateway.preview("GET", host=host)
    assert (answer.status, answer.json["code"], gateway.api.wakes) == (409, "SANDBOX_PAUSED", [])


async def test_a_sandbox_that_cannot_start_is_said_to_be_and_seldom_asked_for_again(gateway: Harness) -> None:
    host = await exposed(gateway, phase="Failed", ready=False, pod_ip="", reason="ImagePullFailed")

    program = await gateway.preview("GET", host=host)
    person = await gateway.preview("GET", host=host, headers={"Accept": "text/html"})

    assert (program.status, program.json["code"]) == (503, "SANDBOX_FAILED")
    assert person.headers["Retry-After"] == "30"
    assert b"It cannot start" in person.body
    assert b'http-equiv="refresh" content="30"' in person.body
    assert gateway.api.wakes == []


async def test_a_form_waits_for_a_sleeping_sandbox_longer_than_a_page(
    built: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "_LONGEST_FOR_PEOPLE", 0.1)
    await built.start(wake_wait_seconds=20)
    host = await exposed(built, phase="Asleep", ready=False, pod_ip="")
    await built.program(echo)
    html = {"Accept": "text/html"}
    form = asyncio.create_task(built.preview("POST", "/form", host=host, headers=html))

    page = await built.preview("GET", host=host, headers=html)
    head = await built.preview("HEAD", host=host, headers=html)
    await built.expose("hello", {"port": 8080})

    assert (page.status, head.status) == (503, 503)
    assert b"Waking up" in page.body
    assert (await form).body == b"POST /form"


async def test_only_a_page_that_tries_again_by_itself_says_so(built: Harness) -> None:
    await built.start(wake_wait_seconds=0.1)
    host = await exposed(built, phase="Asleep", ready=False, pod_ip="")

    for method, accept, by_itself in (
        ("GET", "text/html", True),
        ("POST", "text/html", False),
        ("GET", "application/json", False),
    ):
        answer = await built.preview(method, host=host, headers={"Accept": accept})
        assert answer.status == 503
        assert (b"tries again by itself" in answer.body) is by_itself
        assert (b"refresh" in answer.body) is by_itself
        assert (b"Send it again in a moment." in answer.body) is not by_itself


async def test_requests_and_connections_of_previews_are_in_the_metrics(gateway: Harness) -> None:
    host = await exposed(gateway)
    held, go_on = asyncio.Event(), asyncio.Event()

    async def program(request: web.BaseRequest) -> web.StreamResponse:
        held.set()
        await go_on.wait()
        return web.Response()

    await gateway.program(program)
    asking = asyncio.create_task(gateway.preview("GET", host=host))
    await held.wait()
    meanwhile = await gateway.metrics()
    go_on.set()
    await asking
    afterwards = await gateway.metrics()

    assert "sandpod_gateway_connections 1" in meanwhile
    assert "sandpod_gateway_runtime_requests 1" in meanwhile
    # One to the runtime, which gave a lease, and one to the program
    assert "sandpod_gateway_runtime_requests 0" in afterwards
    assert "sandpod_gateway_runtime_idle_connections 2" in afterwards


async def test_a_request_wakes_a_sleeping_sandbox_once_however_many_come(gateway: Harness) -> None:
    host = await exposed(gateway, phase="Asleep", ready=False, pod_ip="")
    await gateway.program(echo)
    waiting = [asyncio.create_task(gateway.preview("GET", f"/{n}", host=host)) for n in range(20)]
    await until(lambda: bool(gateway.api.wakes))
    await gateway.expose("hello", {"port": 8080})

    answers = await asyncio.gather(*waiting)

    assert sorted(answer.body for answer in answers) == sorted(f"GET /{n}".encode() for n in range(20))
    assert len(gateway.api.wakes) == 1


async def test_no_more_requests_wait_for_a_sandbox_than_there_is_room_for(built: Harness) -> None:
    await built.start(wake_wait_seconds=5, max_waiting_per_sandbox=2)
    host = await exposed(built, phase="Asleep", ready=False, pod_ip="")
    await built.program(echo)
    waiting = [asyncio.create_task(built.preview("GET", host=host)) for _ in range(2)]
    await until(lambda: bool(built.api.wakes))
    async with asyncio.timeout(5):
        while "sandpod_gateway_waiting_requests 2" not in await built.metrics():
            pass

    program = await built.preview("GET", host=host)
    person = await built.preview("POST", host=host, headers={"Accept": "text/html"})

    assert (program.status, program.json["code"]) == (503, "TOO_MANY_WAITING")
    assert (person.status, person.headers["Retry-After"]) == (503, "3")
    # A form is not sent twice by itself.
    assert b"refresh" not in person.body
    await built.expose("hello", {"port": 8080})
    assert [answer.status for answer in await asyncio.gather(*waiting)] == [200, 200]


async def test_a_page_says_nothing_that_the_address_does_not_say(gateway: Harness) -> None:
    host = await exposed(
        gateway, reason="ImagePullBackOff", message="secret-registry/image", phase="Failed", ready=False
    )
    for accept in ("text/html", "application/json"):
        answer = await gateway.preview("GET", "/?q=<script>", host=host, headers={"Accept": accept})
        assert answer.status == 503
        assert b"status" in answer.body
        for word in (b"secret-registry", b"ImagePull", b"default", b"uid-of", b"10.0.0.1", b"<script>"):
            assert word not in answer.body
        assert answer.headers["Cache-Control"] == "no-store"
