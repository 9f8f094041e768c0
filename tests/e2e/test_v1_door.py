"""The gateway's own address, as a program with a service account's token meets it; and what both doors have
beside the proxy.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.support import published_client
from tests.support.cluster import SYSTEM, Json, api_client, kubectl
from tests.support.port_forward import port_forward
from tests.support.sandboxes import Sandbox, Sandboxes, manifest
from tests.support.waiting import eventually

ROLES = {"viewer": "view", "editor": "edit", "stranger": ""}
# What a program does first; the others are run through a gateway on loopback.
SCENARIOS = (
    "a command runs in the default session",
    "a command streams",
    "a process is started, listed, read and killed",
    "files are written, read, listed, moved and deleted",
    "a terminal shows what is typed into it",
)


# A client for whoever has this token
Door = Callable[[str], httpx.Client]


@pytest.fixture(scope="module")
def people(shared_sandbox: Sandboxes) -> dict[str, str]:
    """Tokens of service accounts with the cluster's own roles in the namespace, or none."""
    namespace, tokens = shared_sandbox.namespace, dict[str, str]()
    for who, role in ROLES.items():
        kubectl("create", "serviceaccount", who, "-n", namespace)
        if role:
            account = f"--serviceaccount={namespace}:{who}"
            kubectl("create", "rolebinding", who, "-n", namespace, f"--clusterrole={role}", account)
        tokens[who] = kubectl("create", "token", who, "-n", namespace).stdout.strip()
    return tokens


@pytest.fixture(scope="module")
def shared(shared_sandbox: Sandboxes) -> Sandbox:
    return shared_sandbox("box").wait()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with port_forward("service/sandpod-gateway", "80", namespace=SYSTEM) as url:
        yield url


@pytest.fixture
def door(address: str, shared: Sandbox) -> Iterator[Door]:
    """Clients whose paths begin at the namespace's sandboxes, each with a token."""
    base = f"{address}/v1/namespaces/{shared.namespace}/sandboxes"
    with ExitStack() as opened:

        def enter(token: str) -> httpx.Client:
            headers = {"Authorization": f"Bearer {token}"}
            client = httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False)
            return opened.enter_context(client)

        yield enter


def allowed(client: httpx.Client, status: int = 200) -> None:
    """A role counts once the API server has seen it, and the gateway has forgotten what was before."""
    eventually(lambda: client.get("/box").status_code == status, timeout=15)


def test_who_may_what_is_the_same_as_at_the_api_server(door: Door, people: dict[str, str]) -> None:
    editor, viewer = door(people["editor"]), door(people["viewer"])
    allowed(editor)
    allowed(viewer)

    ran = editor.post("/box/proxy/api/execute", json={"command": "echo ran"})
    assert (ran.status_code, ran.json()["stdout"]) == (200, "ran\n")
    refused = viewer.post("/box/proxy/api/execute", json={"command": "echo ran"})
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
    assert "sandboxes/exec" in refused.json()["message"]
    assert viewer.delete("/box").status_code == 403
    assert viewer.get("/box/ports").status_code == 200
    assert viewer.post("/box/ports", json={"port": 8080}).status_code == 403
    assert viewer.post("/box/sleep").status_code == 403


def test_without_a_token_of_this_cluster_there_is_nothing(door: Door, people: dict[str, str]) -> None:
    assert door("e30.e30.e30").get("/box").status_code == 401
    assert door(people["stranger"]).get("/box").status_code == 403


def test_a_sandbox_is_made_watched_changed_and_deleted(
    door: Door, people: dict[str, str], shared: Sandbox
) -> None:
    client = door(people["editor"])
    allowed(client)
    # Not "": httpx would put a slash behind it.
    here = str(client.base_url).rstrip("/")

    wrong = client.post(
        here, json=manifest(name="made", namespace=shared.namespace, spec={"sleepAfter": "x"})
    )
    assert (wrong.status_code, wrong.json()["reason"]) == (422, "Invalid")
    made = client.post(
        here, json=manifest(name="made", namespace=shared.namespace, spec={"sleepAfter": "1h"})
    )
    assert made.status_code == 201
    watch = {"watch": "true", "fieldSelector": "metadata.name=made", "timeoutSeconds": "60"}
    with client.stream("GET", here, params=watch) as events:
        for line in events.iter_lines():
            status: Json = json.loads(line)["object"].get("status", {})
            if status.get("phase") == "Running":
                break
    patch = {"Content-Type": "application/merge-patch+json"}
    changed = client.patch("/made", content=b'{"spec":{"sleepAfter":"2h"}}', headers=patch)
    assert (changed.status_code, changed.json()["spec"]["sleepAfter"]) == (200, "2h")
    assert "made" in [item["metadata"]["name"] for item in client.get(here).json()["items"]]
    assert client.get("/made/log", params={"tailLines": "1"}).status_code == 200
    assert client.delete("/made").status_code == 200


@pytest.mark.parametrize("door_name", ["v1", "aggregated"])
def test_ports_come_and_go_at_both_doors(
    door: Door, people: dict[str, str], shared: Sandbox, door_name: str, request: pytest.FixtureRequest
) -> None:
    client = door(people["editor"])
    if door_name == "aggregated":
        base = f"/apis/run.sandpod.dev/v1alpha1/namespaces/{shared.namespace}/sandboxes"
        user = f"system:serviceaccount:{shared.namespace}:editor"
        client = api_client(**{"Impersonate-User": user})
        request.addfinalizer(client.close)
        client.base_url = client.base_url.join(base)
    eventually(lambda: client.get("/box/ports").status_code == 200, timeout=15)

    made = client.post("/box/ports", json={"port": 8080, "name": "web"})
    assert made.status_code == 201, made.text
    rotated = client.post("/box/ports/8080/rotate")
    assert rotated.json()["tokenVersion"] == made.json()["tokenVersion"] + 1
    (spec,) = shared.get()["spec"]["ports"]
    assert (spec["port"], spec["name"]) == (8080, "web")
    assert client.delete("/box/ports/8080").status_code == 200
    assert client.get("/box/ports").json()["items"] == []


def test_a_sandbox_is_put_to_sleep_and_the_next_request_wakes_it(
    door: Door, people: dict[str, str], shared: Sandbox
) -> None:
    client = door(people["editor"])
    allowed(client)
    assert client.post("/box/sleep").status_code == 202
    assert shared.falls_asleep()["sleepReason"] == "Requested"
    assert client.post("/box/sleep").status_code == 200
    ran = client.post("/box/proxy/api/execute", json={"command": "echo again"})
    assert (ran.status_code, ran.json()["stdout"]) == (200, "again\n")


def test_the_published_client_works_with_nothing_but_an_address_and_a_token(
    address: str, door: Door, people: dict[str, str], shared: Sandbox
) -> None:
    allowed(door(people["editor"]))
    url = f"{address}/v1/namespaces/{shared.namespace}/sandboxes/box/proxy"
    run = published_client.outcomes(url, workspace="/workspace", token=people["editor"])
    outcomes = asyncio.run(run)
    assert {name: outcomes[name] for name in SCENARIOS} == dict.fromkeys(SCENARIOS, "")
