"""Fixtures of the tests on a kind cluster, in which `make install` has put Sandpod."""

import itertools
import os
import subprocess
from collections.abc import Callable, Generator, Iterator

import httpx
import pytest
import yaml

from tests.support import cluster, diagnosis, two_nodes
from tests.support.ingress import Ingress, controller
from tests.support.sandboxes import Sandbox, Sandboxes

NUMBERS = itertools.count(1)


def make_namespace(node_name: str, **labels: str) -> str:
    """A namespace that no other run of the tests uses, named after its test."""
    words = node_name.removeprefix("test_").replace("_", "-")[:30].strip("-")
    name = f"e2e-{os.getpid()}-{next(NUMBERS)}-{words}".rstrip("-")
    labels = {"sandpod.dev/e2e": "true", **labels}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return name


def remove_namespace(name: str) -> None:
    """Without waiting: what is in it goes while the next tests run."""
    cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="session", autouse=True)
def installed() -> None:
    """Before the first test: the control plane that `make install` brought up is there."""
    cluster.control_plane_is_ready()


@pytest.fixture(scope="session")
def second_cluster(installed: None) -> Iterator[None]:
    """It is there, of two nodes, until the last test of the run."""
    with two_nodes.in_use():
        was_there = two_nodes.is_there()
        two_nodes.bring_up()
    yield
    if not was_there:
        with two_nodes.in_use():
            two_nodes.take_down()


@pytest.fixture(scope="module")
def two_nodes_in_use(second_cluster: None) -> Iterator[None]:
    """The module's tests work on that one."""
    with two_nodes.in_use():
        yield


@pytest.fixture(scope="session")
def ingress(installed: None) -> Iterator[Ingress]:
    """A real ingress controller, by which previews are opened."""
    with controller() as there:
        yield there


@pytest.fixture(scope="session")
def kubectl() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`kubectl(*args, input=None, check=True)`."""
    return cluster.kubectl


@pytest.fixture(scope="session")
def sandpod() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The CLI: `sandpod(*args, input=None, check=True)`."""
    return cluster.sandpod


@pytest.fixture(scope="session")
def images() -> dict[str, str]:
    """Images of others, as far as Sandpod can tell: `busybox` and `otheruser`, see hack/images/test."""
    return yaml.safe_load((cluster.ROOT / "build/test-images.yaml").read_text())


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for this test alone."""
    name = make_namespace(request.node.name.split("[")[0])
    yield name
    remove_namespace(name)


@pytest.fixture
def sandbox(namespace: str) -> Sandboxes:
    """Makes sandboxes in the test's namespace: `sandbox(image="…").wait()`."""
    return Sandboxes(namespace)


@pytest.fixture(scope="module")
def shared_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandboxes]:
    """Makes sandboxes in a namespace that the module's tests share."""
    name = make_namespace(str(request.node.path.stem))
    yield Sandboxes(name)
    remove_namespace(name)


@pytest.fixture(scope="session")
def box() -> Iterator[Sandbox]:
    """A ready sandbox of the default image, for tests that leave it as they found it."""
    name = make_namespace("box")
    yield Sandboxes(name)("box").wait()
    remove_namespace(name)


@pytest.fixture(scope="session")
def api() -> Iterator[httpx.Client]:
    """The API server over plain HTTP, as the administrator."""
    with cluster.api_client() as client:
        yield client


@pytest.fixture
def api_as() -> Iterator[Callable[[str], httpx.Client]]:
    """The API server as somebody else: `api_as("system:serviceaccount:team:bob")`."""
    clients: list[httpx.Client] = []

    def client(user: str) -> httpx.Client:
        clients.append(cluster.api_client(**{"Impersonate-User": user}))
        return clients[-1]

    yield client
    for each in clients:
        each.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to a failed test's report what the cluster has to say about its namespaces."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        values = item.funcargs.values()
        used = {v.namespace for v in values if isinstance(v, Sandbox | Sandboxes)}
        for namespace in sorted(used):
            report.sections.append((f"namespace {namespace}", diagnosis.of_namespace(namespace)))
        report.sections.append(("control plane", diagnosis.of_control_plane()))
    return report
