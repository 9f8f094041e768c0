"""What a pod's object says, in the words of the lifecycle: what keeps it from starting, whether its runtime's
container runs, how it ended. Pure.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from sandpod_crds.names import (
    ANNOTATION_BIND_NONCE,
    ANNOTATION_SPEC_HASH,
    ANNOTATION_TEMPLATE,
    GROUP,
    LABEL_NETWORK,
    LABEL_POOL_UID,
    LABEL_PROTECTED,
    SANDBOX_KIND,
)

from .last_words import LastWords, read_last_words
from .objects import Json, controller, entries, owner_uid, section, uid_of
from .pod_ends import CLEAN_EXITS, Trouble, end_of, in_one_line, obstacle, sandbox_container, state_of
from .times import parse_time

# The name of the volume in the pod
WORKSPACE_VOLUME = "sandpod-workspace"
ANNOTATION_POD_HASH = f"{GROUP}/pod-hash"
# The name of the SandboxPool, on everything that was made for it
ANNOTATION_POOL = f"{GROUP}/pool"
# What a sandbox's pod has to be like to be this one, on every pod that a pool has made
ANNOTATION_SHAPE = f"{GROUP}/shape"
# On a pod that a sandbox has taken from its pool
ANNOTATION_CLAIMED_AT = f"{GROUP}/claimed-at"
# Why a sandbox of a pool did not get a warm pod, on the one that it got
ANNOTATION_COLD = f"{GROUP}/cold-because"


@dataclass(frozen=True, kw_only=True, slots=True)
class PodFacts:
    name: str
    uid: str
    # It has a node since then, or has waited for one since.
    under_way_since: datetime
    owner_uid: str | None
    # The owner is a sandbox of this name, the present one or one that is gone.
    of_sandbox: bool
    pod_hash: str
    spec_hash: str
    bind_nonce: str
    # Of the template that it was made from: the part that works on a running sandbox. None without one.
    template: Json | None
    # The SandboxPool that made it.
    pool: str | None
    pool_uid: str | None
    shape: str
    # When its sandbox took it from the pool
    claimed_at: datetime | None
    # Why its sandbox, which has a pool, could not do so
    cold: str
    # What NetworkPolicies select it by.
    network_uid: str
    # The drain of its node waits for it.
    protected: bool
    ip: str | None
    node: str | None
    # The moment from which the pod has no right to exist any more.
    deleted_at: datetime | None
    deleted_by: str
    # What its deletion gave it until then.
    grace: timedelta
    # Deleted to free its node, not because of what it is.
    disrupted: bool
    # It mounts a PersistentVolumeClaim, of the workspace or another.
    has_claim: bool
    workspace_claim: str | None
    running_since: datetime | None
    # It is not running yet, and the kubelet or the scheduler say why; they keep trying.
    obstacle: Trouble | None
    # It is over, and will not start again by itself.
    end: Trouble | None
    # Nothing of it runs any more: to wait for its node would be for nothing.
    over: bool
    # What its runtime left when it ended.
    words: LastWords | None
    node_responds: bool
    # Since when the kubelet says that a running container is not ready.
    unready_since: str | None


def facts(pod: Json) -> PodFacts:
    metadata: Json = pod["metadata"]
    status: Json = section(pod, "status")
    annotations, labels = section(metadata, "annotations"), section(metadata, "labels")
    deleted = metadata.get("deletionTimestamp")
    state = state_of(sandbox_container(status))
    running: Json | None = state.get("running")
    containers = entries(status, "containerStatuses")
    conditions = {c["type"]: c for c in entries(status, "conditions")}
    words = _words(state)
    over = bool(containers) and all("terminated" in state_of(each) for each in containers)
    # Whether it has evicted the pod, the kubelet says with the phase, a moment after the containers' end.
    unsaid = over and not deleted and not (words is not None and words.slept)
    end = end_of(status, state, conditions, unsaid=unsaid)
    claimed_at = _moment(annotations.get(ANNOTATION_CLAIMED_AT))
    return PodFacts(
        name=metadata["name"],
        uid=uid_of(pod),
        under_way_since=_under_way_since(conditions, created=metadata["creationTimestamp"]),
        owner_uid=owner_uid(pod),
        of_sandbox=_of_sandbox(metadata),
        pod_hash=annotations.get(ANNOTATION_POD_HASH, ""),
        spec_hash=annotations.get(ANNOTATION_SPEC_HASH, ""),
        bind_nonce=annotations.get(ANNOTATION_BIND_NONCE, ""),
        template=_recorded_template(annotations),
        pool=annotations.get(ANNOTATION_POOL),
        pool_uid=labels.get(LABEL_POOL_UID),
        shape=annotations.get(ANNOTATION_SHAPE, ""),
        claimed_at=claimed_at,
        cold=annotations.get(ANNOTATION_COLD, ""),
        network_uid=labels.get(LABEL_NETWORK, ""),
        protected=labels.get(LABEL_PROTECTED) == "true",
        ip=status.get("podIP") or None,
        node=section(pod, "spec").get("nodeName"),
        deleted_at=parse_time(deleted) if deleted else None,
        deleted_by=in_one_line(
            conditions.get("DisruptionTarget", {}).get("message") or "by somebody, or with its node"
        ),
        grace=timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0),
        disrupted=conditions.get("DisruptionTarget", {}).get("status") == "True",
        has_claim=any("persistentVolumeClaim" in each for each in entries(section(pod, "spec"), "volumes")),
        workspace_claim=workspace_claim(pod),
        running_since=_running_since(running, claimed_at),
        obstacle=None if running or end else obstacle(status, conditions),
        end=end,
        over=over,
        words=words,
        node_responds=_node_responds(conditions),
        unready_since=_unready_since(conditions) if running else None,
    )


def _running_since(running: Json | None, claimed_at: datetime | None) -> datetime | None:
    if not running or not running.get("startedAt"):
        return None
    # For its sandbox, a pod begins when it takes it.
    started = parse_time(running["startedAt"])
    return max(started, claimed_at) if claimed_at is not None else started


def _moment(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        # Somebody has changed it; a pod without it is one that was not taken from a pool.
        return None


def _under_way_since(conditions: dict[str, Json], *, created: str) -> datetime:
    scheduled = conditions.get("PodScheduled", {})
    moment = scheduled.get("lastTransitionTime") if scheduled.get("status") == "True" else None
    return parse_time(moment or created)


def _of_sandbox(metadata: Json) -> bool:
    owner = controller(metadata)
    group = str(owner.get("apiVersion", "")).partition("/")[0]
    return (group, owner.get("kind"), owner.get("name")) == (GROUP, SANDBOX_KIND, metadata["name"])


def workspace_claim(pod: Json) -> str | None:
    """The name of the PersistentVolumeClaim that it mounts as workspace."""
    for volume in entries(section(pod, "spec"), "volumes"):
        if volume.get("name") == WORKSPACE_VOLUME:
            return section(volume, "persistentVolumeClaim").get("claimName")
    return None


def _recorded_template(annotations: Json) -> Json | None:
    try:
        found: Any = json.loads(annotations.get(ANNOTATION_TEMPLATE) or "null")
    except (ValueError, RecursionError):
        return None
    return cast("Json", found) if isinstance(found, dict) else None


def _words(state: Json) -> LastWords | None:
    terminated = section(state, "terminated")
    # A runtime that ended otherwise than it wanted has not done what its words say.
    clean = terminated.get("exitCode") in CLEAN_EXITS and terminated.get("reason") != "OOMKilled"
    return read_last_words(terminated.get("message") or "") if clean else None


def _unready_since(conditions: dict[str, Json]) -> str | None:
    containers = conditions.get("ContainersReady", {})
    return containers.get("lastTransitionTime") or "" if containers.get("status") == "False" else None


def _node_responds(conditions: dict[str, Json]) -> bool:
    # The node controller turns Ready off when it has not heard from the node, and leaves the kubelet's last
    # word about the containers as it is.
    ready, containers = conditions.get("Ready", {}), conditions.get("ContainersReady", {})
    lost = ready.get("status") == "False" and containers.get("status") == "True"
    return not lost or ready.get("reason") == "ReadinessGatesNotReady"
