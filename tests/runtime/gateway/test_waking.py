"""Requests to sandboxes that sleep or are about to: who is woken, who waits, who is told what."""

import asyncio
import json
from functools import partial
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import PREFIX, Harness, proxy_path, until
from tests.support.gateway_raw_runtime import RawRuntime, lease_answer

Json = dict[str, Any]

PORT: Json = {"port": 8080}
WAKE = f"{PREFIX}/namespaces/default/sandboxes/hello/wake"
REFUSED = b'{"code":"CONTAINER_UNAVAILABLE","message":"the runtime is stopping; nothing was done"}'


def refusal(body: bytes = REFUSED, *, status: str = "503 Service Unavailable") -> bytes:
    return lease_answer(status, body)


def asleep(*, paused: bool = False) -> dict[str, object]:
    return sandbox("hello", phase="Asleep", ready=False, pod_ip="", reason="Idle", paused=paused)


async def wakes_into(
    built: Harness, *, ip: str = "10.0.0.2", pod_uid: str = "pod-uid-2", ports: tuple[Json, ...] = ()
) -> None:
    """What the operator does when the annotation is written."""
    await until(lambda: bool(built.api.wakes))
    value = built.api.wakes[-1]
    awake = partial(sandbox, "hello", wake=value, wake_observed=value, ports=ports)
    await built.api.put(awake(phase="Starting", ready=False, pod_ip=""))
    await built.api.put(awake(pod_ip=ip, pod_uid=pod_uid))


@pytest.fixture
async def patient(built: Harness) -> Harness:
    """A gateway that waits, and a runtime that is there when the sandbox wakes."""
    await built.start(wake_wait_seconds=20)
    return built


async def test_a_request_wakes_a_sandbox_waits_for_it_and_is_answered(patient: Harness) -> None:
    runtime = await patient.raw_runtime(ip="10.0.0.2")
    await patient.api.put(asleep())

    request = asyncio.create_task(patient.request("POST", proxy_path("hello"), data=b"once"))
    await wakes_into(patient)

    answer = await request
    assert (answer.status, answer.body) == (200, b"ok")
    assert bytes(runtime.received).endswith(b"once")
    (line,) = patient.audit_lines()
    assert line["waitedSeconds"] > 0
    assert "resent" not in line
    metrics = await patient.metrics()
    assert "sandpod_gateway_wakes_requested_total 1" in metrics
    assert "sandpod_gateway_wake_wait_seconds_count 1" in metrics
    assert "sandpod_gateway_waiting_requests 0" in metrics


async def test_many_requests_ask_for_one_wake(patient: Harness) -> None:
    await patient.raw_runtime(ip="10.0.0.2")
    await patient.api.put(asleep())

    requests = [asyncio.create_task(patient.request("POST", proxy_path("hello"))) for _ in range(50)]
    await until(lambda: len(patient.api.reviews) > 0)
    await wakes_into(patient)

    assert {answer.status for answer in await asyncio.gather(*requests)} == {200}
    assert len(patient.api.wakes) == 1


async def test_whoever_may_not_use_a_sandbox_wakes_none(patient: Harness) -> None:
    patient.api.allow = lambda spec: False
    await patient.api.put(asleep())

    statuses = [
        (await patient.request("POST", proxy_path("hello"))).status,
        (await patient.request("GET", proxy_path("hello", "/api/ping"))).status,
        (await patient.request("POST", WAKE)).status,
    ]
    stranger = patient.stranger_context()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=stranger)) as session:
        statuses.append((await patient.request("POST", proxy_path("hello"), session=session)).status)

    assert statuses == [403, 403, 403, 401]
    assert patient.api.wakes == []


async def test_a_paused_sandbox_is_not_woken_and_the_answer_says_how_to_resume_it(patient: Harness) -> None:
    await patient.api.put(asleep(paused=True))

    answer = await patient.request("POST", proxy_path("hello"))

    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert "is paused" in answer.json["message"]
    assert '{"spec":{"paused":false}}' in answer.json["message"]
    assert patient.api.wakes == []
    assert 'wait_refusals_total{cause="paused"} 1' in await patient.metrics()


async def test_a_start_that_fails_ends_the_wait_with_the_reason(patient: Harness) -> None:
    await patient.api.put(asleep())
    request = asyncio.create_task(patient.request("POST", proxy_path("hello")))
    await until(lambda: bool(patient.api.wakes))

    await patient.api.put(
        sandbox("hello", phase="Failed", ready=False, pod_ip="", reason="ImagePullFailed", message="no image")
    )

    answer = await request
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert "ImagePullFailed: no image" in answer.json["message"]


