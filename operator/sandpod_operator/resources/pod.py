"""The pod of a sandbox. What it takes to be bound, owned and contained is set last, over anything that a
podTemplate says.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sandpod_crds.keys import bind_token, sha256_hex
from sandpod_crds.models import PodTemplate, SandboxSpec
from sandpod_crds.names import (
    ANNOTATION_BIND_NONCE,
    ANNOTATION_SPEC_HASH,
    ANNOTATION_TEMPLATE,
    BIND_SHA256_ENV,
    CONTROL_PORT,
    CONTROL_PORT_NAME,
    GROUP,
    LABEL_NETWORK,
    LABEL_PROTECTED,
    LABEL_VERSION,
    READY_PATH,
    RUNTIME_COMMAND,
    SANDBOX_CONTAINER,
    STATE_DIRECTORY,
    WORKSPACE_DIRECTORY,
)

from ..objects import Json, digest, entries, section
from ..pods import ANNOTATION_POD_HASH, WORKSPACE_VOLUME
from ..settings import Installation
from .confine import confine, refuse_ways_out, runtime_arguments
from .merge import merge, overridden
from .requirements import requirements
from .runtime_mount import add_runtime, has_runtime, mount

GRACE_SECONDS = 30
# What ends in a minute has ended. Until then nothing else starts, and the node cannot be cleared.
MOST_GRACE_SECONDS = 60
READINESS: Final[Json] = {
    "httpGet": {"path": READY_PATH, "port": CONTROL_PORT},
    "periodSeconds": 10,
    "timeoutSeconds": 5,
    "failureThreshold": 2,
}
# With these a pod leaves its own walls: the control port would be the node's, or other processes in reach.
HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace")
# The part of the spec that a pod, or its bind, is made from. A change needs a new pod.
SHAPING = frozenset(
    {
        "image", "image_pull_policy", "resources", "env", "env_from", "runtime_class_name",
        "priority_class_name", "service_account_name", "node_selector", "tolerations", "isolation", "user",
        "pod_template", "processes", "setup",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """What a pod has besides the spec that it is made from."""

    name: str
    namespace: str
    owner: Json
    labels: dict[str, str]
    # What NetworkPolicies select it by.
    network_uid: str
    # The PersistentVolumeClaim at /workspace.
    claim: str | None = None
    # The template that the spec comes from, as far as it works on a running sandbox.
    template: Json | None = None
    # The drain of its node waits for it.
    protected: bool = False


def build_pod(spec: SandboxSpec, *, frame: Frame, installation: Installation) -> Json:
    """Raises BadPodTemplate."""
    template = spec.pod_template
    merged = merge(_base(spec, installation=installation), (template and template.spec) or {})
    _seal(merged, spec=spec, frame=frame, installation=installation)
    theirs = template.metadata if template else None
    annotations = _not_ours(theirs.annotations) if theirs else {}
    labels = _not_ours(theirs.labels) if theirs else {}
    labels |= frame.labels
    annotations[ANNOTATION_SPEC_HASH] = spec_hash(spec)
    # Without the version: an operator's upgrade must not look like another pod.
    hashed_labels = {key: value for key, value in labels.items() if key != LABEL_VERSION}
    annotations[ANNOTATION_POD_HASH] = digest([hashed_labels, annotations, merged])
    # These change while a pod is starting, and are no reason to have another.
    labels[LABEL_NETWORK] = frame.network_uid
    if frame.protected:
        labels[LABEL_PROTECTED] = "true"
    if frame.template is not None:
        annotations[ANNOTATION_TEMPLATE] = json.dumps(frame.template, sort_keys=True)
    metadata: Json = {
        "name": frame.name,
        "namespace": frame.namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [frame.owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": merged}


def with_bind_nonce(pod: Json, nonce: str, *, key: bytes) -> Json:
    """For one pod of this name: what binds it has bound none before it, and will bind none after it. Not part
    of what pods are compared by.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    token = bind_token(key=key, namespace=metadata["namespace"], pod_name=metadata["name"], nonce=nonce)
    container, *others = entries(spec, "containers")
    env = [each for each in entries(container, "env") if each["name"] != BIND_SHA256_ENV]
    env.append({"name": BIND_SHA256_ENV, "value": sha256_hex(token)})
    annotations = {**metadata["annotations"], ANNOTATION_BIND_NONCE: nonce}
    return {
        **pod,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**spec, "containers": [{**container, "env": env}, *others]},
    }


def overridden_fields(template: PodTemplate | None, pod: Json) -> list[str]:
    """What the podTemplate asks for and the pod does not have, because we set it otherwise."""
    wanted = (template and template.spec) or {}
    return [f"podTemplate.spec.{place}" for place in overridden(wanted, pod["spec"])]


