"""The aggregated API as others meet it: discovery, errors, its gateway going away and coming back."""

import httpx

from tests.support.cluster import (
    API_SERVICE,
    SYSTEM,
    apply,
    control_plane_is_ready,
    kubectl,
    proxy_path,
)
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually


def test_the_api_server_finds_the_gateway_available() -> None:
    kubectl("wait", f"apiservice/{API_SERVICE}", "--for=condition=Available", "--timeout=5s")


def test_discovery_stays_healthy() -> None:
    found = kubectl("api-resources")
    assert found.stderr == ""
    names = [line.split()[0] for line in found.stdout.splitlines()]
    assert {"sandboxes", "sandboxtemplates", "sandboxpools"} <= set(names)


def test_the_group_tells_what_it_serves(api: httpx.Client) -> None:
    answer = api.get("/apis/run.sandpod.dev/v1alpha1").json()
    assert answer["kind"] == "APIResourceList"
    names = {resource["name"] for resource in answer["resources"]}
    assert names == {f"sandboxes/{word}" for word in ("proxy", "ports", "sleep", "wake")}


def test_a_namespace_can_be_deleted() -> None:
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "e2e-short-lived"}})
    kubectl("delete", "namespace", "e2e-short-lived", "--timeout=30s")


def test_an_unknown_sandbox_is_404(api: httpx.Client, box: Sandbox) -> None:
    answer = api.post(proxy_path(namespace=box.namespace, name="nobody", path="api/execute"), json={})
    body = answer.json()
    assert (answer.status_code, body["kind"], body["reason"]) == (404, "Status", "NotFound")
    assert "nobody" in body["message"]


def test_a_sandbox_that_is_starting_is_503_with_a_time_to_retry(
    api: httpx.Client, sandbox: Sandboxes
) -> None:
    waiting = sandbox("waiting", nodeSelector={"sandpod.dev/nowhere": "true"})
    path = proxy_path(namespace=waiting.namespace, name=waiting.name, path="api/execute")
    waiting.fails_with("Unschedulable")

    def refused() -> None:
        answer = api.post(path, json={"command": "true"})
        body = answer.json()
        assert (answer.status_code, body["kind"], body["reason"]) == (503, "Status", "ServiceUnavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert "Unschedulable" in body["message"]

    refused_when_the_gateway_knows = eventually(lambda: refused() or True, timeout=5)
    assert refused_when_the_gateway_knows


def test_the_bind_cannot_be_reached_from_outside(api: httpx.Client, box: Sandbox) -> None:
    answer = api.post(proxy_path(namespace=box.namespace, name=box.name, path="api/bind"), json={})
    assert answer.status_code == 404


def test_an_unknown_path_gets_the_runtimes_own_answer(api: httpx.Client, box: Sandbox) -> None:
    answer = api.get(proxy_path(namespace=box.namespace, name=box.name, path="api/no-such-thing"))
    assert (answer.status_code, answer.json()["httpStatus"]) == (404, 404)


def test_a_gateway_that_is_killed_comes_back(box: Sandbox) -> None:
    kubectl("-n", SYSTEM, "delete", "pod", "-l", "app.kubernetes.io/component=gateway", "--grace-period=1")
    control_plane_is_ready()
    eventually(lambda: box.exec("echo", "again", check=False).stdout == "again\n", timeout=20)