async def test_a_sandbox_that_is_deleted_while_it_wakes_is_404(patient: Harness) -> None:
    await patient.api.put(asleep())
    request = asyncio.create_task(patient.request("POST", proxy_path("hello")))
    await until(lambda: bool(patient.api.wakes))

    await patient.api.delete("hello")

    assert (await request).status == 404


async def test_the_wait_has_an_end(built: Harness) -> None:
    await built.start(wake_wait_seconds=0.1)
    await built.api.put(asleep())

    answer = await built.request("POST", proxy_path("hello"))

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert "did not in time" in answer.json["message"]
    assert 'wait_refusals_total{cause="timeout"} 1' in await built.metrics()


async def test_beyond_the_bounds_nobody_waits(built: Harness) -> None:
    await built.start(wake_wait_seconds=20, max_waiting_per_sandbox=2, max_waiting=3)
    await built.raw_runtime(ip="10.0.0.2")
    await built.api.put(asleep())
    for name in ("other", "third"):
        await built.api.put(sandbox(name, phase="Asleep", ready=False, pod_ip=""))
    waiting = [asyncio.create_task(built.request("POST", proxy_path("hello"))) for _ in range(2)]
    other = asyncio.create_task(built.request("POST", proxy_path("other")))
    resolver = vars(built.gateway)["_resolver"]
    await until(lambda: resolver.waiting == 3)

    for name in ("hello", "third"):
        answer = await built.request("POST", proxy_path(name))
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    metrics = await built.metrics()
    assert 'wait_refusals_total{cause="sandbox_full"} 1' in metrics
    assert 'wait_refusals_total{cause="gateway_full"} 1' in metrics

    other.cancel()
    await wakes_into(built)
    assert [answer.status for answer in await asyncio.gather(*waiting)] == [200, 200]


async def test_a_wake_that_cannot_be_written_is_tried_again(patient: Harness) -> None:
    await patient.raw_runtime(ip="10.0.0.2")
    await patient.api.put(asleep())
    patient.api.patches_refused = 2

    request = asyncio.create_task(patient.request("POST", proxy_path("hello")))
    await wakes_into(patient)

    assert (await request).status == 200
    assert "sandpod_gateway_wakes_failed_total 2" in await patient.metrics()


async def leaving(built: Harness, **values: object) -> tuple[RawRuntime, RawRuntime]:
    """A runtime that is going to sleep and is still called ready, and the one after it."""
    old = await built.raw_runtime(ip="10.0.0.1", **values)
    new = await built.raw_runtime(ip="10.0.0.2")
    await built.api.put(sandbox("hello"))
    return old, new


@pytest.mark.parametrize(
    "lease",
    [
        pytest.param(refusal(), id="it is refused"),
        pytest.param(lease_answer(body=b'{"phase":"draining"}'), id="it is granted too late"),
        pytest.param(b"", id="the connection breaks"),
        pytest.param(
            refusal(b'{"code":"UNAUTHENTICATED"}', status="401 x"), id="another pod has the address"
        ),
    ],
)
async def test_without_a_lease_nothing_of_a_request_is_sent(patient: Harness, lease: bytes) -> None:
    old, new = await leaving(patient, lease=lease)

    request = asyncio.create_task(patient.request("POST", proxy_path("hello"), data=b"x" * (1 << 20)))
    await wakes_into(patient)

    assert (await request).status == 200
    assert old.received == b""
    assert bytes(new.received).count(b"POST ") == 1
    assert bytes(new.received).endswith(b"x" * (1 << 20))
    assert patient.audit_lines()[0]["resent"] == 1


@pytest.mark.parametrize("size", [0, 5, 60_000])
async def test_a_small_request_that_is_refused_goes_to_the_next_pod(patient: Harness, size: int) -> None:
    """The end was decreed after the lease: by a pause, or a node that is emptied."""
    _, new = await leaving(patient, answer=refusal())

    async def body() -> object:
        yield b"x" * size

    request = asyncio.create_task(patient.request("POST", proxy_path("hello"), data=body()))
    await wakes_into(patient)

    assert (await request).status == 200
    assert bytes(new.received).count(b"POST ") == 1
    assert "sandpod_gateway_resent_total 1" in await patient.metrics()


async def test_a_body_that_was_sent_in_pieces_arrives_whole_at_the_next_pod(patient: Harness) -> None:
    await patient.api.put(sandbox("hello"))
    entered = asyncio.Event()

    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        await request.content.readexactly(4)
        entered.set()
        return web.json_response(json.loads(REFUSED), status=503)

    async def read(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=await request.read())

    async def body() -> object:
        yield b"one "
        await entered.wait()
        yield b"two"

    await patient.runtime(refuse, ip="10.0.0.1")
    await patient.runtime(read, ip="10.0.0.2")

    request = asyncio.create_task(patient.request("POST", proxy_path("hello"), data=body()))
    await wakes_into(patient)

    assert (await request).body == b"one two"


