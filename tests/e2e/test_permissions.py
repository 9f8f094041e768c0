"""Who may do what: Kubernetes' own RBAC, asked at the API server and once more at the gateway."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.cluster import API_SERVICE, Json, apply, kubectl, proxy_path, run
from tests.support.sandboxes import Sandbox, Sandboxes
from tests.support.waiting import eventually

Client = Callable[[str], httpx.Client]


@pytest.fixture(scope="module")
def shared(shared_sandbox: Sandboxes) -> Sandbox:
    """A sandbox, and beside it people with different rights: service accounts of its namespace."""
    namespace = shared_sandbox.namespace
    roles = {
        "viewer": {"kind": "ClusterRole", "name": "view"},
        "editor": {"kind": "ClusterRole", "name": "edit"},
        "owner": {"kind": "ClusterRole", "name": "admin"},
        "knocker": {"kind": "Role", "name": "door-only"},
        "reader": {"kind": "Role", "name": "look-only"},
        "tenant": {"kind": "Role", "name": "box-only"},
    }
    apply(
        role(namespace, "door-only", rule("run.sandpod.dev", "sandboxes/proxy", "get", "create")),
        role(
            namespace,
            "look-only",
            rule("run.sandpod.dev", "sandboxes/proxy", "get", "create"),
            rule("sandpod.dev", "sandboxes/exec", "get"),
        ),
        role(
            namespace,
            "box-only",
            rule("run.sandpod.dev", "sandboxes/proxy", "create"),
            rule("sandpod.dev", "sandboxes/exec", "create") | {"resourceNames": ["box"]},
        ),
        *(binding(namespace, who, ref) for who, ref in roles.items()),
    )
    return shared_sandbox("box").wait()


def rule(group: str, resource: str, *verbs: str) -> Json:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def role(namespace: str, name: str, *rules: Json) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": namespace},
        "rules": list(rules),
    }


def binding(namespace: str, who: str, ref: Json) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": who, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **ref},
        "subjects": [{"kind": "ServiceAccount", "name": who, "namespace": namespace}],
    }


def user(box: Sandbox, who: str) -> str:
    return f"system:serviceaccount:{box.namespace}:{who}"


def execute(client: httpx.Client, box: Sandbox, *, name: str | None = None) -> httpx.Response:
    path = proxy_path(namespace=box.namespace, name=name or box.name, path="api/execute")
    return client.post(path, json={"command": "echo ran"})


def test_a_user_without_rights_is_told_which_one_is_missing(shared: Sandbox, api_as: Client) -> None:
    answer = execute(api_as(user(shared, "stranger")), shared)
    assert answer.status_code == 403
    assert answer.json()["kind"] == "Status"
    assert "sandboxes/proxy" in answer.json()["message"]


def test_the_door_alone_does_not_let_one_run_commands(shared: Sandbox, api_as: Client) -> None:
    answer = execute(api_as(user(shared, "knocker")), shared)
    body = answer.json()
    assert (answer.status_code, body["kind"], body["reason"], body["code"]) == (
        403,
        "Status",
        "Forbidden",
        403,
    )
    for word in ("create", "sandboxes/exec", "sandpod.dev", shared.namespace, user(shared, "knocker")):
        assert word in body["message"]


def test_a_right_to_look_is_not_a_right_to_run(shared: Sandbox, api_as: Client) -> None:
    client = api_as(user(shared, "reader"))
    path = proxy_path(namespace=shared.namespace, name=shared.name, path="api/version")
    assert client.get(path).status_code == 200
    assert execute(client, shared).status_code == 403


def test_a_role_that_names_one_sandbox_opens_that_one_alone(shared: Sandbox, api_as: Client) -> None:
    client = api_as(user(shared, "tenant"))
    assert execute(client, shared).json()["stdout"] == "ran\n"
    refused = execute(client, shared, name="another")
    assert refused.status_code == 403
    assert '"another"' in refused.json()["message"]


@pytest.mark.parametrize("who", ["editor", "owner"])
def test_the_clusters_edit_and_admin_roles_cover_sandboxes(shared: Sandbox, api_as: Client, who: str) -> None:
    answer = execute(api_as(user(shared, who)), shared)
    assert (answer.status_code, answer.json()["stdout"]) == (200, "ran\n")


def test_the_clusters_view_role_sees_sandboxes_and_cannot_run_anything(
    shared: Sandbox, api_as: Client
) -> None:
    name = f"--as={user(shared, 'viewer')}"
    assert "box" in kubectl("get", "sandboxes", "-n", shared.namespace, name).stdout
    assert execute(api_as(user(shared, "viewer")), shared).status_code == 403
    assert kubectl("delete", "sandbox", "box", "-n", shared.namespace, name, check=False).returncode != 0


def test_rights_end_at_the_namespace(shared: Sandbox, box: Sandbox, api_as: Client) -> None:
    assert execute(api_as(user(shared, "editor")), box).status_code == 403


def test_a_right_that_is_taken_away_is_gone_within_seconds(
    shared_sandbox: Sandboxes, shared: Sandbox, api_as: Client
) -> None:
    namespace, client = shared_sandbox.namespace, api_as(user(shared, "guest"))
    apply(binding(namespace, "guest", {"kind": "ClusterRole", "name": "edit"}))
    eventually(lambda: execute(client, shared).status_code == 200, timeout=15)
    kubectl("delete", "rolebinding", "guest", "-n", namespace)
    eventually(lambda: execute(client, shared).status_code == 403, timeout=15)


def test_the_command_line_says_what_is_missing(shared: Sandbox, tmp_path: Path) -> None:
    config: Json = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    kubectl("create", "serviceaccount", "knocker", "-n", shared.namespace)
    token = kubectl("create", "token", "knocker", "-n", shared.namespace).stdout.strip()
    config["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    done = run(*shared.command("true"), env={"KUBECONFIG": str(kubeconfig)}, check=False)
    assert done.returncode not in (0, 130)
    assert "sandboxes/exec" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("room", "right"),
    [
        ("operator", "get secrets"),
        ("operator", "create deployments.apps"),
        ("operator", "create pods --subresource=exec"),
        ("operator", "delete nodes"),
        ("operator", "create sandboxes.sandpod.dev"),
        ("gateway", "get secrets"),
        ("gateway", "list pods"),
        ("gateway", "create pods"),
        ("gateway", "patch sandboxes.sandpod.dev --subresource=status"),
    ],
)
def test_neither_room_may_do_what_is_not_its_work(room: str, right: str) -> None:
    who = f"--as=system:serviceaccount:sandpod-system:sandpod-{room}"
    asked = kubectl("auth", "can-i", *right.split(), "-n", "default", who, check=False)
    assert asked.stdout.strip() == "no", asked.stderr


def test_the_gateway_believes_no_identity_but_the_front_proxys(box: Sandbox) -> None:
    path = proxy_path(namespace=box.namespace, name=box.name, path="api/ping")
    claims = "-H 'X-Remote-User: admin' -H 'X-Remote-Group: system:masters'"
    url = f"https://sandpod-gateway.sandpod-system.svc{path}"
    assert box.output(f"curl -sk -o /dev/null -w '%{{http_code}}' {claims} {url}") in {"401", "403"}


def test_the_aggregated_api_is_trusted_by_a_certificate_of_its_own(api: httpx.Client) -> None:
    spec = api.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}").json()["spec"]
    assert spec["caBundle"]
    assert not spec.get("insecureSkipTLSVerify")
