"""Who gets in by the aggregated API's door, what it serves beside sandboxes, and what is on record."""

import aiohttp
import pytest
from sandpod_crds import keys
from sandpod_gateway.addresses import control_address

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_certificates import Authority
from tests.support.gateway_harness import KEY, PREFIX, Harness, proxy_path, until

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_a_command_travels_to_the_sandboxs_pod_and_its_answer_back(gateway: Harness) -> None:
    runtime = await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))

    answer = await gateway.request("POST", proxy_path("hello", "/api/execute?x=1"), data=b'{"command":"id"}')

    assert (answer.status, answer.body) == (200, b"ok")
    assert runtime.head()[0] == b"POST /api/execute?x=1 HTTP/1.1"
    assert bytes(runtime.received).endswith(b'{"command":"id"}')


async def test_identity_headers_from_anybody_but_the_front_proxy_are_refused(gateway: Harness) -> None:
    runtime = await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))
    admin = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}

    for context in (gateway.stranger_context(), gateway.front_proxy_context("somebody-else")):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            answer = await gateway.request("GET", proxy_path("hello"), session=session, headers=admin)
        assert (answer.status, answer.json["reason"]) == (401, "Unauthorized")

    assert runtime.connections == 0
    assert gateway.api.reviews == []
    assert [line["status"] for line in gateway.audit_lines()] == [401, 401]


async def test_a_certificate_of_another_ca_does_not_get_as_far_as_http(gateway: Harness) -> None:
    context = gateway.front_proxy_context(by=Authority("another-ca"))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        with pytest.raises(aiohttp.ClientError):
            await gateway.request("GET", proxy_path("hello"), session=session)


async def test_the_credential_is_the_one_of_the_recorded_pod(gateway: Harness) -> None:
    runtime = await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello", pod_uid="the-pod"))

    await gateway.request("POST", proxy_path("hello"), headers={"X-Sandpod-Credential": "guessed"})

    sent = [line for line in runtime.head() if line.lower().startswith(b"x-sandpod-")]
    assert sent == [
        b"X-Sandpod-Credential: " + keys.credential(key=KEY, namespace="default", pod_uid="the-pod").encode()
    ]


async def test_the_credential_never_leaks_to_the_client_nor_theirs_to_the_runtime(gateway: Harness) -> None:
    credential = keys.credential(key=KEY, namespace="default", pod_uid="pod-uid-1")
    echo = f"HTTP/1.1 200 OK\r\nX-Sandpod-Credential: {credential}\r\nContent-Length: 2\r\n\r\nok"
    runtime = await gateway.raw_runtime(answer=echo.encode())
    await gateway.api.put(sandbox("hello"))
    secrets = {"Authorization": "Bearer mine", "Cookie": "mine=1", "Impersonate-User": "mine"}

    answer = await gateway.request("POST", proxy_path("hello", "/api/execute?token=mine"), headers=secrets)
    runtime.answer = b"garbage"
    runtime.hang_up = True
    broken = await gateway.request("POST", proxy_path("hello"))

    assert credential not in str(answer.headers) + str(broken.headers) + str(broken.body)
    assert b"mine" not in bytes(runtime.received).replace(b"?token=mine", b"")
    assert b"jane" not in bytes(runtime.received)
    log = gateway.log.getvalue()
    assert credential not in log
    assert "mine" not in log


async def test_client_supplied_addresses_are_not_dialled(built: Harness) -> None:
    """With the address check that the product has, and a status that somebody has written into."""
    built.address_of = control_address
    await built.start()
    runtime = await built.raw_runtime(ip="127.0.0.1")
    await built.api.put(sandbox("loop", pod_ip="127.0.0.1"))
    await built.api.put(sandbox("meta", pod_ip="169.254.169.254"))

    for name in ("loop", "meta"):
        answer = await built.request("POST", proxy_path(name), headers={"Host": "10.0.0.1:3000"})
        assert answer.status == 502
        assert "does not connect to" in answer.json["message"]
    assert runtime.connections == 0


async def test_the_bind_is_not_reachable_through_the_door(gateway: Harness) -> None:
    runtime = await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))

    for path in ("/api/bind", "/api/%62ind", "//api/bind"):
        assert (await gateway.request("POST", proxy_path("hello", path))).status == 404
    assert runtime.connections == 0


