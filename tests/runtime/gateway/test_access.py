"""Whether a request may go to a sandbox, and whether there is one to go to."""

import asyncio

import pytest

from tests.support.gateway_api_server import Json, sandbox
from tests.support.gateway_harness import Harness, proxy_path, until

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_the_api_server_is_asked_whether_this_user_may(gateway: Harness) -> None:
    await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))

    await gateway.request("POST", proxy_path("hello"), headers={"X-Remote-Extra-Scopes": "s"})

    assert gateway.api.reviews == [
        {
            "user": "jane",
            "uid": "",
            "groups": ["system:authenticated"],
            "extra": {"scopes": ["s"]},
            "resourceAttributes": {
                "group": "sandpod.dev",
                "version": "v1alpha1",
                "resource": "sandboxes",
                "subresource": "exec",
                "verb": "create",
                "namespace": "default",
                # All of them.
                "name": "",
            },
        }
    ]


async def test_who_may_work_in_all_sandboxes_of_a_namespace_is_asked_about_once(gateway: Harness) -> None:
    await gateway.raw_runtime()
    for name in ("one", "two", "three"):
        await gateway.api.put(sandbox(name))

    answers = [await gateway.request("POST", proxy_path(name)) for name in ("one", "two", "three")]

    assert [answer.status for answer in answers] == [200, 200, 200]
    assert [_named(review) for review in gateway.api.reviews] == [""]


async def test_a_role_for_single_sandboxes_opens_these_and_no_others(gateway: Harness) -> None:
    await gateway.raw_runtime()
    for name in ("mine", "theirs"):
        await gateway.api.put(sandbox(name))
    gateway.api.allow = lambda spec: _named(spec) == "mine"

    answers = [await gateway.request("POST", proxy_path(name)) for name in ("mine", "theirs", "mine")]

    assert [answer.status for answer in answers] == [200, 403, 200]
    assert [_named(review) for review in gateway.api.reviews] == ["", "mine", "theirs"]


async def test_a_right_in_one_namespace_is_none_in_another(gateway: Harness) -> None:
    await gateway.raw_runtime()
    for namespace in ("default", "team-a"):
        await gateway.api.put(sandbox("hello", namespace=namespace))
    gateway.api.allow = lambda spec: spec["resourceAttributes"]["namespace"] == "default"

    answers = [
        await gateway.request("POST", proxy_path("hello", namespace=namespace))
        for namespace in ("default", "team-a")
    ]

    assert [answer.status for answer in answers] == [200, 403]


def _named(review: Json) -> str:
    return review["resourceAttributes"]["name"]


async def test_a_refusal_names_the_missing_permission_and_looks_nothing_up(gateway: Harness) -> None:
    gateway.api.allow = lambda spec: False

    answer = await gateway.request("POST", proxy_path("unknown", "/api/read"))

    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert answer.json["message"] == (
        'sandboxes.sandpod.dev "unknown" is forbidden: user "jane" cannot create resource "sandboxes/files" '
        'in API group "sandpod.dev" in the namespace "default": no rule says so'
    )
    # Or whoever may not ask could find out which names there are.
    assert gateway.api.gets == 0


async def test_decisions_are_remembered_for_one_user_and_one_permission(gateway: Harness) -> None:
    await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))
    path = proxy_path("hello")

    for _ in range(3):
        await gateway.request("POST", path)
    assert len(gateway.api.reviews) == 1

    await gateway.request("GET", path)
    await gateway.request("POST", path, headers={"X-Remote-User": "joe"})
    await gateway.request("POST", path, headers={"X-Remote-Group": "others"})
    await gateway.request("POST", proxy_path("hello", "/api/read"))
    assert len(gateway.api.reviews) == 5


async def test_a_right_that_is_taken_away_ends_within_the_caches_time(built: Harness) -> None:
    await built.start(authorization_cache_seconds=0.05)
    await built.raw_runtime()
    await built.api.put(sandbox("hello"))
    assert (await built.request("POST", proxy_path("hello"))).status == 200

    built.api.allow = lambda spec: False

    async with asyncio.timeout(5):
        while (await built.request("POST", proxy_path("hello"))).status != 403:
            pass


async def test_when_nobody_can_say_who_may_nobody_may(built: Harness) -> None:
    await built.start(authorization_cache_seconds=0)
    runtime = await built.raw_runtime()
    await built.api.put(sandbox("hello"))
    assert (await built.request("POST", proxy_path("hello"))).status == 200
    built.api.down = True

    answer = await built.request("POST", proxy_path("hello"))

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert runtime.connections == 1


async def test_an_unknown_sandbox_is_404_after_one_live_look(gateway: Harness) -> None:
    answer = await gateway.request("POST", proxy_path("nobody", namespace="team-a"))

    assert (answer.status, answer.json["reason"]) == (404, "NotFound")
    assert answer.json["details"] == {"name": "nobody", "group": "sandpod.dev", "kind": "sandboxes"}
    assert gateway.api.gets == 1


async def test_a_client_that_is_faster_than_the_watch_is_served(gateway: Harness) -> None:
    await gateway.raw_runtime()
    gateway.api.watch_lags = True
    await gateway.api.put(sandbox("hello"))

    assert (await gateway.request("POST", proxy_path("hello"))).status == 200
    assert gateway.api.gets == 1


async def test_a_request_waits_a_moment_for_a_sandbox_that_is_starting(built: Harness) -> None:
    await built.start(ready_wait_seconds=20)
    await built.raw_runtime()
    await built.api.put(sandbox("hello", phase="Starting", ready=False, pod_ip=""))

    request = asyncio.create_task(built.request("POST", proxy_path("hello")))
    await until(lambda: bool(built.api.reviews))
    assert not request.done()
    await built.api.put(sandbox("hello"))

    assert (await request).status == 200


@pytest.mark.parametrize(
    ("phase", "reason", "message"),
    [
        ("Starting", "Starting", "waiting for the runtime"),
        ("Failed", "ImagePullFailed", "no such image"),
    ],
)
async def test_a_sandbox_that_is_not_ready_is_503_and_says_why(
    built: Harness, phase: str, reason: str, message: str
) -> None:
    await built.start(ready_wait_seconds=0.05)
    item = sandbox("hello", phase=phase, ready=False, pod_ip="", reason=reason, message=message)
    await built.api.put(item)

    answer = await built.request("POST", proxy_path("hello"))

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json["message"] == f'sandbox "hello" is not ready (phase {phase}) - {reason}: {message}'
    assert answer.json["details"]["retryAfterSeconds"] == 1


async def test_a_sandbox_that_is_being_deleted_is_not_served(gateway: Harness) -> None:
    item = sandbox("hello")
    item["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    await gateway.api.put(item)

    answer = await gateway.request("POST", proxy_path("hello"))

    assert answer.status == 503
    assert "is being deleted" in answer.json["message"]
