"""What stands beside `proxy`, at both doors: sleep, and the ports of a sandbox."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from sandpod_crds.names import ANNOTATION_TOKEN_VERSION

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import PREFIX, Answer, Harness

Ask = Callable[..., Awaitable[Answer]]

DOORS = ("aggregated", "v1")


def asking(built: Harness, door: str) -> Ask:
    """A request of Jane's for what is behind `hello`."""

    async def ask(method: str, rest: str, **options: Any) -> Answer:
        path = f"/namespaces/default/sandboxes/hello/{rest}"
        if door == "v1":
            return await built.v1(method, f"/v1{path}", **options)
        return await built.request(method, f"{PREFIX}{path}", **options)

    return ask


@pytest.mark.parametrize("door", DOORS)
async def test_a_runtime_is_told_to_sleep_and_the_next_request_finds_it_gone(
    hello: Harness, door: str
) -> None:
    told: list[bytes] = []

    async def runtime(request: web.BaseRequest) -> web.StreamResponse:
        told.append(request.raw_path.encode() + b" " + await request.read())
        return web.json_response({"phase": "draining"})

    await hello.runtime(runtime)
    ask = asking(hello, door)

    answer = await ask("POST", "sleep")
    after = await ask("POST", "proxy/api/execute")

    assert (answer.status, answer.json["status"]) == (202, "Success")
    assert told == [b'/api/lifecycle/sleep {"reason": "asked for at the gateway"}']
    # Nothing more is sent there: a wake is asked for instead.
    assert (after.status, len(hello.api.wakes)) == (503, 1)
    review = hello.api.reviews[0]["resourceAttributes"]
    assert (review["verb"], review["subresource"]) == ("create", "sleep")


async def test_one_that_sleeps_is_left_asleep(gateway: Harness) -> None:
    await gateway.api.put(sandbox("hello", phase="Asleep", ready=False, pod_ip=""))

    answer = await asking(gateway, "v1")("POST", "sleep")

    assert (answer.status, answer.json["message"]) == (200, 'sandbox "hello" is asleep')
    assert gateway.api.wakes == []


async def test_one_that_is_told_twice_is_going_to_sleep_all_the_same(hello: Harness) -> None:
    runtime = await hello.raw_runtime(
        answer=b"HTTP/1.1 503 X\r\nContent-Type: application/json\r\nContent-Length: 32\r\n\r\n"
        b'{"code":"CONTAINER_UNAVAILABLE"}'
    )

    assert (await asking(hello, "v1")("POST", "sleep")).status == 202
    # And now it has gone.
    await runtime.close()
    hello.targets["10.0.0.1"] = 1
    assert (await asking(hello, "v1")("POST", "sleep")).status == 202


@pytest.mark.parametrize("phase", ["Starting", "Failed", "Pending"])
async def test_one_that_is_not_awake_cannot_be_told(gateway: Harness, phase: str) -> None:
    await gateway.api.put(sandbox("hello", phase=phase, ready=False, pod_ip=""))

    answer = await asking(gateway, "v1")("POST", "sleep")

    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert f"phase {phase}" in answer.json["message"]


async def test_sleep_and_ports_of_nobody_are_404(gateway: Harness) -> None:
    for method, rest in (("POST", "sleep"), ("GET", "ports"), ("DELETE", "ports/8080")):
        answer = await asking(gateway, "v1")(method, rest)
        assert (answer.status, answer.json["reason"]) == (404, "NotFound")


async def test_sleep_is_a_post_and_nothing_else(hello: Harness) -> None:
    assert (await asking(hello, "v1")("GET", "sleep")).status == 405
    assert (await asking(hello, "v1")("PUT", "ports")).status == 405
    assert (await asking(hello, "v1")("GET", "ports/8080/rotate")).status == 405


@pytest.mark.parametrize("door", DOORS)
async def test_a_port_is_exposed_listed_rotated_and_taken_back(hello: Harness, door: str) -> None:
    ask = asking(hello, door)

    made = await ask("POST", "ports", json={"port": 8080, "name": "web"})
    again = await ask("POST", "ports", json={"port": 8080})
    shown = await ask("GET", "ports/8080")
    listed = await ask("GET", "ports")

    first = f"http://{hello.preview_host('hello', port=8080)}/"
    entry = {
        "port": 8080,
        "name": "web",
        "access": "Token",
        "tokenVersion": 1,
        "inherited": False,
        "url": first,
    }
    kind = {"kind": "SandboxPort", "apiVersion": "run.sandpod.dev/v1alpha1"}
    assert (made.status, made.json) == (201, kind | entry)
    assert (again.status, again.json) == (200, kind | entry)
    assert shown.json == kind | entry
    assert (listed.status, listed.json["items"]) == (200, [entry])

    rotated = await ask("POST", "ports/8080/rotate")
    second = f"http://{hello.preview_host('hello', port=8080, version=2)}/"
    assert (rotated.status, rotated.json["url"], rotated.json["tokenVersion"]) == (200, second, 2)

    gone = await ask("DELETE", "ports/8080")
    assert (gone.status, gone.json["status"]) == (200, "Success")
    assert (await ask("GET", "ports")).json["items"] == []
    assert [(await ask(method, "ports/8080")).status for method in ("GET", "DELETE")] == [404, 404]
    # Its old addresses stay dead.
    anew = await ask("POST", "ports", json={"port": 8080})
    assert anew.json["tokenVersion"] == 3
    item = hello.api.objects["default", "hello"]
    assert item["metadata"]["annotations"][ANNOTATION_TOKEN_VERSION] == "2"


