"""What benchmarks on the cluster do with sandboxes and raw pods: make, await, delete. The raw pod is the
yardstick: a sandbox's own image, security context, resources and volumes, with `sleep` for the runtime.
"""

import time
from collections.abc import Mapping

from tests.bench.api import Api, Json, RefusedError, Watch, condition

NAMESPACE = "sandpod-bench"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
OURS = f"/apis/sandpod.dev/v1alpha1/namespaces/{NAMESPACE}"
SANDBOXES = f"{OURS}/sandboxes"
RUN = f"/apis/run.sandpod.dev/v1alpha1/namespaces/{NAMESPACE}/sandboxes"
# Hundreds fit on a node of two cores only if they ask for next to nothing: with more CPU than this, 210 would
# not, beside Kubernetes' own pods and ours.
SMALL: Json = {"resources": {"requests": {"cpu": "3m", "memory": "16Mi", "ephemeral-storage": "16Mi"}}}
# What raw pods are watched by, where others would be too much to read.
RAW: Json = {"bench": "raw"}
RAW_SELECTOR = ",".join(f"{name}={value}" for name, value in RAW.items())


def manifest(name: str, spec: Json | None = None, *, kind: str = "Sandbox") -> Json:
    return {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec or {},
    }


def execute(api: Api, name: str, command: str = "true") -> None:
    """Through the API server."""
    api.request("POST", f"{RUN}/{name}/proxy/api/execute", {"command": command})


def raw_template(api: Api, pods: Watch, sandboxes: Watch) -> Json:
    """The spec of a raw pod like the default sandbox's."""
    name = "template"
    api.request("POST", SANDBOXES, manifest(name))
    ready(sandboxes, name)
    spec: Json = api.request("GET", f"{PODS}/{name}")["spec"]
    delete(api, pods, f"{SANDBOXES}/{name}", name)
    assert not spec.get("volumes"), "a sandbox of the default image has no volume"
    container = spec["containers"][0]
    kept: Mapping[str, Json] = {k: container[k] for k in ("name", "image", "resources", "securityContext")}
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": spec["securityContext"],
        "containers": [{**kept, "command": ["sleep", "3600"]}],
    }


def with_workspace(template: Json, claim: str) -> Json:
    """The same pod with the volume that a workspace is."""
    volume = {"name": "workspace", "persistentVolumeClaim": {"claimName": claim}}
    mounts = [{"name": "workspace", "mountPath": "/workspace"}]
    containers = [{**each, "volumeMounts": mounts} for each in template["containers"]]
    return {**template, "volumes": [volume], "containers": containers}


def raw_pod(api: Api, pods: Watch, template: Json, name: str) -> float:
    """Seconds from create to Ready."""
    began = time.perf_counter()
    metadata: Json = {"name": name, "labels": RAW}
    api.request("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template})
    seconds = ready(pods, name) - began
    delete(api, pods, f"{PODS}/{name}", name)
    return seconds


def ready(watch: Watch, name: str) -> float:
    """The moment at which the object of that name was first seen to be Ready."""
    return next(moment for moment, event in watch.events(name) if condition(event["object"], "Ready"))


def delete(api: Api, pods: Watch, path: str, name: str) -> None:
    """Waits until the pod is gone, so that its end does not disturb the next start."""
    api.request("DELETE", path)
    next(moment for moment, event in pods.events(name) if event["type"] == "DELETED")


def prepare(api: Api) -> None:
    """A namespace of our own."""
    try:
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    except RefusedError as refused:
        if refused.status != 409:
            raise


def clean_up(api: Api) -> None:
    """Removes the namespace with all that is left in it."""
    api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
