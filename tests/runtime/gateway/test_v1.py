"""Door two: who gets in with a bearer token, and what is behind it."""

import asyncio
import json

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import Harness, proxy_path, until
from tests.support.gateway_visitors import JANES

V1 = "/v1/namespaces/default/sandboxes"


async def test_a_token_opens_what_its_owner_may_open(hello: Harness) -> None:
    runtime = await hello.raw_runtime()
    hello.api.visitors.users[JANES] |= {"uid": "j", "extra": {"example.com/Scopes": ["a", "b"]}}

    answer = await hello.v1("POST", f"{V1}/hello/proxy/api/execute?a=%2F&b", data=b'{"command":"id"}')

    assert (answer.status, answer.body) == (200, b"ok")
    assert runtime.head()[0] == b"POST /api/execute?a=%2F&b HTTP/1.1"
    assert bytes(runtime.received).endswith(b'{"command":"id"}')
    (review,) = hello.api.reviews
    assert review == {
        "user": "jane",
        "uid": "j",
        "groups": ["system:authenticated"],
        "extra": {"example.com/Scopes": ["a", "b"]},
        "resourceAttributes": {
            "group": "sandpod.dev",
            "version": "v1alpha1",
            "resource": "sandboxes",
            "subresource": "exec",
            "verb": "create",
            "namespace": "default",
            "name": "",
        },
    }


async def test_the_token_stays_at_the_gateway(hello: Harness) -> None:
    runtime = await hello.raw_runtime()

    await hello.v1("POST", f"{V1}/hello/proxy/api/execute")
    refused = await hello.v1("POST", f"{V1}/hello/proxy/api/execute", token="of-nobody")

    assert JANES.encode() not in bytes(runtime.received)
    assert b"of-nobody" not in refused.body
    assert not any(token in hello.log.getvalue() for token in (JANES, "of-nobody"))


async def test_a_token_is_reviewed_once_however_many_requests_carry_it(hello: Harness) -> None:
    await hello.raw_runtime()

    await asyncio.gather(*(hello.v1("GET", f"{V1}/hello/proxy/api/ping") for _ in range(5)))
    await hello.v1("GET", f"{V1}/hello/proxy/api/ping")

    assert hello.api.visitors.reviewed == [JANES]


async def test_a_token_that_is_good_no_more_ends_within_the_caches_time(built: Harness) -> None:
    await built.start(authorization_cache_seconds=0.05)
    await built.raw_runtime()
    await built.api.put(sandbox("hello"))
    assert (await built.v1("GET", f"{V1}/hello/proxy/api/ping")).status == 200

    del built.api.visitors.users[JANES]

    async with asyncio.timeout(5):
        while (await built.v1("GET", f"{V1}/hello/proxy/api/ping")).status != 401:
            pass


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Basic amFuZTpqYW5l", "Bearer two words", "Bearer \u00e9", "Bearer a,b"],
)
async def test_without_a_token_nobody_is_asked(hello: Harness, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}

    answer = await hello.v1("GET", f"{V1}/hello/proxy/api/ping", token=None, headers=headers)

    assert (answer.status, answer.json["reason"]) == (401, "Unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert (hello.api.visitors.reviewed, hello.api.reviews, hello.api.gets) == ([], [], 0)
    await until(lambda: [line["status"] for line in hello.audit_lines()] == [401])


async def test_who_guesses_is_held_up_and_who_was_known_is_not(built: Harness) -> None:
    await built.start(refused_tokens_per_minute=3, authorization_cache_seconds=0.02)
    await built.raw_runtime()
    await built.api.put(sandbox("hello"))
    path = f"{V1}/hello/proxy/api/ping"
    assert (await built.v1("GET", path)).status == 200

    guesses = await asyncio.gather(*(built.v1("GET", path, token=f"guess-{n}") for n in range(10)))

    assert sorted(guess.status for guess in guesses) == [401] * 3 + [429] * 7
    refused = next(guess for guess in guesses if guess.status == 429)
    assert int(refused.headers["Retry-After"]) >= 1
    assert len(built.api.visitors.reviewed) == 4
    # Also when it has to be asked about again: somebody behind the same proxy must not shut her out.
    async with asyncio.timeout(5):
        while len(built.api.visitors.reviewed) == 4:
            assert (await built.v1("GET", path)).status == 200


async def test_when_nobody_can_say_whose_a_token_is_it_is_nobodys(built: Harness) -> None:
    await built.start(authorization_cache_seconds=0)
    runtime = await built.raw_runtime()
    await built.api.put(sandbox("hello"))
    built.api.down = True

    answer = await built.v1("GET", f"{V1}/hello/proxy/api/ping")

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert runtime.connections == 0


async def test_identity_headers_are_nobodys_at_this_door(hello: Harness) -> None:
    await hello.raw_runtime()
    admin = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}

    answer = await hello.v1("GET", f"{V1}/hello/proxy/api/ping", headers=admin)
    without = await hello.v1("GET", f"{V1}/hello/proxy/api/ping", headers=admin, token=None)

    assert (answer.status, without.status) == (200, 401)
    assert hello.api.reviews[0]["user"] == "jane"


