"""The pod that waits in a pool: what a sandbox of the template would get, but owned by the pool, with a probe
that says when it can be claimed, and without anything that comes with the bind. Pure.
"""

from dataclasses import dataclass
from typing import Final

from sandpod_crds.models import SandboxPool, SandboxSpec
from sandpod_crds.models.containers import EnvVarSource
from sandpod_crds.names import (
    ANNOTATION_SPEC_HASH,
    APP_NAME,
    COMPONENT_SANDBOX,
    GROUP,
    LABEL_COMPONENT,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    LABEL_POOL_UID,
    LABEL_SANDBOX_UID,
    LABEL_VERSION,
    POOL_KIND,
)

from ..objects import Json, digest, owner_reference
from ..pods import ANNOTATION_POD_HASH, ANNOTATION_POOL, ANNOTATION_SHAPE
from ..resources.claim import build_claim, workspace_name
from ..resources.pod import READINESS, Frame, build_pod
from ..settings import Installation
from .wall import build_wall, network_id

# The kubelet's first answer is what a claim waits for when the pool runs dry; after it, to ask hundreds of
# waiting pods each second would take half a core. The kubelet never ends a pod for it: who starts too slowly
# is for us to judge.
PROBES: Final[Json] = {
    "startupProbe": {**READINESS, "periodSeconds": 1, "failureThreshold": 1_000_000},
    "readinessProbe": READINESS,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What one more warm pod takes. The volume comes first."""

    name: str
    pod: Json
    claim: Json | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Blueprint:
    """What a pool's pods are made from."""

    pool: SandboxPool
    # The template's.
    spec: SandboxSpec
    installation: Installation
    shape: str
    # What the pods are selected by in the NetworkPolicy
    network: str
    wall: Json

    def start(self, name: str) -> Start:
        spec, installation = self.spec, self.installation
        namespace = self.pool.metadata.namespace
        owner = owner_reference(kind=POOL_KIND, name=self.pool.metadata.name, uid=self.pool.metadata.uid)
        labels = pool_labels(self.pool, version=installation.version)
        claim = None
        if spec.workspace is not None:
            claim = build_claim(
                spec.workspace,
                name=workspace_name(name),
                namespace=namespace,
                labels=labels,
                # Nobody but we may take it away: whoever claims the pod has their files in it from then on.
                owner=None,
                settings=installation.settings,
            )
            claim["metadata"]["annotations"] = {ANNOTATION_POOL: self.pool.metadata.name}
        frame = Frame(
            name=name,
            namespace=namespace,
            owner=owner,
            labels=labels,
            network_uid=self.network,
            claim=workspace_name(name) if claim else None,
        )
        pod = build_pod(unbound(spec), frame=frame, installation=installation)
        metadata = pod["metadata"]
        for annotation in (ANNOTATION_SPEC_HASH, ANNOTATION_POD_HASH):
            metadata["annotations"].pop(annotation, None)
        metadata["annotations"] |= {ANNOTATION_SHAPE: self.shape, ANNOTATION_POOL: self.pool.metadata.name}
        pod["spec"]["containers"][0].update(PROBES)
        return Start(name=name, pod=pod, claim=claim)


def blueprint(pool: SandboxPool, *, spec: SandboxSpec, installation: Installation) -> Blueprint:
    """Raises BadPodTemplate."""
    labels = pool_labels(pool, version=installation.version)
    return Blueprint(
        pool=pool,
        spec=spec,
        installation=installation,
        shape=shape_of(spec, installation=installation) or "",
        network=network_id(pool.metadata.uid, spec.network),
        wall=build_wall(pool, network=spec.network, labels=labels, installation=installation),
    )


def unbound(spec: SandboxSpec) -> SandboxSpec:
    """The spec without what travels in the bind. What the pod says about itself, only the kubelet knows."""
    env = tuple(each for each in spec.env if each.value_from is not None and of_the_pod(each.value_from))
    return spec.model_copy(update={"env": env, "env_from": ()})


def of_the_pod(source: EnvVarSource) -> bool:
    return source.field_ref is not None or source.resource_field_ref is not None


def shape_of(spec: SandboxSpec, *, installation: Installation) -> str | None:
    """The same for specs that the same warm pod would do for; None when no warm pod would. Raises
    BadPodTemplate.
    """
    workspace = spec.workspace
    if workspace is not None and workspace.claim_name is not None:
        return None
    # Names and owners are a pod's own; everything else of the spec has gone into the pod.
    claim = workspace_name(APP_NAME) if workspace is not None else None
    frame = Frame(name=APP_NAME, namespace=APP_NAME, owner=Json(), labels={}, network_uid="", claim=claim)
    pod = build_pod(unbound(spec), frame=frame, installation=installation)
    labels, annotations = (
        {key: value for key, value in pod["metadata"][kind].items() if not key.startswith(f"{GROUP}/")}
        for kind in ("labels", "annotations")
    )
    volume = [str(workspace.size), workspace.storage_class_name] if workspace is not None else None
    return digest([labels, annotations, pod["spec"], volume])


def pool_labels(pool: SandboxPool, *, version: str) -> dict[str, str]:
    """Without an instance: by that, a sandbox of the pool's name would take a waiting volume for its own."""
    return {
        LABEL_NAME: APP_NAME,
        LABEL_COMPONENT: COMPONENT_SANDBOX,
        LABEL_MANAGED_BY: APP_NAME,
        LABEL_VERSION: version,
        LABEL_POOL_UID: pool.metadata.uid,
    }


def waiting_selector(pool_uid: str) -> str:
    """Of the pods that nobody has claimed, for the scale subresource."""
    return f"{LABEL_POOL_UID}={pool_uid},!{LABEL_SANDBOX_UID}"
