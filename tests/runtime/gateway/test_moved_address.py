"""Addresses of pods are used again, and the watch that tells of a pod's end may lag: what listens at a pod's
address is asked who it is before anything is entrusted to it.
"""

import asyncio
import json
from functools import partial

import pytest
from sandpod_crds import keys

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import KEY, Harness, proxy_path, until
from tests.support.gateway_raw_runtime import RawRuntime, lease_answer

SECRET = "for the sandbox hello only"
LEASE_SECONDS = 0.2
CREDENTIAL = keys.credential(key=KEY, namespace="default", pod_uid="pod-uid-1")


async def stranger_at(gateway: Harness, *, ip: str, pod_uid: str | None = "another") -> RawRuntime:
    """The runtime of another pod, or something that knows nothing of ours and says yes to everything."""
    proof = None if pod_uid is None else partial(gateway.proof, pod_uid=pod_uid)
    return await gateway.raw_runtime(ip=ip, proof=proof)


def assert_learned_nothing(stranger: RawRuntime) -> None:
    assert stranger.leases == 0
    assert CREDENTIAL.encode() not in stranger.received
    assert SECRET.encode() not in stranger.received


@pytest.mark.parametrize("pod_uid", ["another", None])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_address_that_moved_to_another_pod_is_never_served(
    hello: Harness, method: str, pod_uid: str | None
) -> None:
    mine = await hello.raw_runtime()
    path = proxy_path("hello", "/api/session/list")
    assert (await hello.request(method, path, data=SECRET)).status == 200
    # The pod ends, and its address is given to another one at once.
    await mine.close()
    await until(lambda: mine.open == 0)
    theirs = await stranger_at(hello, ip="10.0.0.1", pod_uid=pod_uid)

    answer = await hello.request(method, path, data=SECRET)

    assert answer.status == 503
    assert theirs.connections > 0
    assert_learned_nothing(theirs)


async def test_a_request_that_met_another_pod_goes_to_the_sandboxs_next_one(built: Harness) -> None:
    await built.start(wake_wait_seconds=5)
    await built.api.put(sandbox("hello"))
    theirs = await stranger_at(built, ip="10.0.0.1")
    waiting = asyncio.create_task(built.request("POST", proxy_path("hello"), data=SECRET))
    await until(lambda: theirs.connections > 0)

    mine = await built.raw_runtime(ip="10.0.0.2")
    await built.api.put(sandbox("hello", pod_ip="10.0.0.2", pod_uid="pod-uid-2"))

    assert (await waiting).status == 200
    assert SECRET.encode() in mine.received
    assert_learned_nothing(theirs)


async def test_a_websocket_opens_to_the_right_pod_only(hello: Harness) -> None:
    theirs = await stranger_at(hello, ip="10.0.0.1")
    with pytest.raises(Exception, match="503"):
        await hello.websocket(proxy_path("hello", "/ws/pty"))
    assert_learned_nothing(theirs)


@pytest.mark.parametrize("pod_uid", ["another", None])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_program_of_another_pod_gets_nothing_of_a_preview_once_half_a_lease_is_over(
    built: Harness, method: str, pod_uid: str | None
) -> None:
    """A program cannot prove whose it is: for so long the runtime's word counts for it, and no longer."""
    await built.start(lease_seconds=LEASE_SECONDS)
    runtime, program = await built.raw_runtime(), await built.raw_program()
    await built.expose("hello", {"port": 8080})
    host = built.preview_host("hello")
    assert (await built.preview(method, host=host, data=SECRET)).status == 200
    await runtime.close()
    await program.close()
    await until(lambda: runtime.open + program.open == 0)
    theirs = await stranger_at(built, ip="10.0.0.1", pod_uid=pod_uid)
    their_program = await built.raw_program()

    await asyncio.sleep(LEASE_SECONDS / 2)
    answer = await built.preview(method, host=host, data=SECRET)

    assert answer.status == 503
    assert their_program.connections == 0
    assert_learned_nothing(theirs)


async def test_a_kept_connection_to_an_earlier_pod_of_the_address_is_not_used(hello: Harness) -> None:
    runtime = await hello.raw_runtime()
    path = proxy_path("hello", "/api/session/list")
    assert (await hello.request("GET", path)).status == 200

    await hello.api.put(sandbox("hello", pod_uid="pod-uid-2"))
    async with asyncio.timeout(5):
        while runtime.connections < 2:
            assert (await hello.request("GET", path)).status == 200
    assert len(runtime.nonces) == 2


async def test_a_proof_is_asked_for_once_on_each_connection(hello: Harness) -> None:
    runtime = await hello.raw_runtime()
    for _ in range(3):
        assert (await hello.request("POST", proxy_path("hello"), data="{}")).status == 200
    assert (runtime.connections, len(runtime.nonces)) == (1, 1)


async def test_each_connection_gets_a_nonce_of_its_own(hello: Harness) -> None:
    runtime = await hello.raw_runtime(hang_up=True)
    for _ in range(3):
        assert (await hello.request("POST", proxy_path("hello"), data="{}")).status == 200
    assert len(set(runtime.nonces)) == len(runtime.nonces) == runtime.connections > 1


@pytest.mark.parametrize(
    "answer",
    [
        lease_answer(body=b"not json"),
        lease_answer(body=b"[" * 5000),
        lease_answer(body=b"[]"),
        lease_answer(body=b"{}"),
        lease_answer(body=b'{"proof":null}'),
        lease_answer(body='{"proof":"ä\\ud800"}'.encode()),
        lease_answer(body=json.dumps({"proof": "a" * 64}).encode()),
        lease_answer("503 Service Unavailable", b'{"code":"CONTAINER_UNAVAILABLE"}'),
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello",
        b"220 ready\r\n",
    ],
)
async def test_whatever_else_is_answered_to_a_nonce_is_no_proof(hello: Harness, answer: bytes) -> None:
    theirs = await hello.raw_runtime(proof=None, answer=answer)
    assert (await hello.request("POST", proxy_path("hello"), data=SECRET)).status == 503
    assert_learned_nothing(theirs)
