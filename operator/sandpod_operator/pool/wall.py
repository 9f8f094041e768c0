"""The NetworkPolicies of a pool's pods: one for each network that its template has had, for as long as a pod
is behind it. Pure.

A sandbox that has claimed a pod stays behind the pool's wall, which a claim does not have to wait for. So the
wall must neither change with the template nor go with the pool: it has no owner, and the operator takes it
away when nobody is left behind it.
"""

from dataclasses import dataclass

from sandpod_crds.models import SandboxPool
from sandpod_crds.models.network import Network
from sandpod_crds.names import LABEL_NETWORK

from ..objects import Json, controller, digest, section
from ..pods import ANNOTATION_POOL
from ..refusals import is_labelled
from ..resources.network_policy import build_network_policy, pool_policy_name
from ..settings import Installation


@dataclass(frozen=True, kw_only=True, slots=True)
class Wall:
    """A NetworkPolicy of the pool, or of an earlier one of its name."""

    name: str
    uid: str
    # Somebody is behind it.
    used: bool


def network_id(pool_uid: str, network: Network | None) -> str:
    """What the pods of this pool and this network carry in LABEL_NETWORK."""
    return f"{pool_uid}.{digest((network or Network()).to_json())[:8]}"


def build_wall(
    pool: SandboxPool, *, network: Network | None, labels: dict[str, str], installation: Installation
) -> Json:
    behind = network_id(pool.metadata.uid, network)
    policy = build_network_policy(
        network,
        name=pool_policy_name(behind),
        namespace=pool.metadata.namespace,
        selects_uid=behind,
        labels={**labels, LABEL_NETWORK: behind},
        installation=installation,
    )
    policy["metadata"]["annotations"][ANNOTATION_POOL] = pool.metadata.name
    return policy


def not_the_wall(found: Json, wall: Json) -> str | None:
    """Why the NetworkPolicy that has this wall's name is another one; None when it is this one."""
    metadata = found["metadata"]
    owner = controller(metadata)
    name = f"the NetworkPolicy {wall['metadata']['name']}"
    if owner:
        return f"{name} belongs to the {owner.get('kind')} {owner.get('name')}."
    behind = wall["metadata"]["labels"][LABEL_NETWORK]
    if is_labelled(found) and section(metadata, "labels").get(LABEL_NETWORK) == behind:
        return None
    return f"{name} does not have the pool's labels."
