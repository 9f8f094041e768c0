"""Templates and pools on the cluster: `python`, and `warm` of it, unless they are called otherwise."""

from tests.support.cluster import Json, apply, get
from tests.support.waiting import eventually

_SMALL: Json = {"requests": {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "16Mi"}}


def template(namespace: str, name: str = "python", **spec: object) -> None:
    apply(_ours("SandboxTemplate", name, namespace, {"resources": _SMALL, **spec}))


def pool(namespace: str, name: str = "warm", **spec: object) -> None:
    apply(_ours("SandboxPool", name, namespace, {"templateRef": {"name": "python"}, **spec}))


def _ours(kind: str, name: str, namespace: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "sandpod.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def ask_at_once(namespace: str, names: list[str]) -> None:
    """A sandbox of each name, with a pod from the pool."""
    apply(*(_ours("Sandbox", name, namespace, {"poolRef": {"name": "warm"}}) for name in names))


def filled(namespace: str, count: int, name: str = "warm") -> Json:
    """The pool's status, once so many of its pods are ready."""

    def ready() -> Json:
        status: Json = get("sandboxpool", name, "-n", namespace).get("status", {})
        assert status.get("readyReplicas") == count, status
        return status

    return eventually(ready, timeout=120, every=0.2)


def lends(namespace: str) -> bool:
    """It has pods that do not say yet whose they are."""
    return "lending" in get("sandboxpool", "warm", "-n", namespace)["status"]
