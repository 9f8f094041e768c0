"""Sandboxes themselves by door two: what goes on to the API server, with whose rights, and what does not."""

import asyncio
import io
import json
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import Harness, until
from tests.support.gateway_visitors import JANES

V1 = "/v1/namespaces/default/sandboxes"
OURS = "/apis/sandpod.dev/v1alpha1/namespaces/default/sandboxes"


async def agree(request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"kind": "Sandbox"})


@pytest.mark.parametrize(
    ("method", "path", "arrives"),
    [
        ("GET", "", ""),
        ("GET", "?labelSelector=a%3Db&limit=5", "?labelSelector=a%3Db&limit=5"),
        ("POST", "?dryRun=All&fieldValidation=Strict", "?dryRun=All&fieldValidation=Strict"),
        ("GET", "/hello", "/hello"),
        ("GET", "/a.b-c", "/a.b-c"),
        ("PUT", "/hello", "/hello"),
        ("PATCH", "/hello?fieldManager=me", "/hello?fieldManager=me"),
        ("DELETE", "/hello?propagationPolicy=Foreground", "/hello?propagationPolicy=Foreground"),
        ("GET", "/hello?path=/../secrets", "/hello?path=/../secrets"),
    ],
)
async def test_the_api_server_is_asked_with_the_callers_own_token(
    gateway: Harness, method: str, path: str, arrives: str
) -> None:
    gateway.api.visitors.answer = agree
    body = b'{"spec": {}}' if method in ("POST", "PUT", "PATCH") else b""

    answer = await gateway.v1(
        method,
        V1 + path,
        data=body or None,
        headers={
            "Content-Type": "application/merge-patch+json",
            "Accept": "application/json;as=Table",
            "Cookie": "a=b",
            "X-Remote-User": "admin",
            "X-Forwarded-For": "6.6.6.6",
            "X-Sandpod-Credential": "guessed",
        },
    )

    assert (answer.status, answer.json) == (200, {"kind": "Sandbox"})
    (visit,) = gateway.api.visitors.visits
    assert (visit.method, visit.path, visit.body) == (method, OURS + arrives, body)
    assert visit.headers["Authorization"] == f"Bearer {JANES}"
    assert visit.headers["Content-Type"] == "application/merge-patch+json"
    assert visit.headers["Accept"] == "application/json;as=Table"
    assert visit.headers["X-Forwarded-For"] == "127.0.0.1"
    assert not {"Cookie", "X-Remote-User", "X-Sandpod-Credential"} & set(visit.headers)
    # Who may is for the API server to say.
    assert gateway.api.reviews == []


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", ""), ("PUT", ""), ("PATCH", ""), ("POST", "/hello"), ("HEAD", ""), ("OPTIONS", "/hello")],
)
async def test_all_of_them_cannot_be_deleted_by_a_forgotten_name(
    gateway: Harness, method: str, path: str
) -> None:
    assert (await gateway.v1(method, V1 + path)).status == 405
    assert gateway.api.visitors.visits == []


@pytest.mark.parametrize("query", ["?a=\u00e9", "?a=b#c"])
async def test_a_query_that_two_could_read_differently_is_refused(gateway: Harness, query: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.gateway.http_port)
    head = f"GET {V1}{query} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer {JANES}\r\n\r\n"
    writer.write(head.encode())

    assert b" 400 " in await reader.readline()
    writer.close()
    assert gateway.api.visitors.visits == []


async def test_what_the_api_server_says_is_what_the_caller_hears(gateway: Harness) -> None:
    status = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "spec.sleepAfter: write 10m"}

    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        headers = {"Warning": '299 - "unknown field"', "Retry-After": "7", "Set-Cookie": "a=b", "X-Else": "1"}
        return web.json_response(status, status=422, headers=headers)

    gateway.api.visitors.answer = refuse

    answer = await gateway.v1("POST", V1, json={"metadata": {"name": "new"}})

    assert (answer.status, answer.json) == (422, status)
    assert (answer.headers["Warning"], answer.headers["Retry-After"]) == ('299 - "unknown field"', "7")
    assert not {"Set-Cookie", "X-Else"} & set(answer.headers)


async def test_a_redirect_is_not_followed(gateway: Harness) -> None:
    async def elsewhere(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=307, headers={"Location": "/api/v1/secrets"})

    gateway.api.visitors.answer = elsewhere

    answer = await gateway.v1("GET", V1)

    assert (answer.status, "Location" in answer.headers) == (307, False)
    assert len(gateway.api.visitors.visits) == 1


async def test_a_body_is_bounded(gateway: Harness) -> None:
    gateway.api.visitors.answer = agree

    async def pieces() -> Any:
        for _ in range(20):
            yield b" " * 65536

    told = await gateway.v1("POST", V1, data=io.BytesIO(b" " * (1024 * 1024 + 1)))
    in_chunks = await gateway.v1("POST", V1, data=pieces())
    fits = await gateway.v1("POST", V1, data=io.BytesIO(b" " * 1024 * 1024))

    assert [told.status, in_chunks.status, fits.status] == [413, 413, 200]
    assert told.json["reason"] == "RequestEntityTooLarge"
    assert [len(visit.body) for visit in gateway.api.visitors.visits] == [1024 * 1024]


