"""What keeps a pod from starting, and how it ended, in the words of the lifecycle. Pure; the only module that
knows the kubelet's reasons.
"""

import re
from dataclasses import dataclass

from sandpod_crds.names import SANDBOX_CONTAINER

from .last_words import read_last_words
from .objects import Json, entries, section
from .reasons import Reason

# Of a runtime that has done all that belongs to its end: it slept, or a signal told it to end.
ASLEEP, TERMINATED = 0, 143
CLEAN_EXITS = (ASLEEP, TERMINATED)
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


def obstacle(status: Json, conditions: dict[str, Json]) -> Trouble | None:
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        gated = scheduled.get("reason") == "SchedulingGated"
        reason = Reason.SCHEDULING_GATED if gated else Reason.UNSCHEDULABLE
        return Trouble(reason=reason, message=in_one_line(scheduled.get("message", "")))
    for container in (*(entries(status, "initContainerStatuses")), sandbox_container(status)):
        waiting: Json = section(state_of(container), "waiting")
        reason, message = waiting.get("reason", ""), waiting.get("message", "")
        image = container.get("image", "")
        if reason in IMAGE_REASONS:
            detail = _FAILED_TO.sub("", _BACK_OFF.sub("", message)) or reason
            return Trouble(reason=Reason.IMAGE_MISSING, message=f"{image}: {in_one_line(detail)}")
        if reason == "CreateContainerConfigError":
            return Trouble(reason=Reason.CONFIG_MISSING, message=in_one_line(message))
        if reason.endswith("Error"):
            return Trouble(reason=Reason.CONTAINER_NOT_CREATED, message=in_one_line(message or reason))
    return None


def end_of(status: Json, state: Json, conditions: dict[str, Json], *, unsaid: bool) -> Trouble | None:
    over = status.get("phase") in ("Failed", "Succeeded")
    reason, message = status.get("reason"), status.get("message", "")
    if over and reason == "Evicted":
        return Trouble(reason=Reason.EVICTED, message=in_one_line(message))
    if over and reason:
        # Such as a node that was shut down. How the container took it tells nothing more.
        return Trouble(reason=Reason.POD_FAILED, message=in_one_line(f"{reason}: {message}"))
    terminated: Json | None = state.get("terminated")
    if terminated is not None and (over or not unsaid):
        return _terminated(terminated, what="the runtime")
    if not over:
        return None
    for container in entries(status, "initContainerStatuses"):
        terminated = state_of(container).get("terminated")
        if terminated is not None and terminated.get("exitCode") != 0:
            trouble = _terminated(terminated, what=f"the init container {container['name']}")
            return Trouble(reason=Reason.START_FAILED, message=trouble.message)
    # Such as the garbage collector, of a pod whose node is gone.
    disruption = conditions.get("DisruptionTarget", {}).get("message")
    return Trouble(reason=Reason.POD_FAILED, message=in_one_line(message or disruption or "no reason given"))


def _terminated(terminated: Json, *, what: str) -> Trouble:
    code, reason = terminated.get("exitCode"), terminated.get("reason", "")
    message: str = terminated.get("message") or ""
    words = "" if read_last_words(message) else _last_words(message)
    said = f"; it said: {words}" if words else ""
    if reason == "OOMKilled":
        return Trouble(
            reason=Reason.OOM_KILLED, message=f"{what} was killed because it used more memory than its limit"
        )
    if reason in ("StartError", "ContainerCannotRun"):
        return Trouble(reason=Reason.START_FAILED, message=f"{what} could not be started{said}")
    if code in CLEAN_EXITS:
        why = ", as a signal told it to" if code == TERMINATED else ""
        return Trouble(reason=Reason.RUNTIME_EXITED, message=f"{what} exited with code {code}{why}{said}")
    return Trouble(reason=Reason.CRASHED, message=f"{what} exited with code {code}{said}")


def sandbox_container(status: Json) -> Json:
    statuses = entries(status, "containerStatuses")
    return next((c for c in statuses if c.get("name") == SANDBOX_CONTAINER), Json())


def state_of(container: Json) -> Json:
    return section(container, "state")


def in_one_line(text: str) -> str:
    text = " ".join(text.split())
    return text[:LAST_CHARACTERS] or "no message"


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " | ".join(lines[-LAST_LINES:])[-LAST_CHARACTERS:]
