"""A HorizontalPodAutoscaler on a pool: it counts the pool's pods, goes by a metric, says how many."""

from tests.support.cluster import Json, apply, get
from tests.support.metrics_server import METRIC, metrics_server
from tests.support.pools import pool, template
from tests.support.waiting import eventually

SLOW = 180


def autoscaler(namespace: str) -> Json:
    metric = {"metric": {"name": METRIC}, "target": {"type": "Value", "value": "1"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "sandpod.dev/v1alpha1", "kind": "SandboxPool", "name": "warm"},
        "minReplicas": 1,
        "maxReplicas": 4,
        "metrics": [{"type": "External", "external": metric}],
        # A real one waits for some minutes before it takes pods away.
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    metadata = {"name": "warm", "namespace": namespace}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": spec,
    }


def test_an_autoscaler_makes_a_pool_larger_and_smaller(namespace: str) -> None:
    def ready_pods() -> int:
        return get("sandboxpool", "warm", "-n", namespace).get("status", {}).get("readyReplicas", 0)

    template(namespace)
    pool(namespace, replicas=1)
    eventually(lambda: ready_pods() == 1, timeout=SLOW, every=0.3)
    # Three times of what it should be, so three pods for each ready one that the pool's selector finds.
    with metrics_server(namespace, value="3") as metrics:
        apply(autoscaler(namespace))
        eventually(lambda: ready_pods() >= 3, timeout=SLOW, every=0.5)
        metrics.say("100m")
        eventually(lambda: ready_pods() == 1, timeout=SLOW, every=0.5)

    status: Json = get("hpa", "warm", "-n", namespace)["status"]
    assert status["currentReplicas"] >= 1
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions["AbleToScale"] == "True"
    assert get("sandboxpool", "warm", "-n", namespace)["spec"]["replicas"] == 1