async def test_who_was_told_of_a_url_can_use_it_at_once(hello: Harness) -> None:
    await hello.raw_runtime()
    await hello.raw_program()

    await asking(hello, "v1")("POST", "ports", json={"port": 8080})
    opened = await hello.preview("GET", host=hello.preview_host("hello"))
    await asking(hello, "v1")("DELETE", "ports/8080")
    closed = await hello.preview("GET", host=hello.preview_host("hello"))

    assert (opened.status, closed.status) == (200, 404)


async def test_a_templates_port_is_listed_and_stays(gateway: Harness) -> None:
    item = sandbox("hello")
    item["status"]["ports"] = [{"port": 9000, "access": "Private", "inherited": True, "tokenVersion": 1}]
    await gateway.api.put(item)
    ask = asking(gateway, "v1")

    (entry,) = (await ask("GET", "ports")).json["items"]
    refused = await ask("DELETE", "ports/9000")

    assert (entry["port"], entry["access"], entry["inherited"]) == (9000, "Private", True)
    assert (refused.status, refused.json["reason"]) == (409, "Conflict")


async def test_two_who_expose_at_the_same_time_both_get_their_port(hello: Harness) -> None:
    ask = asking(hello, "v1")

    answers = await asyncio.gather(*(ask("POST", "ports", json={"port": 8000 + n}) for n in range(4)))

    assert {answer.status for answer in answers} == {201}
    assert [entry["port"] for entry in (await ask("GET", "ports")).json["items"]] == [8000, 8001, 8002, 8003]


async def test_who_is_always_too_late_is_told_so_after_some_tries(hello: Harness) -> None:
    tries = 0

    async def somebody_else() -> None:
        nonlocal tries
        tries += 1
        await hello.api.put(hello.api.objects["default", "hello"])

    hello.api.before_ports = somebody_else

    answer = await asking(hello, "v1")("POST", "ports", json={"port": 8080})

    assert (answer.status, answer.json["reason"], tries) == (409, "Conflict", 6)


async def test_what_the_api_server_finds_wrong_is_told_in_its_words(hello: Harness) -> None:
    ask = asking(hello, "v1")
    for port in range(8000, 8032):
        assert (await ask("POST", "ports", json={"port": port})).status == 201

    answer = await ask("POST", "ports", json={"port": 8032})

    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert "at most 32" in answer.json["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"[" * 4000, 400),
        (b'{"port": 8080, "x": 1}', 400),
        (b'{"port": 3000}', 422),
        (b'{"port": 8080, "access": "Public"}', 422),
        (b" " * 5000, 413),
    ],
)
async def test_a_body_that_is_none_is_refused(hello: Harness, body: bytes, status: int) -> None:
    answer = await asking(hello, "v1")("POST", "ports", data=body)

    assert (answer.status, answer.json["kind"]) == (status, "Status")
    assert "ports" not in hello.api.objects["default", "hello"]["spec"]


async def test_without_a_site_ports_have_no_urls(built: Harness) -> None:
    await built.start(site=None)
    await built.api.put(sandbox("hello"))

    answer = await asking(built, "v1")("POST", "ports", json={"port": 8080})

    assert (answer.status, "url" in answer.json) == (201, False)


async def test_the_log_is_not_at_the_api_servers_door_and_says_where_it_is(hello: Harness) -> None:
    answer = await asking(hello, "aggregated")("GET", "log")

    assert (answer.status, "kubectl logs" in answer.json["message"]) == (404, True)


async def test_a_body_that_drips_or_ends_early_takes_nobodys_time(hello: Harness) -> None:
    path = "/v1/namespaces/default/sandboxes/hello/ports"
    body = json.dumps({"port": 8080}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer janes-token\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", hello.gateway.http_port)
    writer.write(f"{head}Content-Length: {len(body) + 1}\r\n\r\n".encode() + body)
    await writer.drain()
    writer.close()

    assert (await asking(hello, "v1")("GET", "ports")).json["items"] == []