async def test_discovery_is_what_the_aggregator_asks_for(gateway: Harness) -> None:
    resources = await gateway.request("GET", PREFIX)
    group = await gateway.request("GET", "/apis/run.sandpod.dev")
    aggregated = await gateway.request("GET", "/apis", headers={"Accept": f"{AGGREGATED},application/json"})
    again = await gateway.request(
        "GET", "/apis", headers={"Accept": AGGREGATED, "If-None-Match": aggregated.headers["ETag"]}
    )

    names = ["sandboxes/proxy", "sandboxes/ports", "sandboxes/sleep", "sandboxes/wake"]
    assert [r["name"] for r in resources.json["resources"]] == names
    assert group.json["preferredVersion"]["groupVersion"] == "run.sandpod.dev/v1alpha1"
    assert aggregated.headers["Content-Type"] == AGGREGATED
    assert aggregated.json["items"][0]["metadata"]["name"] == "run.sandpod.dev"
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/apis",
        "/openapi/v2",
        "/openapi/v3",
        f"{PREFIX}/sandboxes",
        f"{PREFIX}/namespaces/default/sandboxes/hello",
        f"{PREFIX}/namespaces/default/sandboxes/hello/proxyx",
        f"{PREFIX}/namespaces/default/sandboxes/hello/exec",
        f"{PREFIX}/namespaces/default/sandboxes/hello/wake/",
        f"{PREFIX}/namespaces/Default/sandboxes/hello/proxy",
        f"{PREFIX}/namespaces/a%2Fb/sandboxes/hello/proxy",
        f"{PREFIX}/namespaces/../sandboxes/hello/proxy",
        f"/{PREFIX}/namespaces/default/sandboxes/hello/proxy",
    ],
)
async def test_there_is_nothing_else(gateway: Harness, path: str) -> None:
    answer = await gateway.request("GET", path)

    assert (answer.status, answer.json["kind"], answer.json["reason"]) == (404, "Status", "NotFound")


async def test_discovery_cannot_be_written(gateway: Harness) -> None:
    assert (await gateway.request("POST", PREFIX)).status == 405
    assert (await gateway.request("TRACE", proxy_path("hello"))).status == 405


async def test_the_audit_log_has_a_line_for_each_request_to_a_sandbox(gateway: Harness) -> None:
    await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    told = {"traceparent": trace, "Audit-Id": "from-the-api-server", "X-Forwarded-For": "6.6.6.6, 192.0.2.7"}

    await gateway.request("POST", proxy_path("hello", "/api/execute?secret=1"), headers=told)
    await gateway.request("GET", PREFIX)

    (line,) = gateway.audit_lines()
    assert line.pop("seconds") > 0
    assert line.pop("time").endswith("Z")
    assert line == {
        "audit": "aggregated",
        "user": "jane",
        "verb": "create",
        "subresource": "exec",
        "namespace": "default",
        "sandbox": "hello",
        "method": "POST",
        "path": proxy_path("hello", "/api/execute"),
        "status": 200,
        "source": "192.0.2.7",
        "auditId": "from-the-api-server",
        "traceId": "a" * 32,
    }


async def test_the_runtime_gets_the_trace_of_the_request(gateway: Harness) -> None:
    runtime = await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))
    trace = f"00-{'a' * 32}-{'b' * 16}-01"

    await gateway.request("POST", proxy_path("hello"), headers={"traceparent": trace})
    assert f"traceparent: {trace}".encode() in runtime.head()

    await gateway.request("POST", proxy_path("hello"), headers={"traceparent": "nonsense"})
    # Written when the connection has had its answer.
    await until(lambda: len(gateway.audit_lines()) == 2)
    made = [line for line in runtime.head() if line.startswith(b"traceparent: ")]
    assert made[0].decode().split("-")[1] == gateway.audit_lines()[1]["traceId"]


async def test_somebody_in_five_hundred_groups_gets_in(gateway: Harness) -> None:
    await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))
    groups = "".join(f"X-Remote-Group: group-{number}\r\n" for number in range(500))
    head = f"POST {proxy_path('hello')} HTTP/1.1\r\nHost: x\r\nX-Remote-User: jane\r\n{groups}"

    answer = await gateway.raw(f"{head}Connection: close\r\nContent-Length: 0\r\n\r\n".encode())

    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert len(gateway.api.reviews[0]["groups"]) == 500
