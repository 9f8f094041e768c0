"""Two gateways: what one of them knows the other does too, and neither is missed while it is replaced."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support import cluster
from tests.support.cluster import RELEASE, SYSTEM, kubectl
from tests.support.ingress import Ingress
from tests.support.port_forward import port_forward
from tests.support.preview_boxes import PORT, opened, program_in, url_of
from tests.support.sandboxes import Sandboxes
from tests.support.waiting import eventually

GATEWAY = f"deployment/{RELEASE}-gateway"
# Of each kind; each waits for an answer before it asks again, so that the machine is not what fails.
CLIENTS = 4
PAUSE = 0.02


def pods() -> set[str]:
    component = "app.kubernetes.io/component=gateway"
    return set(kubectl("-n", SYSTEM, "get", "pods", "-l", component, "-o", "name").stdout.split())


@pytest.fixture
def two_gateways() -> Iterator[None]:
    kubectl("-n", SYSTEM, "scale", GATEWAY, "--replicas=2")
    kubectl("-n", SYSTEM, "rollout", "status", GATEWAY, "--timeout=90s")
    yield
    kubectl("-n", SYSTEM, "scale", GATEWAY, "--replicas=1")
    kubectl("-n", SYSTEM, "rollout", "status", GATEWAY, "--timeout=90s")


def test_a_port_that_is_taken_back_is_dead_at_once_at_each_of_them(
    two_gateways: None, sandbox: Sandboxes, api: httpx.Client
) -> None:
    box = sandbox("box", keepAlive=True, ports=[{"port": PORT}]).wait()
    program_in(api, box)
    host = url_of(box).removeprefix("http://").rstrip("/")
    with contextlib.ExitStack() as stack:
        doors = [stack.enter_context(port_forward(pod, "8080", namespace=SYSTEM)) for pod in pods()]
        assert len(doors) == 2

        def codes() -> set[int]:
            # A connection for each: what is under way when the port is taken back is cut.
            answers = [httpx.get(door, headers={"Host": host}, trust_env=False, timeout=30) for door in doors]
            return {answer.status_code for answer in answers}

        eventually(lambda: codes() == {200})
        # From now on HAProxy leads there by itself, at both.
        for _ in range(5):
            assert codes() == {200}

        cluster.sandpod("unexpose", box.name, str(PORT), "-n", box.namespace)

        eventually(lambda: codes() == {404}, timeout=2)


def test_replacing_the_gateways_pods_under_load_loses_no_request(
    two_gateways: None, sandbox: Sandboxes, api: httpx.Client, ingress: Ingress
) -> None:
    box = sandbox("box", keepAlive=True, ports=[{"port": PORT}]).wait()
    program_in(api, box)
    preview = opened(ingress, box)
    path = cluster.proxy_path(namespace=box.namespace, name=box.name, path="api/execute")
    command = {"command": "echo ran"}
    kinds: dict[str, tuple[Callable[[], httpx.Client], Callable[[httpx.Client], httpx.Response], str]] = {
        "GET": (preview.client, lambda client: client.get("/"), '"head"'),
        "POST": (preview.client, lambda client: client.post("/", content=b"x" * 1000), '"size": 1000'),
        "API": (cluster.api_client, lambda client: client.post(path, json=command), "ran"),
    }
    over, lost, answered = threading.Event(), list[str](), dict.fromkeys(kinds, 0)

    def keep_asking(kind: str) -> None:
        connect, ask, wanted = kinds[kind]
        with connect() as client:
            while not over.is_set():
                try:
                    answer = ask(client)
                except httpx.HTTPError as error:
                    lost.append(f"{kind}: {error!r}")
                else:
                    if answer.status_code != 200 or wanted not in answer.text:
                        lost.append(f"{kind}: {answer.status_code} {answer.text[:200]}")
                answered[kind] += 1
                time.sleep(PAUSE)

    with ThreadPoolExecutor(CLIENTS * len(kinds)) as threads:
        asking = [threads.submit(keep_asking, kind) for kind in kinds for _ in range(CLIENTS)]
        try:
            before = pods()
            kubectl("-n", SYSTEM, "rollout", "restart", GATEWAY)
            kubectl("-n", SYSTEM, "rollout", "status", GATEWAY, "--timeout=120s", timeout=150)
            # Those of before end what is under way.
            eventually(lambda: not before & pods(), timeout=60)
        finally:
            over.set()
        for each in asking:
            each.result()

    assert lost == []
    assert min(answered.values()) > 100, answered
