"""Whether a sandbox may take a pod of its pool, and what the pod's object becomes when it does. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from sandpod_crds.models import Sandbox, SandboxPool, SandboxSpec
from sandpod_crds.names import LABEL_NETWORK

from ..objects import Json, section
from ..observations import Key
from ..pods import ANNOTATION_CLAIMED_AT
from ..settings import Installation
from ..times import format_time, still_to_come
from .environment import GOOD_FOR, Environment, may_read, references, subject_of
from .pod import shape_of
from .wall import network_id


class Cold(StrEnum):
    """Why a sandbox of a pool starts cold."""

    EMPTY = "PoolEmpty"
    MISMATCH = "PoolMismatch"
    WITHHELD = "SecretsWithheld"
    UNUSABLE = "SecretsUnusable"
    REFUSED = "ClaimRefused"


SENTENCES = {
    Cold.EMPTY: "The pool {pool} has no pod that is ready; the sandbox starts cold. Raise the pool's "
    "spec.replicas if this happens often.",
    Cold.MISMATCH: "The sandbox needs another pod than those of the pool {pool}, because of fields of its "
    "own, and starts cold. What a warm pod can take are env, envFrom, processes, setup, ports, network, "
    "lifetime, sleepAfter and keepAlive.",
    Cold.WITHHELD: "The environment refers to Secrets or ConfigMaps, which the operator may not read in this "
    "namespace to hand them to a warm pod; the sandbox starts cold. Add the namespace to the chart's "
    "pools.readSecrets.",
    Cold.REFUSED: "The API server does not let the sandbox have a pod of the pool {pool}: {detail} The "
    "sandbox starts cold.",
    Cold.UNUSABLE: "A warm pod of the pool {pool} cannot get the environment: {detail} The sandbox starts "
    "cold.",
}


class Kind(NamedTuple):
    """Pods of one kind are as good as each other for a claim."""

    shape: str
    # What their wall selects them by.
    network: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """What the sandbox's pool has at this moment."""

    pool: SandboxPool
    # Of the pods that are made from the template now; None while nobody has looked.
    shape: str | None
    # Of the pods that could be claimed now.
    ready: frozenset[Kind] = frozenset()
    # A claim of this sandbox was sent, and nobody knows what came of it.
    unsure: bool = False
    # The API server's no to a claim of this sandbox
    refusal: str | None = None
    # So many have claimed a pod within the last second.
    claimed_lately: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """Take a pod of this pool and this kind for the sandbox, and make this of its metadata."""

    sandbox_uid: str
    pool: SandboxPool
    kind: Kind
    metadata: Json
    # The pod may be told later whose it is.
    may_follow: bool = False

    @property
    def pool_key(self) -> Key:
        return Key(self.pool.metadata.namespace, self.pool.metadata.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Read what the environment of this spec refers to."""

    spec: SandboxSpec
    subject: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ColdStart:
    why: Cold
    detail: str = ""

    def sentence(self, pool: str) -> str:
        return SENTENCES[self.why].format(pool=pool, detail=self.detail)


def judge(
    offer: Offer,
    *,
    sandbox: Sandbox,
    spec: SandboxSpec,
    environment: Environment | None,
    installation: Installation,
    now: datetime,
) -> Kind | Reading | ColdStart:
    """The kind of pod to take; or what has to be read before; or why to start cold. Raises BadPodTemplate."""
    if offer.refusal is not None:
        return ColdStart(why=Cold.REFUSED, detail=offer.refusal)
    shape = shape_of(spec, installation=installation)
    fitting = sorted(kind for kind in offer.ready if kind.shape == shape)
    if shape is None or not (fitting or offer.unsure or offer.shape in (shape, None)):
        return ColdStart(why=Cold.MISMATCH)
    if not (fitting or offer.unsure):
        return ColdStart(why=Cold.EMPTY)
    if references(spec):
        if not may_read(sandbox.metadata.namespace, allowed=installation.settings.pools.read_secrets):
            return ColdStart(why=Cold.WITHHELD)
        found = known_environment(environment, sandbox=sandbox, spec=spec, now=now)
        if isinstance(found, Reading):
            return found
        if found.problem is not None:
            return ColdStart(why=Cold.WITHHELD if found.withheld else Cold.UNUSABLE, detail=found.problem)
    # Behind a wall that is right for it, it need not have its own first.
    right = Kind(shape, network_id(offer.pool.metadata.uid, spec.network))
    return right if right in fitting or not fitting else fitting[0]


def known_environment(
    environment: Environment | None, *, sandbox: Sandbox, spec: SandboxSpec, now: datetime
) -> Environment | Reading:
    """What was read for this very sandbox and spec a moment ago, or what to read."""
    subject = subject_of(sandbox.metadata.uid, spec)
    if environment is None or environment.subject != subject:
        return Reading(spec=spec, subject=subject)
    good = still_to_come(environment.read_at + GOOD_FOR, now=now, within=GOOD_FOR) is not None
    return environment if good else Reading(spec=spec, subject=subject)


def claimed_metadata(wanted: Json, *, stays_behind_wall: bool, now: datetime) -> Json:
    """`wanted` is the pod that the sandbox would get without a pool."""
    metadata = wanted["metadata"]
    labels = section(metadata, "labels")
    if stays_behind_wall:
        labels = {name: value for name, value in labels.items() if name != LABEL_NETWORK}
    return {
        "labels": labels,
        "annotations": {**section(metadata, "annotations"), ANNOTATION_CLAIMED_AT: format_time(now)},
        "ownerReferences": metadata["ownerReferences"],
    }
