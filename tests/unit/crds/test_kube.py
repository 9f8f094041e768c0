"""The client against an HTTP server that answers as the API server can: busy, cut off, out of date, or not at
all."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration
from sandpod_crds import errors, kube
from sandpod_crds.kube import Kube

Json = dict[str, Any]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers each request with the next of `answers`, the last one for ever; remembers what was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, str, Json]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        self.asked.append((request.method, str(request.rel_url), json.loads(body) if body else {}))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return await answer(request)


def says(body: Json, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status, headers=headers)

    return answer


def refuses(status: int, reason: str, headers: dict[str, str] | None = None) -> Answer:
    return says({"kind": "Status", "reason": reason, "message": "no"}, status=status, headers=headers)


def streams(*chunks: bytes, then: Callable[[web.Request], Awaitable[None]] | None = None) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then is not None:
            await then(request)
        return response

    return answer


async def hang_up(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


def line(kind: str, **body: Any) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, Kube]]:
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    client = Kube(Configuration(host=f"http://127.0.0.1:{port}"))
    yield server, client
    await client.close()
    await runner.cleanup()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube, "FIRST_DELAY", 0.001)


async def test_writes_say_who_writes_and_how(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [says({"kind": "Pod"})]
    await client.create("/pods", {"a": 1})
    await client.apply("/pods/x", {"a": 1})
    await client.patch("/pods/x", {"a": None}, query={"dryRun": "All"})
    await client.replace("/pods/x", {"a": 2})
    assert [(method, url) for method, url, _ in api.asked] == [
        ("POST", "/pods?fieldManager=sandpod"),
        ("PATCH", "/pods/x?force=true&fieldManager=sandpod"),
        ("PATCH", "/pods/x?fieldManager=sandpod&dryRun=All"),
        ("PUT", "/pods/x?fieldManager=sandpod"),
    ]


async def test_a_delete_names_the_very_object(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [says({"status": "Success"})]
    await client.delete("/pods/x", uid="u-1", version="7", grace_seconds=0)
    assert api.asked[0][2] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u-1", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
    }


async def test_a_list_is_put_together_from_its_pages(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [
        says({"metadata": {"resourceVersion": "7", "continue": "next"}, "items": [{"n": 1}, {"n": 2}]}),
        says({"metadata": {"resourceVersion": "7"}, "items": [{"n": 3}]}),
    ]
    found = await client.list("/pods", query={"labelSelector": "a=b,c"})
    assert found == {"metadata": {"resourceVersion": "7"}, "items": [{"n": 1}, {"n": 2}, {"n": 3}]}
    assert api.asked[1][1] == "/pods?limit=500&labelSelector=a%3Db%2Cc&continue=next"


async def test_a_list_whose_snapshot_is_gone_is_fetched_in_one_piece(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [
        says({"metadata": {"continue": "next"}, "items": [{"n": 1}]}),
        refuses(410, "Expired"),
        says({"metadata": {"resourceVersion": "9"}, "items": [{"n": 1}, {"n": 2}]}),
    ]
    assert len((await client.list("/pods"))["items"]) == 2
    assert api.asked[2][1] == "/pods"


async def test_a_read_is_tried_again_while_the_server_is_busy(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [
        refuses(429, "TooManyRequests", {"Retry-After": "0"}),
        refuses(503, "ServiceUnavailable"),
        says({"ok": 1}),
    ]
    assert await client.get("/pods/x") == {"ok": 1}
    assert len(api.asked) == 3


async def test_a_read_gives_up_in_the_end(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [refuses(500, "InternalError")]
    with pytest.raises(errors.Unavailable, match="500 InternalError"):
        await client.get("/pods/x")
    assert len(api.asked) == kube.READ_ATTEMPTS


@pytest.mark.parametrize("status", [404, 403, 409, 422])
async def test_a_refusal_is_not_tried_again(server: tuple[Server, Kube], status: int) -> None:
    api, client = server
    api.answers = [refuses(status, "Because")]
    with pytest.raises(errors.ApiError) as caught:
        await client.get("/pods/x")
    assert caught.value.status == status
    assert len(api.asked) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_write_is_never_repeated_for_its_caller(server: tuple[Server, Kube], status: int) -> None:
    api, client = server
    api.answers = [refuses(status, "Busy", {"Retry-After": "4"})]
    with pytest.raises((errors.Throttled, errors.Unavailable)) as caught:
        await client.create("/pods", {})
    assert caught.value.retry_after == 4
    assert len(api.asked) == 1


async def test_an_answer_cut_off_is_an_error_and_not_half_an_object(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [streams(b'{"items": [', then=hang_up)]
    with pytest.raises(errors.Unavailable):
        await client.request("GET", "/pods")


async def test_a_server_that_does_not_answer_is_unavailable_in_time(server: tuple[Server, Kube]) -> None:
    api, client = server

    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    api.answers = [never]
    with pytest.raises(errors.Unavailable, match="Timeout"):
        await client.request("GET", "/pods", timeout=0.05)


async def test_no_server_at_all_is_unavailable() -> None:
    client = Kube(Configuration(host="http://127.0.0.1:1"))
    with pytest.raises(errors.Unavailable, match="ConnectionFailed"):
        await client.request("GET", "/pods")
    await client.close()


async def test_a_watch_brings_the_events_until_the_server_ends_it(server: tuple[Server, Kube]) -> None:
    api, client = server
    added, bookmark = line("ADDED", n=1), line("BOOKMARK", n=2)
    api.answers = [streams(added[:10], added[10:] + bookmark[:5], bookmark[5:])]
    found = [event async for event in client.watch("/pods", query={"resourceVersion": "7"}, timeout=9)]
    assert [event["type"] for event in found] == ["ADDED", "BOOKMARK"]
    assert api.asked[0][1] == "/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=9&resourceVersion=7"


async def test_an_error_in_a_watch_is_raised_as_what_it_is(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [streams(line("ADDED"), line("ERROR", code=410, reason="Expired", message="too old"))]
    events = client.watch("/pods")
    assert (await anext(events))["type"] == "ADDED"
    with pytest.raises(errors.Gone, match="too old"):
        await anext(events)


async def test_a_watch_that_is_refused_raises_the_refusal(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [refuses(403, "Forbidden")]
    with pytest.raises(errors.Forbidden):
        await anext(client.watch("/pods"))


async def test_a_watch_whose_connection_breaks_raises(server: tuple[Server, Kube]) -> None:
    api, client = server
    api.answers = [streams(line("ADDED"), then=hang_up)]
    events = client.watch("/pods")
    assert (await anext(events))["type"] == "ADDED"
    with pytest.raises(errors.Unavailable):
        await anext(events)


async def test_a_line_that_never_ends_does_not_fill_the_memory(
    server: tuple[Server, Kube], monkeypatch: pytest.MonkeyPatch
) -> None:
    api, _ = server
    monkeypatch.setattr(kube, "MAX_EVENT", 64 * 1024)
    client = Kube(Configuration(host=server[1].host))
    api.answers = [streams(*[b"x" * 65536] * 64)]
    with pytest.raises(errors.Unavailable):
        await anext(client.watch("/pods"))
    await client.close()


async def test_leaving_a_watch_early_hangs_up_at_once(server: tuple[Server, Kube]) -> None:
    api, client = server
    gone = asyncio.Event()

    async def until_gone(request: web.Request) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    api.answers = [streams(line("ADDED"), then=until_gone)]
    async with contextlib.aclosing(client.watch("/pods")) as events:
        async for _ in events:
            break
    await asyncio.wait_for(gone.wait(), 5)


async def test_the_token_is_asked_for_with_every_request_so_that_a_renewed_one_is_used(
    server: tuple[Server, Kube],
) -> None:
    api, client = server
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request.headers.get("Authorization"))
        return web.json_response({})

    api.answers = [answer]
    tokens = iter(["Bearer one", "Bearer two"])
    configuration: Any = Configuration(host=client.host)

    def renew(target: Configuration) -> None:
        target.api_key["BearerToken"] = next(tokens)

    configuration.refresh_api_key_hook = renew
    renewing = Kube(configuration)
    await renewing.get("/pods")
    await renewing.get("/pods")
    await renewing.close()
    assert seen == ["Bearer one", "Bearer two"]