def spec_hash(spec: SandboxSpec) -> str:
    """Of the spec as far as a change of it takes a new pod to work."""
    # The defaults are left out: to write one down changes nothing.
    shape = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=set(SHAPING))
    if spec.workspace is not None:
        # A volume can grow under a running pod, but not come or go.
        shape["workspace"] = spec.workspace.claim_name or "own"
    return digest(shape)


def bind_env(spec: SandboxSpec) -> dict[str, str]:
    """The variables that travel in the bind. Those that only the kubelet can resolve are in the pod."""
    return {variable.name: variable.value or "" for variable in spec.env if variable.value_from is None}


def sandbox_image(spec: SandboxSpec, *, installation: Installation) -> str:
    return spec.image or installation.settings.sandbox_image


def user_id(spec: SandboxSpec, *, installation: Installation) -> int:
    # Root without a user namespace is not for us to give, even if the rule of the CRD was got round.
    if spec.user == "root":
        return 0 if spec.isolation == "Strict" else installation.settings.defaults.user
    return spec.user or installation.settings.defaults.user


def _not_ours(theirs: Mapping[str, str]) -> dict[str, str]:
    # The CRD refuses our keys too, but not in what was there before it did. We believe what they say.
    return {key: value for key, value in theirs.items() if not key.startswith(f"{GROUP}/")}


def _base(spec: SandboxSpec, *, installation: Installation) -> Json:
    """What the podTemplate may change."""
    settings = installation.settings
    container: Json = {
        "name": SANDBOX_CONTAINER,
        "resources": requirements(spec.resources, defaults=settings.defaults.resources),
        "env": [variable.to_json() for variable in spec.env if variable.value_from is not None],
        "envFrom": [source.to_json() for source in spec.env_from],
        "imagePullPolicy": spec.image_pull_policy or (None if spec.image else settings.image_pull_policy),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return _given(
        {
            "containers": [_given(container)],
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
            "runtimeClassName": spec.runtime_class_name,
            "priorityClassName": spec.priority_class_name or settings.priority_class_name,
            "serviceAccountName": spec.service_account_name,
            "nodeSelector": dict(spec.node_selector),
            "tolerations": [toleration.to_json() for toleration in spec.tolerations],
        }
    )


def _seal(merged: Json, *, spec: SandboxSpec, frame: Frame, installation: Installation) -> None:
    """What the podTemplate may not change."""
    strict = spec.isolation == "Strict"
    user = user_id(spec, installation=installation)
    token = bind_token(key=installation.key, namespace=frame.namespace, pod_name=frame.name)
    containers = {each["name"]: dict(each) for each in entries(merged, "containers")}
    container = containers.pop(SANDBOX_CONTAINER, Json(name=SANDBOX_CONTAINER))
    container.pop("args", None)
    container["image"] = sandbox_image(spec, installation=installation)
    container["command"] = [
        RUNTIME_COMMAND,
        *(["--state", STATE_DIRECTORY] if frame.claim else []),
        *(runtime_arguments(user) if strict else []),
    ]
    container["env"] = [
        *(each for each in entries(container, "env") if each["name"] != BIND_SHA256_ENV),
        {"name": BIND_SHA256_ENV, "value": sha256_hex(token)},
    ]
    container["ports"] = [
        *(each for each in entries(container, "ports") if each["containerPort"] != CONTROL_PORT),
        {"name": CONTROL_PORT_NAME, "containerPort": CONTROL_PORT},
    ]
    merged["containers"] = [container, *containers.values()]
    refuse_ways_out(merged)
    container = confine(container, strict=user if strict else None)
    for field in HOST_FIELDS:
        merged.pop(field, None)
    if strict:
        merged["hostUsers"] = False
    merged["restartPolicy"] = "Never"
    grace = merged.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace > MOST_GRACE_SECONDS:
        merged["terminationGracePeriodSeconds"] = MOST_GRACE_SECONDS
    merged["automountServiceAccountToken"] = False
    merged["securityContext"] = {
        **section(merged, "securityContext"),
        "runAsNonRoot": user != 0,
        "runAsUser": user,
        "runAsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    merged["containers"] = [container, *(confine(each) for each in containers.values())]
    if merged.get("initContainers"):
        merged["initContainers"] = [confine(each) for each in entries(merged, "initContainers")]
    if frame.claim is not None:
        _mount_workspace(merged, container, claim=frame.claim, group=user)
    if not has_runtime(container["image"], installation.settings):
        add_runtime(merged, container, installation=installation)


def _mount_workspace(merged: Json, container: Json, *, claim: str, group: int) -> None:
    volume = {"name": WORKSPACE_VOLUME, "persistentVolumeClaim": {"claimName": claim}}
    mount(merged, container, volume=volume, at={"mountPath": WORKSPACE_DIRECTORY})
    # The kubelet notices a full disk without anybody asking, and the watch brings it.
    container["readinessProbe"] = READINESS
    # A fresh volume belongs to root, and a large one must not be walked through at every start.
    merged["securityContext"] |= {"fsGroup": group, "fsGroupChangePolicy": "OnRootMismatch"}


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is False or value}