async def test_impersonation_is_refused_and_not_passed_over(hello: Harness) -> None:
    for path in (f"{V1}/hello", f"{V1}/hello/proxy/api/ping"):
        answer = await hello.v1("GET", path, headers={"Impersonate-User": "viewer"})
        assert answer.status == 400
        assert "impersonated" in answer.json["message"]
    assert hello.api.visitors.visits == []


async def test_a_refusal_names_the_missing_permission(hello: Harness) -> None:
    hello.api.allow = lambda spec: False

    for method, path, missing in (
        ("POST", "proxy/api/execute", 'cannot create resource "sandboxes/exec"'),
        ("POST", "wake", 'cannot create resource "sandboxes/wake"'),
        ("POST", "sleep", 'cannot create resource "sandboxes/sleep"'),
        ("GET", "ports", 'cannot get resource "sandboxes/ports"'),
        ("POST", "ports", 'cannot create resource "sandboxes/ports"'),
        ("DELETE", "ports/8080", 'cannot delete resource "sandboxes/ports"'),
        ("POST", "ports/8080/rotate", 'cannot create resource "sandboxes/ports"'),
    ):
        answer = await hello.v1(method, f"{V1}/hello/{path}")
        assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
        assert missing in answer.json["message"]
    assert hello.api.gets == 0


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v1/namespaces",
        "/v1/namespaces/default/pods",
        "/v1/namespaces/default/secrets/key",
        "/v1/sandboxes",
        f"{V1}/",
        f"{V1}/hello/",
        f"{V1}/hello/status",
        f"{V1}/hello/proxyx",
        f"{V1}/hello/exec",
        f"{V1}/hello/wake/",
        f"{V1}/hello/log/",
        f"{V1}/hello/ports/",
        f"{V1}/hello/ports/08080",
        f"{V1}/hello/ports/8080/",
        f"{V1}/hello/ports/8080/rotate/x",
        f"{V1}/hello/../../secrets",
        f"{V1}/..",
        f"{V1}/%2e%2e/secrets",
        f"{V1}/hello%2fstatus",
        f"{V1}/hello%3fx",
        f"{V1}/hello;x",
        f"{V1}/Hello",
        f"{V1}/hello%00",
        f"//{V1}",
        "/v1/namespaces/default%2f../sandboxes",
        "/v1/namespaces/../sandboxes",
        "/v1/namespaces//sandboxes",
        f"{V1}/{'a' * 254}",
        f"/v1/namespaces/{'a' * 64}/sandboxes",
        "/v1/apis/v1/secrets",
        "/apis/sandpod.dev/v1alpha1/namespaces/default/sandboxes",
        "/api/v1/secrets",
        proxy_path("hello"),
    ],
)
async def test_there_is_nothing_else(hello: Harness, path: str) -> None:
    answer = await hello.v1("GET", path)

    assert (answer.status, answer.json["kind"], answer.json["reason"]) == (404, "Status", "NotFound")
    assert hello.api.visitors.visits == []


async def test_absolute_targets_go_nowhere(hello: Harness) -> None:
    port = hello.gateway.http_port
    for target in ("http://elsewhere/v1/namespaces/default/sandboxes", "elsewhere:443"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        method = "CONNECT" if target.endswith(":443") else "GET"
        writer.write(
            f"{method} {target} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer {JANES}\r\n\r\n".encode()
        )
        assert b" 400 " in await reader.readline()
        writer.close()
    assert hello.api.visitors.visits == []


async def test_each_request_is_on_record_with_who_and_what(hello: Harness) -> None:
    async def made(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "Sandbox"}, status=201, headers={"Audit-Id": "at-the-api-server"})

    hello.api.visitors.answer = made
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    body = json.dumps({"metadata": {"name": "new"}, "spec": {"env": [{"name": "A", "value": "secret"}]}})

    await hello.v1("POST", f"{V1}?fieldManager=secret", data=body, headers={"traceparent": trace})
    await hello.v1("GET", f"{V1}?watch=true")
    await hello.v1("POST", f"{V1}/hello/ports", json={"port": 8080, "name": "secret"})

    await until(lambda: len(hello.audit_lines()) == 3)
    created, watched, exposed = hello.audit_lines()
    assert created.pop("seconds") > 0
    created.pop("time")
    assert created == {
        "audit": "v1",
        "user": "jane",
        "verb": "create",
        "namespace": "default",
        "sandbox": "new",
        "method": "POST",
        "path": V1,
        "status": 201,
        "source": "127.0.0.1",
        "auditId": "at-the-api-server",
        "traceId": "a" * 32,
    }
    assert (watched["verb"], watched["namespace"]) == ("watch", "default")
    assert (exposed["verb"], exposed["subresource"], exposed["status"]) == ("create", "ports", 201)
    assert "secret" not in hello.log.getvalue()


