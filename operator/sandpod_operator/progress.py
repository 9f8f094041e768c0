"""What the changes of sandboxes' statuses say in numbers: how many fell asleep, were woken, started and how
soon, or lost their pod and why.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

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


class Progress:
    def __init__(self, *, namespace: str) -> None:
        self.starts = Histogram(
            f"{namespace}_start_seconds",
            "From the creation, the wake request or the loss of a pod to Ready, by kind of start.",
            buckets=START_SECONDS,
        )
        self.sleeps = Counter(f"{namespace}_sleeps", "Sandboxes that fell asleep, by reason.")
        self.wakes = Counter(f"{namespace}_wakes", "Sandboxes that were woken.")
        self.losses = Counter(
            f"{namespace}_losses", "Pods that ended or could not start, by the reason that Ready then has."
        )
        self.series: list[Series] = [self.starts, self.sleeps, self.wakes, self.losses]
        self._begun: dict[str, tuple[StartKind, datetime]] = {}

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
            self._begin(sandbox, StartKind.WAKE, _woken_at(sandbox, now=now))
        if told.lost_for is not None:
            self.losses.add(reason=told.lost_for)
            if sandbox.metadata.uid not in self._begun:
                self._begin(sandbox, StartKind.AGAIN, now)
        if told.started:
            self._started(sandbox, new, now=now)
        elif new.phase == Phase.ASLEEP:
            self._begun.pop(sandbox.metadata.uid, None)

    def _started(self, sandbox: Sandbox, new: SandboxStatus, *, now: datetime) -> None:
        begun = self._begun.pop(sandbox.metadata.uid, None)
        if begun is None:
            # It began under the operator before this one, which did not say when.
            return
        kind, moment = begun
        if kind is StartKind.COLD and new.pool:
            kind = StartKind.WARM
        self.starts.observe(max((now - moment).total_seconds(), 0.0), kind=kind.value)

    def _begin(self, sandbox: Sandbox, kind: StartKind, moment: datetime) -> None:
        self._begun[sandbox.metadata.uid] = (kind, moment)
        if len(self._begun) > MOST_BEGUN:
            del self._begun[next(iter(self._begun))]


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
