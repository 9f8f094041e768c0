"""What the changes of sandboxes' statuses say in numbers: how many fell asleep, were woken, started and how
soon, or lost their pod and why.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sandpod_crds.models import Sandbox, SandboxStatus
from sandpod_crds.names import ANNOTATION_WAKE, Phase

from .reasons import Reason
from .series import Counter, Histogram, Series
from .status import ready_reason
from .times import parse_time

START_SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600)
# Starts under way whose beginning is remembered. Those that end in a deletion are pushed out by later ones.
MOST_BEGUN = 10_000
# A wake that was asked for in the moment of falling asleep waits for that first.
LONGEST_DRAIN = timedelta(seconds=60)
# A creationTimestamp has no fraction: the creation was at most so much later.
FRACTION = timedelta(seconds=1)
# Ready's reasons while a start is with others: no pod is made, or one waits for what somebody has to bring.
# What a pod is short of otherwise, such as a node or an image, the platform is to have in time.
WITH_OTHERS: Final = frozenset(
    {
        Reason.POLICY_EXCEEDED,
        Reason.QUOTA_EXCEEDED,
        Reason.POD_SECURITY,
        Reason.FORBIDDEN,
        Reason.NAMESPACE_TERMINATING,
        Reason.TEMPLATE_MISSING,
        Reason.INVALID_TEMPLATE,
        Reason.INVALID_POD,
        Reason.INVALID_POD_TEMPLATE,
        Reason.NAME_TAKEN,
        Reason.POLICY_TAKEN,
        Reason.EARLIER_POD,
        Reason.UNDONE,
        Reason.INVALID_CLAIM,
        Reason.CLAIM_TAKEN,
        Reason.CLAIM_IN_USE,
        Reason.CLAIM_NOT_FOUND,
        Reason.EARLIER_CLAIM,
        Reason.CONFIG_MISSING,
        Reason.SCHEDULING_GATED,
    }
)


class StartKind(StrEnum):
    COLD = "cold"
    # With a pod out of a pool.
    WARM = "warm"
    # From sleep.
    WAKE = "wake"
    # After a pod was lost.
    AGAIN = "again"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What a new status tells that the old one did not."""

    asleep_for: str | None = None
    woken: bool = False
    started: bool = False
    lost_for: str | None = None


def change(*, old: SandboxStatus, new: SandboxStatus) -> Change:
    failed = (new.start_failures or 0) > (old.start_failures or 0) and ready_reason(new) != Reason.REPLACED
    lost = failed or (new.restarts or 0) > (old.restarts or 0)
    slept = new.phase == Phase.ASLEEP and old.phase != Phase.ASLEEP
    return Change(
        asleep_for=new.sleep_reason or "" if slept else None,
        # Also one that was wanted again while it was on its way to sleep.
        woken=(new.wakes or 0) > (old.wakes or 0),
        started=new.started_at is not None and (new.started_at, new.pod_uid) != (old.started_at, old.pod_uid),
        lost_for=ready_reason(new) if lost else None,
    )


@dataclass(kw_only=True, slots=True)
class Start:
    kind: StartKind
    began: datetime
    # Since when its time does not count.
    still_since: datetime | None = None

    def stand_still(self, now: datetime) -> None:
        if self.still_since is None:
            self.still_since = now

    def go_on(self, now: datetime) -> None:
        if self.still_since is not None:
            self.began += now - self.still_since
            self.still_since = None

    def seconds(self, now: datetime) -> float:
        return max((now - self.began).total_seconds(), 0.0)


