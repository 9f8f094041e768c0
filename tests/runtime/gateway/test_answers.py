"""What becomes of a runtime's answer: passed unchanged when it is one, and told apart when it is not."""

import asyncio
import socket

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import Harness, proxy_path, until

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_a_runtime_that_breaks_off_before_it_answers_is_502(hello: Harness) -> None:
    await hello.raw_runtime(answer=b"", hang_up=True)

    answer = await hello.request("POST", proxy_path("hello"), data=b"x")

    assert (answer.status, answer.json["reason"]) == (502, "BadGateway")
    assert "Retry-After" not in answer.headers


async def test_what_is_safe_to_repeat_may_be_repeated_when_the_runtime_breaks_off(hello: Harness) -> None:
    await hello.raw_runtime(answer=b"", hang_up=True)

    answer = await hello.request("GET", proxy_path("hello", "/api/ping"))

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


@pytest.mark.parametrize(
    "half",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        CHUNKED + b"4\r\nhalf\r\n",
    ],
)
async def test_a_runtime_that_breaks_off_in_its_answer_breaks_the_clients_connection(
    hello: Harness, half: bytes
) -> None:
    await hello.raw_runtime(answer=half, hang_up=True)

    with pytest.raises(aiohttp.ClientPayloadError):
        async with asyncio.timeout(5):
            await hello.request("POST", proxy_path("hello"))
    await until(lambda: len(hello.audit_lines()) == 1)
    assert hello.audit_lines()[0]["reason"] == "the runtime broke off"


async def test_a_runtime_that_sends_nonsense_in_its_answer_breaks_the_clients_connection(
    hello: Harness,
) -> None:
    runtime = await hello.raw_runtime(answer=CHUNKED + b"4\r\nhalf\r\n")

    async with asyncio.timeout(5), hello.stream("POST", proxy_path("hello")) as response:
        assert await response.content.readexactly(4) == b"half"
        runtime.say(b"no chunk at all\r\n")
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX-A: b\rSet-Cookie: c=d\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX A: b\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Many: 1\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 20000 + b"\r\n\r\n",
    ],
)
async def test_an_answer_that_is_no_http_is_502_and_none_of_it_gets_through(
    hello: Harness, answer: bytes
) -> None:
    await hello.raw_runtime(answer=answer, hang_up=True)

    got = await hello.request("POST", proxy_path("hello"))

    assert (got.status, got.json["kind"]) == (502, "Status")
    assert "Set-Cookie" not in got.headers


async def test_a_length_beside_chunks_is_not_passed_on(hello: Harness) -> None:
    both = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
    await hello.raw_runtime(answer=both + b"\r\n2\r\nok\r\n0\r\n\r\n")

    answer = await hello.request("POST", proxy_path("hello"))

    assert answer.status in (200, 502)
    if answer.status == 200:
        assert (answer.body, answer.headers.get("Content-Length")) == (b"ok", None)


async def test_an_answer_without_a_length_ends_with_the_runtimes_connection(hello: Harness) -> None:
    await hello.raw_runtime(answer=b"HTTP/1.1 200 OK\r\n\r\nall of it", hang_up=True)

    assert (await hello.request("POST", proxy_path("hello"))).body == b"all of it"


async def test_interim_answers_stay_between_gateway_and_runtime(hello: Harness) -> None:
    await hello.raw_runtime(
        answer=b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    )

    answer = await hello.request("POST", proxy_path("hello"))

    assert (answer.status, answer.body) == (200, b"ok")


@pytest.mark.parametrize(
    ("method", "answer", "length"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", "1234"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", None),
        ("GET", b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n', None),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "0"),
    ],
)
async def test_answers_without_a_body_are_framed_as_such(
    hello: Harness, method: str, answer: bytes, length: str | None
) -> None:
    runtime = await hello.raw_runtime(answer=answer)

    for _ in range(2):
        got = await hello.request(method, proxy_path("hello"))
        assert (got.body, got.headers.get("Content-Length")) == (b"", length)
        assert "Transfer-Encoding" not in got.headers
    # The second one came over the same connections, so that both ends agreed on where the first had ended.
    assert runtime.connections == 1


