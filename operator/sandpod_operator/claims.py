"""What a PersistentVolumeClaim's object says, in the words of the lifecycle. Pure."""

from dataclasses import dataclass
from datetime import datetime

from sandpod_crds.names import LABEL_INSTANCE

from .objects import Json, controller, entries, is_left_by_a_pool, section, uid_of
from .times import parse_time


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimFacts:
    name: str
    uid: str
    owner: Json
    # The name of the sandbox that it was made for.
    sandbox: str
    # Made for a warm pod, and not yet given to the sandbox that has the pod now, if any has.
    of_pool: bool
    phase: str
    created_at: datetime
    deleted: bool
    size: str
    capacity: str
    storage_class: str
    # That its volume was made for, where the storage class waits for the first pod; empty: not told.
    node: str
    # What Kubernetes says about a growth under way.
    resizing: str


def claim_facts(claim: Json) -> ClaimFacts:
    metadata, spec, status = claim["metadata"], section(claim, "spec"), section(claim, "status")
    resizing = [c for c in entries(status, "conditions") if c.get("status") == "True"]
    requests = section(section(spec, "resources"), "requests")
    return ClaimFacts(
        name=metadata["name"],
        uid=uid_of(claim),
        owner=controller(metadata),
        sandbox=section(metadata, "labels").get(LABEL_INSTANCE, ""),
        of_pool=is_left_by_a_pool(claim),
        phase=status.get("phase", "Pending"),
        created_at=parse_time(metadata["creationTimestamp"]),
        deleted="deletionTimestamp" in metadata,
        size=str(requests.get("storage", "0")),
        capacity=str(section(status, "capacity").get("storage", "")),
        storage_class=spec.get("storageClassName") or "",
        node=section(metadata, "annotations").get("volume.kubernetes.io/selected-node", "")[:253],
        resizing="; ".join(f"{c['type']} {c.get('message', '')}".strip() for c in resizing)[:500],
    )
