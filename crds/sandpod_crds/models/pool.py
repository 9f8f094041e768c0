"""`SandboxPool`: warm pods of a template, waiting for a sandbox to claim one."""

from typing import Annotated

from ..markers import Bounds, Default, Model, Rule
from ..names import API_VERSION, POOL_KIND
from .meta import Conditions, Metadata
from .parts import Reference
from .values import Duration

_MinReadyAge = Annotated[float, Duration(shortest=0, longest=24 * 3600, sentence="from 0s to 24h")]


class SandboxPoolSpec(Model):
    replicas: Annotated[
        int,
        Default(1),
        Rule("self >= 0 && self <= 1000", "write how many pods to keep warm, from 0 to 1000"),
    ] = 1
    """How many unclaimed pods to keep warm, from 0 to 1000. kubectl scale and an HPA set it. Default 1."""
    template_ref: Reference
    """The SandboxTemplate that the warm pods are made from. When it changes they are replaced bit by bit;
    claimed ones are left alone."""
    min_ready_age: _MinReadyAge = 0.0
    """How long a pod must have been ready before it can be claimed, for programs that need to warm up. A
    duration such as 5s, or whole seconds. Default 0."""


class SandboxPoolStatus(Model):
    replicas: int | None = None
    """Unclaimed pods that exist, ready or not."""
    ready_replicas: int | None = None
    """Unclaimed pods of the template as it is now that a sandbox could claim."""
    pending_replicas: int | None = None
    """Unclaimed pods that are still starting."""
    updated_replicas: int | None = None
    """Unclaimed pods of the template as it is now."""
    claimed: int | None = None
    """Running sandboxes that came out of this pool."""
    selector: Annotated[str, Bounds(longest=1024)] | None = None
    """Label selector of the unclaimed pods, for the scale subresource."""
    conditions: Conditions = ()
    """Ready: as many warm pods as asked for. TemplateFound: templateRef leads to a template that makes a pod.
    SecretsReadable: the operator may read what the template's environment refers to, if it does."""
    observed_generation: int | None = None
    """The metadata.generation that this status is about; when older than the object's, it is out of date."""
    template_hash: str | None = None
    """Hash of what a sandbox's pod has to be like to be one of those that are made now."""
    lending: Annotated[str, Bounds(longest=64)] | None = None
    """In a burst of claims: the operator's mark, while pods may be a sandbox's that do not say so yet."""


class SandboxPool(Model):
    """Warm pods of a template: a Sandbox that names the pool in poolRef gets one of them and is Ready at
    once."""

    api_version: str = API_VERSION
    kind: str = POOL_KIND
    metadata: Metadata
    spec: SandboxPoolSpec
    """How many warm pods, and of what."""
    status: SandboxPoolStatus = SandboxPoolStatus()
    """What the pool is right now, written by Sandpod only."""
