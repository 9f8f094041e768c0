"""The pod of a sandbox. What it takes to be bound, owned and contained is set last, over anything that a
podTemplate says.
"""

import hashlib
import json
from typing import Any

from sandpod_crds.keys import bind_token, sha256_hex
from sandpod_crds.models import PodTemplate, Sandbox, SandboxSpec
from sandpod_crds.names import (
    ANNOTATION_SPEC_HASH,
    API_VERSION,
    BIND_SHA256_ENV,
    CONTROL_PORT,
    CONTROL_PORT_NAME,
    LABEL_VERSION,
    RUNTIME_COMMAND,
    SANDBOX_CONTAINER,
    SANDBOX_KIND,
    child_labels,
)

from ..objects import Json, entries, section
from ..pods import ANNOTATION_POD_HASH
from ..settings import Installation
from .confine import confine, refuse_ways_out
from .merge import merge, overridden
from .requirements import requirements
from .runtime_mount import add_runtime, has_runtime

GRACE_SECONDS = 30
# With these a pod leaves its own walls: the control port would be the node's, or other processes in reach.
HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace")
# The part of the spec that a pod, or its bind, is made from. A change needs a new pod.
SHAPING = frozenset(
    {
        "image", "image_pull_policy", "resources", "env", "env_from", "runtime_class_name",
        "service_account_name", "node_selector", "tolerations", "isolation", "user", "pod_template",
    }
)  # fmt: skip


def build_pod(sandbox: Sandbox, *, installation: Installation) -> Json:
    """Raises BadPodTemplate."""
    spec, template = sandbox.spec, sandbox.spec.pod_template
    merged = merge(_base(spec, installation=installation), (template and template.spec) or {})
    _seal(merged, sandbox=sandbox, installation=installation)
    annotations = dict(template.metadata.annotations) if template and template.metadata else {}
    labels = dict(template.metadata.labels) if template and template.metadata else {}
    name, uid = sandbox.metadata.name, sandbox.metadata.uid
    labels |= child_labels(sandbox_name=name, sandbox_uid=uid, version=installation.version)
    annotations[ANNOTATION_SPEC_HASH] = spec_hash(spec)
    # Without the version: an operator's upgrade must not look like another pod.
    hashed_labels = {key: value for key, value in labels.items() if key != LABEL_VERSION}
    annotations[ANNOTATION_POD_HASH] = _hash([hashed_labels, annotations, merged])
    metadata: Json = {
        "name": name,
        "namespace": sandbox.metadata.namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": SANDBOX_KIND,
                "name": name,
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": merged}


def overridden_fields(template: PodTemplate | None, pod: Json) -> list[str]:
    """What the podTemplate asks for and the pod does not have, because we set it otherwise."""
    wanted = (template and template.spec) or {}
    return [f"podTemplate.spec.{place}" for place in overridden(wanted, pod["spec"])]


def spec_hash(spec: SandboxSpec) -> str:
    """Of the spec as far as a change of it takes a new pod to work."""
    # The defaults are left out: to write one down changes nothing.
    return _hash(spec.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=set(SHAPING)))


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
            "serviceAccountName": spec.service_account_name,
            "nodeSelector": dict(spec.node_selector),
            "tolerations": [toleration.to_json() for toleration in spec.tolerations],
        }
    )


def _seal(spec: Json, *, sandbox: Sandbox, installation: Installation) -> None:
    """What the podTemplate may not change."""
    strict = sandbox.spec.isolation == "Strict"
    user = user_id(sandbox.spec, installation=installation)
    token = bind_token(
        key=installation.key, namespace=sandbox.metadata.namespace, pod_name=sandbox.metadata.name
    )
    containers = {each["name"]: dict(each) for each in entries(spec, "containers")}
    container = containers.pop(SANDBOX_CONTAINER, Json(name=SANDBOX_CONTAINER))
    container.pop("args", None)
    container["image"] = sandbox_image(sandbox.spec, installation=installation)
    container["command"] = [RUNTIME_COMMAND]
    container["env"] = [
        *(each for each in entries(container, "env") if each["name"] != BIND_SHA256_ENV),
        {"name": BIND_SHA256_ENV, "value": sha256_hex(token)},
    ]
    container["ports"] = [
        *(each for each in entries(container, "ports") if each["containerPort"] != CONTROL_PORT),
        {"name": CONTROL_PORT_NAME, "containerPort": CONTROL_PORT},
    ]
    container = confine(container, root=user == 0)
    for field in HOST_FIELDS:
        spec.pop(field, None)
    if strict:
        spec["hostUsers"] = False
    spec["restartPolicy"] = "Never"
    spec["automountServiceAccountToken"] = False
    spec["securityContext"] = {
        **section(spec, "securityContext"),
        "runAsNonRoot": user != 0,
        "runAsUser": user,
        "runAsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    spec["containers"] = [container, *(confine(each) for each in containers.values())]
    if spec.get("initContainers"):
        spec["initContainers"] = [confine(each) for each in entries(spec, "initContainers")]
    refuse_ways_out(spec)
    if not has_runtime(container["image"], installation.settings):
        add_runtime(spec, container, installation=installation)


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is False or value}


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
