"""How the operator makes a runtime its own."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web
from sandpod_crds.keys import bind_token, credential
from sandpod_operator.objects import uid_of
from sandpod_operator.observations import Outcome
from sandpod_operator.runtime_client import LONGEST_ANSWER
from sandpod_operator.whereabouts import pod_address, whereabouts

from tests.support.asked_runtime import ASK, SECRET, AskedRuntime, Asking, says
from tests.support.operator_api import Api
from tests.support.operator_objects import KEY, NOW, POD_UID, UID, pod, up
from tests.support.operator_world import POD_PATH


async def test_a_runtime_that_takes_the_bind_is_bound(bench: Asking) -> None:
    bench.runtime.binds = [says(200, {"success": True, "runtimeVersion": "0.1.0"})]
    bench.client.want(KEY, ASK)
    answer = await bench.answer()

    assert (answer.outcome, answer.version, answer.spec_hash) == (Outcome.DONE, "0.1.0", "abc")
    assert len(bench.client) == 0
    _, headers, body = bench.runtime.requests[0]
    token = bind_token(key=SECRET, namespace=KEY.namespace, pod_name=KEY.name)
    assert headers["X-Sandpod-Bind-Token"] == token
    assert body == {
        "sandbox": {"namespace": "team", "name": "box", "uid": UID},
        "pod": {"name": "box", "uid": POD_UID},
        "credential": credential(key=SECRET, namespace=KEY.namespace, pod_uid=POD_UID),
        "env": {"A": "1"},
        "lifecycle": {"sleepAfterSeconds": 600, "keepAlive": False},
        "expectSeconds": 0,
        "processes": [],
        "setup": [],
    }


async def test_one_that_somebody_has_woken_is_told_that_somebody_comes(bench: Asking) -> None:
    bench.runtime.binds = [says(200, {"success": True, "runtimeVersion": "0.1.0"})]
    bench.client.want(KEY, replace(ASK, wake="request 1"))
    assert (await bench.answer()).wake == "request 1"
    assert bench.runtime.requests[0][2]["expectSeconds"] == 10


async def test_it_is_asked_again_until_it_listens(bench: Asking) -> None:
    port = bench.runtime.port
    await bench.runtime.stop()
    bench.client.want(KEY, ASK)
    await bench.attempts.get()
    await bench.attempts.get()
    late = AskedRuntime()
    late.binds = [says(503, {"code": "CONTAINER_UNAVAILABLE"}), says(200, {"runtimeVersion": "1"})]
    await late.start(port)

    assert (await bench.answer()).outcome is Outcome.DONE
    assert len(late.requests) == 2
    await late.stop()


async def test_an_address_that_does_not_answer_gets_no_environment_again_before_the_pod_was_seen_there(
    bench: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandpod_operator.runtime_client.SURE_FOR", 0.0)
    monkeypatch.setattr("sandpod_operator.runtime_client.LONGEST_PAUSE", 0.0)
    said_at: list[int] = []

    def unbound() -> web.Response:
        said_at.append(len(bench.pods))
        return web.json_response({}, status=503)

    bench.runtime.binds = [unbound, unbound, says(200, {"runtimeVersion": "1"})]
    bench.pods = [False, False, True, True]
    bench.client.want(KEY, ASK)

    assert (await bench.answer()).outcome is Outcome.DONE
    assert said_at == [4, 1]


async def test_a_pod_is_there_when_the_api_server_has_it_with_this_address() -> None:
    api = Api(now=lambda: NOW)
    is_there = whereabouts(api)
    ask = replace(ASK, pod_uid=uid_of(api.put(POD_PATH, pod())))
    api.change(POD_PATH, {"status": up(ip=ASK.ip)})

    assert await is_there(ask)
    assert not await is_there(replace(ask, pod_uid="that of an earlier one"))
    assert not await is_there(replace(ask, ip="10.1.0.8"))
    api.vanish(POD_PATH)
    assert not await is_there(ask)


async def test_a_runtime_that_was_bound_before_a_crash_is_found_again(bench: Asking) -> None:
    bench.runtime.binds = [says(409, {"code": "ALREADY_BOUND"})]
    bench.runtime.lifecycle = says(200, {"runtimeVersion": "0.1.0", "sandbox": {"uid": UID}})
    bench.client.want(KEY, replace(ASK, wake="request 1"))
    answer = await bench.answer()

    # What it was bound with, nobody knows any more.
    assert (answer.outcome, answer.version, answer.spec_hash) == (Outcome.DONE, "0.1.0", "")
    assert answer.wake == ""
    headers = bench.runtime.requests[1][1]
    assert headers["X-Sandpod-Credential"] == credential(key=SECRET, namespace=KEY.namespace, pod_uid=POD_UID)


async def test_a_runtime_that_we_have_bound_to_another_sandbox_is_refused(bench: Asking) -> None:
    bench.runtime.binds = [says(409, {"code": "ALREADY_BOUND"})]
    bench.runtime.lifecycle = says(200, {"runtimeVersion": "0.1.0", "sandbox": {"uid": "another"}})
    bench.client.want(KEY, ASK)
    answer = await bench.answer()

    assert (answer.outcome, answer.message) == (Outcome.REFUSED, "it is bound to another sandbox.")


async def test_a_runtime_that_somebody_else_bound_is_refused(bench: Asking) -> None:
    bench.runtime.binds = [says(409, {"code": "ALREADY_BOUND"})]
    bench.client.want(KEY, ASK)
    answer = await bench.answer()

    assert (answer.outcome, answer.message) == (Outcome.REFUSED, "somebody else has bound it.")


async def test_a_runtime_that_does_not_know_our_token_is_refused(bench: Asking) -> None:
    bench.runtime.binds = [says(401, {"code": "UNAUTHENTICATED"})]
    bench.client.want(KEY, ASK)

    assert "another key of the installation" in (await bench.answer()).message


async def test_a_runtime_that_does_not_like_the_bind_says_why(bench: Asking) -> None:
    bench.runtime.binds = [says(400, {"code": "VALIDATION_FAILED", "message": "env: too long"})]
    bench.client.want(KEY, ASK)

    assert (await bench.answer()).message == "it answered 400 VALIDATION_FAILED: env: too long"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[1]", b'"x"', b"{" + b" " * (LONGEST_ANSWER + 10), b"[" * 60_000], ids=len
)
async def test_an_answer_that_is_no_json_object_is_survived(bench: Asking, body: bytes) -> None:
    bench.runtime.binds = [lambda: web.Response(body=body, status=200)]
    bench.client.want(KEY, ASK)

    assert (await bench.answer()).outcome is Outcome.DONE


async def test_a_redirect_is_not_followed(bench: Asking) -> None:
    def elsewhere() -> web.Response:
        raise web.HTTPFound("http://169.254.169.254/")

    bench.runtime.binds = [elsewhere, says(200, {})]
    bench.client.want(KEY, ASK)
    await bench.answer()

    assert [what for what, _, _ in bench.runtime.requests] == ["bind", "bind"]


async def test_an_asking_that_ends_takes_only_its_own_entry_with_it(bench: Asking) -> None:
    await bench.runtime.stop()
    bench.client.want(KEY, ASK)
    await bench.attempts.get()
    bench.client.want(KEY, replace(ASK, ip="10.1.0.8"))
    while await bench.attempts.get() != "10.1.0.8":
        pass

    assert len(bench.client) == 1


async def test_one_asking_at_a_time_and_none_that_nobody_wants(bench: Asking) -> None:
    await bench.runtime.stop()
    bench.client.want(KEY, ASK)
    bench.client.want(KEY, ASK)
    assert len(bench.client) == 1
    bench.client.want(KEY, None)
    assert len(bench.client) == 0
    await asyncio.sleep(0)

    assert not [
        task for task in asyncio.all_tasks() if task.get_name() == f"ask {KEY}" and not task.cancelling()
    ]


@pytest.mark.parametrize(
    ("ip", "address"),
    [
        ("10.1.0.7", "10.1.0.7:3000"),
        ("fd00::7", "[fd00::7]:3000"),
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("169.254.169.254", None),
        ("fe80::1", None),
        ("0.0.0.0", None),
        ("224.0.0.1", None),
        ("evil.example", None),
        ("10.1.0.7/x", None),
        ("", None),
    ],
)
def test_only_addresses_that_a_pod_can_have_are_dialled(ip: str, address: str | None) -> None:
    assert pod_address(ip) == address


async def test_a_pod_with_another_address_is_refused_without_a_request(bench: Asking) -> None:
    client = bench.client_to(None)
    client.want(KEY, replace(ASK, ip="127.0.0.1"))
    answer = await bench.answer()
    await client.close()

    assert answer.outcome is Outcome.REFUSED
    assert bench.runtime.requests == []