async def test_a_big_body_that_is_refused_is_not_kept_and_the_client_is_told(patient: Harness) -> None:
    await patient.api.put(sandbox("hello"))

    async def refuse(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        return web.json_response(json.loads(REFUSED), status=503)

    await patient.runtime(refuse)

    answer = await patient.request("POST", proxy_path("hello"), data=b"x" * 100_000)

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert "nothing was done" in answer.json["message"]


async def test_what_may_have_been_done_is_never_sent_again(patient: Harness) -> None:
    old, new = await leaving(patient, answer=b"", hang_up=True)

    answer = await patient.request("POST", proxy_path("hello"), data=b"x")

    assert (answer.status, answer.json["reason"]) == (502, "BadGateway")
    assert old.received.count(b"POST ") == 1
    assert (new.connections, patient.api.wakes) == (0, [])


async def test_what_changes_nothing_is_sent_again_and_needs_no_lease(patient: Harness) -> None:
    old, new = await leaving(patient, answer=b"", hang_up=True)

    request = asyncio.create_task(patient.request("GET", proxy_path("hello", "/api/ping")))
    await wakes_into(patient)

    assert (await request).status == 200
    assert (old.leases, new.leases) == (0, 0)


async def test_a_pod_that_only_broke_a_connection_is_asked_again(patient: Harness) -> None:
    runtime = await patient.raw_runtime(lease=b"")
    await patient.api.put(sandbox("hello"))

    request = asyncio.create_task(patient.request("POST", proxy_path("hello")))
    await until(lambda: bool(patient.api.wakes))
    runtime.lease = lease_answer()

    assert (await request).status == 200
    assert runtime.received.count(b"POST ") == 1


async def test_a_busy_sandbox_is_not_asked_for_a_lease_by_each_request(hello: Harness) -> None:
    runtime = await hello.raw_runtime()

    for _ in range(30):
        assert (await hello.request("POST", proxy_path("hello"))).status == 200

    assert runtime.leases < 10


async def test_a_socket_waits_for_the_wake_as_well(patient: Harness) -> None:
    async def greet(request: web.BaseRequest) -> web.StreamResponse:
        terminal = web.WebSocketResponse()
        await terminal.prepare(request)
        await terminal.send_str("ready")
        await terminal.close()
        return terminal

    await leaving(patient, lease=refusal())
    await patient.runtime(greet, ip="10.0.0.2")

    async def attach() -> str:
        async with patient.websocket(proxy_path("hello", "/ws/pty")) as terminal:
            return await terminal.receive_str()

    attached = asyncio.create_task(attach())
    await wakes_into(patient)

    assert await attached == "ready"


async def test_a_preview_that_sleeps_is_woken_by_a_socket_which_is_then_served(patient: Harness) -> None:
    async def greet(request: web.BaseRequest) -> web.StreamResponse:
        page = web.WebSocketResponse()
        await page.prepare(request)
        await page.send_str(await page.receive_str())
        await page.close()
        return page

    await patient.raw_runtime(ip="10.0.0.2")
    await patient.program(greet, ip="10.0.0.2")
    await patient.expose("hello", PORT, phase="Asleep", ready=False, pod_ip="")
    headers = {"Host": patient.preview_host("hello")}

    async def attach() -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{patient.v1_url}/ws", headers=headers) as page,
        ):
            await page.send_str("hello")
            return await page.receive_str()

    attached = asyncio.create_task(attach())
    await wakes_into(patient, ports=(PORT,))

    assert await attached == "hello"
    assert len(patient.api.wakes) == 1


async def test_what_a_preview_sends_on_to_another_pod_is_counted(patient: Harness) -> None:
    await patient.raw_runtime(ip="10.0.0.1", lease=refusal())
    await patient.raw_runtime(ip="10.0.0.2")
    program = await patient.raw_program(ip="10.0.0.2")
    await patient.expose("hello", PORT)

    request = asyncio.create_task(patient.preview("GET", host=patient.preview_host("hello")))
    await wakes_into(patient, ports=(PORT,))

    assert (await request).status == 200
    assert program.connections == 1
    assert "sandpod_gateway_resent_total 1" in await patient.metrics()


async def test_a_wake_can_be_asked_for_by_itself(patient: Harness) -> None:
    runtime = await patient.raw_runtime(ip="10.0.0.2")
    await patient.api.put(asleep())

    request = asyncio.create_task(patient.request("POST", WAKE))
    await wakes_into(patient)

    answer = await request
    assert (answer.status, answer.json["status"]) == (200, "Success")
    assert (runtime.leases, runtime.received) == (1, b"")
    assert (patient.audit_lines()[0]["verb"], patient.audit_lines()[0]["subresource"]) == ("create", "wake")
    assert (await patient.request("GET", WAKE)).status == 405