async def test_a_watch_is_told_event_by_event_and_ends_with_its_client(gateway: Harness) -> None:
    events = asyncio.Queue[bytes]()
    ended = asyncio.Event()

    async def watch(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json;stream=watch"})
        await response.prepare(request)
        try:
            while True:
                await response.write(await events.get())
        finally:
            ended.set()

    gateway.api.visitors.answer = watch
    async with aiohttp.ClientSession() as session:
        answer = await session.get(
            f"{gateway.v1_url}{V1}?watch=true", headers={"Authorization": f"Bearer {JANES}"}
        )
        assert answer.headers["Content-Type"] == "application/json;stream=watch"
        for number in range(3):
            line = json.dumps({"type": "ADDED", "object": {"n": number}}).encode() + b"\n"
            events.put_nowait(line)
            assert await asyncio.wait_for(answer.content.readline(), 5) == line
        answer.close()
        await asyncio.wait_for(ended.wait(), 5)
    await until(lambda: [line["verb"] for line in gateway.audit_lines()] == ["watch"])


async def test_a_watch_that_breaks_off_does_not_look_like_one_that_has_ended(gateway: Harness) -> None:
    async def cut(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED"}\n')
        assert request.transport is not None
        request.transport.abort()
        return response

    gateway.api.visitors.answer = cut

    with pytest.raises(aiohttp.ClientError):
        await gateway.v1("GET", f"{V1}?watch=true")


async def test_one_user_has_so_many_watches_and_the_others_have_theirs(gateway: Harness) -> None:
    let_go = asyncio.Event()
    open_now = 0

    async def hold(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal open_now
        open_now += 1
        await let_go.wait()
        return web.json_response({})

    gateway.api.visitors.answer = hold
    gateway.api.visitors.users["joes-token"] = {"username": "joe"}
    watches = [asyncio.create_task(gateway.v1("GET", f"{V1}?watch=1")) for _ in range(32)]
    await until(lambda: open_now == 32)

    refused = await gateway.v1("GET", V1)
    joes = asyncio.create_task(gateway.v1("GET", V1, token="joes-token"))
    await until(lambda: open_now == 33)
    let_go.set()

    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    assert (await joes).status == 200
    assert {(await watch).status for watch in watches} == {200}


async def test_an_api_server_that_hangs_up_on_a_change_leaves_it_open_whether_it_was_made(
    gateway: Harness,
) -> None:
    async def hang_up(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    gateway.api.visitors.answer = hang_up

    changed = await gateway.v1("POST", V1, json={})
    read = await gateway.v1("GET", V1)

    assert (changed.status, "may have been done" in changed.json["message"]) == (502, True)
    assert (read.status, read.headers["Retry-After"]) == (503, "1")


async def shows(request: web.BaseRequest) -> web.StreamResponse:
    if request.path == f"{OURS}/hello":
        return web.json_response(sandbox("hello"))
    return web.Response(text="a line\n")


async def test_the_log_is_that_of_the_pod_read_with_the_callers_rights(gateway: Harness) -> None:
    gateway.api.visitors.answer = shows

    answer = await gateway.v1("GET", f"{V1}/hello/log?tailLines=5")
    await gateway.v1("GET", f"{V1}/hello/log?container=sidecar")

    assert (answer.status, answer.body) == (200, b"a line\n")
    paths = [visit.path for visit in gateway.api.visitors.visits]
    pod = "/api/v1/namespaces/default/pods/hello/log"
    assert paths == [
        f"{OURS}/hello",
        f"{pod}?tailLines=5&container=sandbox",
        f"{OURS}/hello",
        f"{pod}?container=sidecar",
    ]
    assert {visit.headers["Authorization"] for visit in gateway.api.visitors.visits} == {f"Bearer {JANES}"}


@pytest.mark.parametrize("pod", ["", "..", ".", "a/../../secrets/key", "x?y"])
async def test_a_status_that_somebody_has_written_leads_to_no_other_path(gateway: Harness, pod: str) -> None:
    async def lies(request: web.BaseRequest) -> web.StreamResponse:
        item = sandbox("hello")
        item["status"]["podName"] = pod
        return web.json_response(item)

    gateway.api.visitors.answer = lies

    assert (await gateway.v1("GET", f"{V1}/hello/log")).status == 404
    assert len(gateway.api.visitors.visits) == 1


async def test_whoever_may_not_see_the_sandbox_hears_it_from_the_api_server(gateway: Harness) -> None:
    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "code": 403, "message": "no"}, status=403)

    gateway.api.visitors.answer = refuse

    answer = await gateway.v1("GET", f"{V1}/hello/log")

    assert (answer.status, answer.json["message"]) == (403, "no")
    assert len(gateway.api.visitors.visits) == 1
