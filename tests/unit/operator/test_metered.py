"""Every write of the operator is counted, under the name that RBAC has for what it is about."""

from datetime import UTC, datetime

import pytest
from sandpod_crds import paths
from sandpod_crds.errors import NotFound
from sandpod_operator.bootstrap import installation_key
from sandpod_operator.certificates import Certificates
from sandpod_operator.kinds import INGRESS, NAMESPACE, SANDBOX
from sandpod_operator.metered import Metered, resource_of
from sandpod_operator.metrics import Metrics

from tests.support.operator_api import Api
from tests.support.operator_objects import INSTALLATION

TODAY = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
SERVICE = paths.api_services("v1alpha1.run.sandpod.dev")

RESOURCES = {
    paths.pods("team"): "pods",
    paths.pods("team", "box"): "pods",
    paths.sandboxes("team", "box", "status"): "sandboxes/status",
    INGRESS.path("system", "box-8080"): "ingresses",
    SANDBOX.path("namespaces", "namespaces"): "sandboxes",
    NAMESPACE.path(None, "team"): "namespaces",
    SERVICE: "apiservices",
}


@pytest.mark.parametrize("path", RESOURCES)
def test_a_path_tells_what_is_written(path: str) -> None:
    assert resource_of(path) == RESOURCES[path]


async def test_writes_are_counted_also_when_they_fail_and_reads_are_not() -> None:
    api, metrics = Api(now=lambda: TODAY), Metrics()
    cluster = Metered(api, metrics=metrics)
    await cluster.create(paths.pods("team"), {"kind": "Pod", "metadata": {"name": "box"}})
    await cluster.patch(paths.pods("team", "box"), {"metadata": {"labels": {"a": "b"}}})
    await cluster.delete(paths.pods("team", "box"))
    with pytest.raises(NotFound):
        await cluster.delete(paths.pods("team", "box"))
    with pytest.raises(NotFound):
        await cluster.get(paths.pods("team", "box"))
    await cluster.list(paths.pods("team"))

    verbs = ("create", "patch", "delete")
    found = {verb: metrics.api_writes.value(verb=verb, resource="pods") for verb in verbs}
    assert found == {"create": 1, "patch": 1, "delete": 2}
    assert metrics.api_writes.value() == 4


async def test_what_an_installation_needs_is_counted_as_well() -> None:
    api, metrics = Api(now=lambda: TODAY), Metrics()
    api.put(SERVICE, {"metadata": {"name": "v1alpha1.run.sandpod.dev"}, "spec": {}})
    cluster = Metered(api, metrics=metrics)
    await installation_key(cluster, INSTALLATION.settings)
    await Certificates(
        cluster=cluster, settings=INSTALLATION.settings, metrics=metrics, now=lambda: datetime.now(UTC)
    ).ensure()

    assert metrics.api_writes.value(verb="create", resource="secrets") == 2
    assert metrics.api_writes.value(verb="patch", resource="apiservices") == 1