class Progress:
    def __init__(self, *, namespace: str) -> None:
        self.starts = Histogram(
            f"{namespace}_start_seconds",
            "From the creation, the wake request or the loss of a pod to Ready, by kind of start, "
            "without the time that others have kept it waiting and that of spec.setup.",
            buckets=START_SECONDS,
        )
        self.sleeps = Counter(f"{namespace}_sleeps", "Sandboxes that fell asleep, by reason.")
        self.wakes = Counter(f"{namespace}_wakes", "Sandboxes that were woken.")
        self.losses = Counter(
            f"{namespace}_losses", "Pods that ended or could not start, by the reason that Ready then has."
        )
        self.series: list[Series] = [self.starts, self.sleeps, self.wakes, self.losses]
        self._begun: dict[str, Start] = {}

    def see(self, sandbox: Sandbox, *, now: datetime) -> None:
        """It is being looked at: its start begins with the first look, or soon after its creation."""
        if sandbox.status.phase is not None or sandbox.metadata.uid in self._begun:
            return
        created = sandbox.metadata.creation_timestamp
        began = min(now, created + FRACTION) if created is not None else now
        self._begin(sandbox, StartKind.COLD, began)

    def record(self, sandbox: Sandbox, new: SandboxStatus, *, now: datetime) -> None:
        """Its status has become this one."""
        told = change(old=sandbox.status, new=new)
        if told.asleep_for is not None:
            self.sleeps.add(reason=told.asleep_for)
        if told.woken:
            self.wakes.add()
            # What has kept it from waking was no start yet.
            asked = now if _is_with_others(sandbox.status) else _woken_at(sandbox, now=now)
            self._begin(sandbox, StartKind.WAKE, asked)
        if told.lost_for is not None:
            self.losses.add(reason=told.lost_for)
            if sandbox.metadata.uid not in self._begun:
                self._begin(sandbox, StartKind.AGAIN, now)
        if (start := self._begun.get(sandbox.metadata.uid)) is not None:
            _keep_time(start, old=sandbox.status, new=new, now=now)
        if told.started:
            self._started(sandbox, new, now=now)
        elif new.phase == Phase.ASLEEP:
            self._begun.pop(sandbox.metadata.uid, None)

    def _started(self, sandbox: Sandbox, new: SandboxStatus, *, now: datetime) -> None:
        start = self._begun.pop(sandbox.metadata.uid, None)
        if start is None or _is_with_others(sandbox.status):
            # It began under the operator before this one, which did not say when; or with a warm pod, and no
            # status has said when others let it go.
            return
        warm = start.kind is StartKind.COLD and new.pool
        self.starts.observe(start.seconds(now), kind=StartKind.WARM if warm else start.kind)

    def _begin(self, sandbox: Sandbox, kind: StartKind, moment: datetime) -> None:
        self._begun[sandbox.metadata.uid] = Start(kind=kind, began=moment)
        if len(self._begun) > MOST_BEGUN:
            del self._begun[next(iter(self._begun))]


def _keep_time(start: Start, *, old: SandboxStatus, new: SandboxStatus, now: datetime) -> None:
    if _is_another(old=old, new=new):
        start.began, start.still_since = now, None
    if _is_with_others(new) or ready_reason(new) == Reason.SETTING_UP:
        start.stand_still(now)
    else:
        start.go_on(now)


def _is_with_others(status: SandboxStatus) -> bool:
    return ready_reason(status) in WITH_OTHERS


def _is_another(*, old: SandboxStatus, new: SandboxStatus) -> bool:
    """What is to start was changed on the way: the spec before is its owner's affair."""
    if ready_reason(new) == Reason.REPLACED:
        return True
    failed = old.pod_uid is None and bool(old.start_failures)
    return failed and old.observed_generation != new.observed_generation


def _woken_at(sandbox: Sandbox, *, now: datetime) -> datetime:
    """When it was asked to wake, as far as the annotation says so: anybody may write anything there."""
    try:
        asked = parse_time(sandbox.metadata.annotations.get(ANNOTATION_WAKE, ""))
    except ValueError:
        return now
    asleep_since = sandbox.status.asleep_since
    if asked.tzinfo is None:
        return now
    return min(max(asked, asleep_since or now - LONGEST_DRAIN), now)
