"""What a pod's object says, in the words of the lifecycle: what keeps it from starting, whether its runtime's
container runs, how it ended. Pure; the only module that knows the kubelet's reasons.
"""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sandpod_crds.names import (
    ANNOTATION_BIND_NONCE,
    ANNOTATION_SPEC_HASH,
    ANNOTATION_TEMPLATE,
    GROUP,
    LABEL_NETWORK,
    LABEL_POOL_UID,
    LABEL_PROTECTED,
    SANDBOX_CONTAINER,
    SANDBOX_KIND,
)

from .last_words import LastWords, read_last_words
from .objects import Json, controller, entries, owner_uid, section, uid_of
from .reasons import Reason
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

# As much of a dead container's last words as goes into a condition.
LAST_LINES = 8
LAST_CHARACTERS = 1000

IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
# The kubelet says the same failure in two ways in turn; without its own words for "again" they are one
# message, and the status is not rewritten at each of them.
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?')
_FAILED_TO = re.compile(r'^failed to pull( and unpack)? image "[^"]*": ')


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """A reason for a condition, and the facts for its message."""

    reason: Reason
    message: str


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
    state = _state(_container(status))
    running: Json | None = state.get("running")
    containers = entries(status, "containerStatuses")
    conditions = {c["type"]: c for c in entries(status, "conditions")}
    words = _words(state)
    over = bool(containers) and all("terminated" in _state(each) for each in containers)
    # Whether it has evicted the pod, the kubelet says with the phase, a moment after the containers' end.
    unsaid = over and not deleted and not (words is not None and words.slept)
    end = _end(status, state, unsaid=unsaid)
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
        deleted_by=_sentence(
            conditions.get("DisruptionTarget", {}).get("message") or "by somebody, or with its node"
        ),
        disrupted=conditions.get("DisruptionTarget", {}).get("status") == "True",
        has_claim=any("persistentVolumeClaim" in each for each in entries(section(pod, "spec"), "volumes")),
        workspace_claim=_workspace_claim(pod),
        running_since=_running_since(running, claimed_at),
        obstacle=None if running or end else _obstacle(status, conditions),
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


def _obstacle(status: Json, conditions: dict[str, Json]) -> Trouble | None:
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        gated = scheduled.get("reason") == "SchedulingGated"
        reason = Reason.SCHEDULING_GATED if gated else Reason.UNSCHEDULABLE
        return Trouble(reason=reason, message=_sentence(scheduled.get("message", "")))
    for container in (*(entries(status, "initContainerStatuses")), _container(status)):
        waiting: Json = section(_state(container), "waiting")
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        image = container.get("image", "")
        if reason in IMAGE_REASONS:
            detail = _FAILED_TO.sub("", _BACK_OFF.sub("", message)) or reason
            return Trouble(reason=Reason.IMAGE_MISSING, message=f"{image}: {_sentence(detail)}")
        if reason == "CreateContainerConfigError":
            return Trouble(reason=Reason.CONFIG_MISSING, message=_sentence(message))
        if reason.endswith("Error"):
            return Trouble(reason=Reason.CONTAINER_NOT_CREATED, message=_sentence(message or reason))
    return None


def _end(status: Json, state: Json, *, unsaid: bool) -> Trouble | None:
    over = status.get("phase") in ("Failed", "Succeeded")
    if over and status.get("reason") == "Evicted":
        return Trouble(reason=Reason.EVICTED, message=_sentence(status.get("message", "")))
    terminated: Json | None = state.get("terminated")
    if terminated is not None and (over or not unsaid):
        return _terminated(terminated, what="the runtime")
    if not over:
        return None
    for container in entries(status, "initContainerStatuses"):
        terminated = _state(container).get("terminated")
        if terminated is not None and terminated.get("exitCode") != 0:
            trouble = _terminated(terminated, what=f"the init container {container['name']}")
            return Trouble(reason=Reason.START_FAILED, message=trouble.message)
    reason, message = status.get("reason") or "no reason given", status.get("message", "")
    return Trouble(reason=Reason.POD_FAILED, message=_sentence(f"{reason}: {message}" if message else reason))


def _terminated(terminated: Json, *, what: str) -> Trouble:
    code, reason = terminated.get("exitCode"), terminated.get("reason", "")
    words = _last_words(terminated.get("message") or "")
    said = f"; it said: {words}" if words else ""
    if reason == "OOMKilled":
        return Trouble(
            reason=Reason.OOM_KILLED, message=f"{what} was killed because it used more memory than its limit"
        )
    if reason in ("StartError", "ContainerCannotRun"):
        return Trouble(reason=Reason.START_FAILED, message=f"{what} could not be started{said}")
    if code == 0:
        return Trouble(reason=Reason.RUNTIME_EXITED, message=f"{what} exited with code 0{said}")
    return Trouble(reason=Reason.CRASHED, message=f"{what} exited with code {code}{said}")


def _workspace_claim(pod: Json) -> str | None:
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
    clean = terminated.get("exitCode") == 0 and terminated.get("reason") != "OOMKilled"
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


def _container(status: Json) -> Json:
    statuses = entries(status, "containerStatuses")
    return next((c for c in statuses if c.get("name") == SANDBOX_CONTAINER), Json())


def _state(container: Json) -> Json:
    return section(container, "state")


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text[:LAST_CHARACTERS] or "no message"


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " | ".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:]