async def test_one_user_who_asks_too_much_is_told_to_wait_and_the_others_are_not(built: Harness) -> None:
    await built.start(user_requests_per_second=0.01, user_burst=3)
    await built.raw_runtime()
    await built.api.put(sandbox("hello"))
    built.api.visitors.users["joes-token"] = {"username": "joe"}

    statuses = [(await built.v1("GET", f"{V1}/hello/proxy/api/ping")).status for _ in range(4)]
    refused = await built.v1("GET", V1)
    joes = await built.v1("GET", f"{V1}/hello/proxy/api/ping", token="joes-token")
    # The same person, by the other door
    at_door_one = await built.request("GET", proxy_path("hello", "/api/ping"))

    assert statuses == [200, 200, 200, 429]
    assert (refused.status, refused.json["reason"]) == (429, "TooManyRequests")
    assert 90 <= int(refused.headers["Retry-After"]) <= 100
    assert (joes.status, at_door_one.status) == (200, 429)
    assert 'rate_limited_total{by="user"} 3' in await built.metrics()


async def test_one_address_that_asks_too_much_is_told_to_wait(built: Harness) -> None:
    await built.start(source_requests_per_second=0.01, source_burst=2)
    await built.raw_runtime()
    await built.api.put(sandbox("hello"))
    path = f"{V1}/hello/proxy/api/ping"

    statuses = [(await built.v1("GET", path, token=None)).status for _ in range(3)]
    elsewhere = await built.request(
        "GET", proxy_path("hello", "/api/ping"), headers={"X-Forwarded-For": "192.0.2.7"}
    )

    assert statuses == [401, 401, 429]
    assert elsewhere.status == 200
    # What anybody may send as much as they like of leaves no line each.
    assert [line["status"] for line in built.audit_lines()] == [401, 401, 200]


async def test_discovery_is_not_held_up_by_anybodys_limit(built: Harness) -> None:
    await built.start(user_requests_per_second=0.01, user_burst=1)

    for _ in range(5):
        answer = await built.request("GET", "/apis/run.sandpod.dev/v1alpha1")
        assert answer.status == 200


async def test_one_namespace_cannot_take_all_the_requests_to_sandboxes(built: Harness) -> None:
    await built.start(max_requests_per_namespace=2)
    let_go = asyncio.Event()
    entered = 0

    async def hold(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal entered
        entered += 1
        await let_go.wait()
        return web.Response(text="ok")

    await built.runtime(hold)
    for name in ("one", "two", "three"):
        await built.api.put(sandbox(name))
    await built.api.put(sandbox("other", namespace="team-b"))
    held = [asyncio.create_task(built.v1("GET", f"{V1}/{name}/proxy/api/ping")) for name in ("one", "two")]
    await until(lambda: entered == 2)

    refused = await built.v1("GET", f"{V1}/three/proxy/api/ping")
    other = asyncio.create_task(built.v1("GET", "/v1/namespaces/team-b/sandboxes/other/proxy/api/ping"))
    let_go.set()

    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    assert "this namespace" in refused.json["message"]
    assert [(await task).status for task in held] == [200, 200]
    assert (await other).status != 429


async def test_previews_of_a_namespace_share_its_places_with_its_requests_to_the_api(built: Harness) -> None:
    await built.start(max_requests_per_namespace=1)
    let_go, entered = asyncio.Event(), asyncio.Event()

    async def hold(request: web.BaseRequest) -> web.StreamResponse:
        entered.set()
        await let_go.wait()
        return web.Response(text="ok")

    await built.runtime(hold)
    await built.program(hold)
    await built.expose("hello", {"port": 8080})
    held = asyncio.create_task(built.preview("GET", host=built.preview_host("hello")))
    await asyncio.wait_for(entered.wait(), 5)

    refused = await built.v1("GET", f"{V1}/hello/proxy/api/ping")
    preview = await built.preview("GET", host=built.preview_host("hello"))
    let_go.set()

    assert (refused.status, preview.status) == (429, 429)
    assert (await held).status == 200


async def test_a_websocket_goes_through_this_door_too(hello: Harness) -> None:
    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_bytes(message.data)
        return socket

    await hello.runtime(echo)
    headers = {"Authorization": f"Bearer {JANES}"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{hello.v1_url}{V1}/hello/proxy/ws/pty?sessionId=s", headers=headers) as socket,
    ):
        await socket.send_bytes(b"\x00\xff" * 1000)
        assert await socket.receive_bytes() == b"\x00\xff" * 1000
    assert hello.api.reviews[0]["resourceAttributes"]["subresource"] == "terminals"