async def test_the_runtimes_own_errors_pass_unchanged(hello: Harness) -> None:
    body = b'{"code":"COMMAND_NOT_FOUND","message":"no"}'
    await hello.raw_runtime(
        answer=b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nX-Trace-Id: tr_1\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )

    answer = await hello.request("POST", proxy_path("hello"))

    assert (answer.status, answer.body, answer.headers["X-Trace-Id"]) == (404, body, "tr_1")
    # And nothing was added to them.
    assert set(answer.headers) == {"Content-Type", "X-Trace-Id", "Content-Length"}


async def test_a_pod_that_was_replaced_is_503_because_nothing_was_done(hello: Harness) -> None:
    body = b'{"code":"UNAUTHENTICATED","message":"credential"}'
    await hello.raw_runtime(
        answer=b"HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )

    answer = await hello.request("POST", proxy_path("hello"))

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")


@pytest.mark.parametrize(
    "body", [b'{"code":"GIT_AUTH_FAILED"}', b"no json", b'["UNAUTHENTICATED"]', b"", b"[" * 16_000]
)
async def test_another_401_of_the_runtime_passes(hello: Harness, body: bytes) -> None:
    await hello.raw_runtime(
        answer=b"HTTP/1.1 401 Unauthorized\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )

    answer = await hello.request("POST", proxy_path("hello"))

    assert (answer.status, answer.body) == (401, body)


async def test_a_pod_that_accepts_no_connection_is_503(hello: Harness) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        hello.targets["10.0.0.1"] = unused.getsockname()[1]

    answer = await hello.request("POST", proxy_path("hello"))

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert "does not accept connections" in answer.json["message"]


async def test_connections_to_runtimes_are_used_again_but_not_after_a_hang_up(hello: Harness) -> None:
    runtime = await hello.raw_runtime()
    for _ in range(3):
        await hello.request("POST", proxy_path("hello"), data=b"x")
    assert runtime.connections == 1

    runtime.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nha"
    request = asyncio.create_task(hello.request("POST", proxy_path("hello")))
    await until(lambda: runtime.received.count(b"POST") == 4)
    request.cancel()
    await asyncio.wait_for(runtime.all_closed(), 5)

    runtime.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    assert (await hello.request("POST", proxy_path("hello"))).body == b"ok"
    assert runtime.connections == 2


async def test_bytes_that_nobody_asked_for_are_no_answer_to_the_next_request(hello: Harness) -> None:
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    runtime = await hello.raw_runtime(answer=whole + b"ok" + whole + b"no")

    assert (await hello.request("POST", proxy_path("hello"))).body == b"ok"
    runtime.answer = whole + b"ok"

    assert (await hello.request("POST", proxy_path("hello"))).body == b"ok"


async def test_requests_under_way_to_one_sandbox_are_bounded(built: Harness) -> None:
    await built.start(max_requests_per_sandbox=2)
    await built.api.put(sandbox("busy"))
    await built.api.put(sandbox("calm", pod_ip="10.0.0.2"))
    entered = asyncio.Semaphore(0)
    go_on = asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        entered.release()
        await go_on.wait()
        return web.Response(text="done")

    await built.runtime(slow)
    await built.raw_runtime(ip="10.0.0.2")
    running = [asyncio.create_task(built.request("POST", proxy_path("busy"))) for _ in range(2)]
    for _ in running:
        await entered.acquire()

    refused = await built.request("POST", proxy_path("busy"))
    assert (refused.status, refused.json["reason"]) == (429, "TooManyRequests")
    assert (await built.request("POST", proxy_path("calm"))).status == 200
    go_on.set()
    assert [answer.status for answer in await asyncio.gather(*running)] == [200, 200]
    assert (await built.request("POST", proxy_path("busy"))).status == 200


async def test_an_old_client_gets_an_answer_that_ends_with_the_connection(hello: Harness) -> None:
    await hello.raw_runtime(
        answer=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    )

    answer = await hello.raw(f"GET {proxy_path('hello')} HTTP/1.0\r\nX-Remote-User: jane\r\n\r\n".encode())

    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"ok"
    assert b"Connection: close" in head
    assert b"Transfer-Encoding" not in head


async def test_content_encodings_are_not_touched(hello: Harness) -> None:
    squeezed = b"\x1f\x8b not really gzip"
    runtime = await hello.raw_runtime(
        answer=b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
        % (len(squeezed), squeezed)
    )

    answer = await hello.request(
        "POST", proxy_path("hello"), data=squeezed, headers={"Content-Encoding": "gzip"}
    )

    assert answer.body == squeezed
    assert bytes(runtime.received).endswith(squeezed)
