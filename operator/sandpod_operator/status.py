"""The status of a sandbox while it is being worked out: begun from what it was, changed by words of the
lifecycle, finished as a whole.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sandpod_crds.models import PortStatus, Sandbox, SandboxStatus, SetupStatus
from sandpod_crds.names import ConditionType, Phase

from .conditions import Verdict, condition
from .isolation import reached
from .last_words import LastWords
from .objects import Json
from .observations import Answer, SetupResult
from .pods import PodFacts
from .reasons import Names, Reason, sentence
from .times import SKEW, still_to_come

# After the n-th failed start in a row the next one is tried 2 to the power of n-1 seconds later, at most
# these.
LONGEST_PAUSE = timedelta(minutes=5)
FAILURES_UNTIL_FAILED = 5
# A sandbox that has run so long has started; before, another end counts as one more failed start.
STABLE = timedelta(seconds=60)


class Draft:
    def __init__(self, sandbox: Sandbox, *, now: datetime, names: Names) -> None:
        self._old = sandbox.status
        self._names = names
        self._generation = sandbox.metadata.generation
        self._now = now.replace(microsecond=0)
        self._fields: dict[str, Any] = dict(sandbox.status)
        self._conditions = {each.type: each for each in sandbox.status.conditions}

    @property
    def pod_name(self) -> str:
        return self._fields["pod_name"] or self._names.sandbox

    @property
    def setup(self) -> SetupStatus | None:
        return self._fields["setup"]

    @property
    def isolation(self) -> str | None:
        return self._fields["isolation"]

    @property
    def asleep_since(self) -> datetime | None:
        return self._fields["asleep_since"]

    @property
    def waits(self) -> bool:
        return self._fields["phase"] is Phase.PENDING

    @property
    def draining_since(self) -> datetime | None:
        """Since when it is on its way to sleep; None when it was not before."""
        ready = next((c for c in self._old.conditions if c.type == ConditionType.READY), None)
        draining = self._old.phase is Phase.DRAINING and ready is not None
        return ready.last_transition_time if draining and ready is not None else None

    @property
    def ready_reason(self) -> str:
        """The reason that Ready had before."""
        return ready_reason(self._old)

    @property
    def running_spec_hash(self) -> str | None:
        """Of the spec that the pod was made from, once people may work in it."""
        return self._fields["spec_hash"] if self._fields["started_at"] is not None else None

    def mark_starting(
        self, pod: PodFacts, *, image: str, reason: Reason = Reason.STARTING, detail: str = ""
    ) -> None:
        self._hold(pod, image=image)
        self._set(phase=Phase.STARTING)
        self._ready(False, reason, detail)

    def mark_obstructed(self, pod: PodFacts, *, image: str, reason: Reason, detail: str) -> None:
        """The pod is there and waits for something that is not ours to bring."""
        self._hold(pod, image=image)
        self._set(phase=Phase.PENDING)
        self._ready(False, reason, detail)

    def mark_setting_up(self, pod: PodFacts, *, image: str) -> None:
        """The runtime is ours, and prepares the workspace before anybody may work in it."""
        self._hold(pod, image=image)
        # Its log can be read meanwhile.
        self._set(phase=Phase.STARTING, pod_ip=pod.ip, setup=SetupStatus(result="Running"))
        self._ready(False, Reason.SETTING_UP)

    def mark_running(
        self, pod: PodFacts, *, answer: Answer | None, image: str, setup: SetupResult | None = None
    ) -> None:
        """`answer` is None when the status says already that this pod has answered."""
        if answer is not None:
            self._hold(pod, image=image)
            self._set(
                spec_hash=answer.spec_hash or pod.spec_hash,
                runtime_version=answer.version or None,
                started_at=answer.at.replace(microsecond=0),
                sleep_after=answer.subject or None,
                isolation=reached(answer.walls),
                setup=_ended(setup, now=self._now),
            )
        self._set(phase=Phase.RUNNING, pod_ip=pod.ip)
        if pod.node_responds:
            self._ready(True, Reason.RUNTIME_ANSWERS)
        else:
            self._ready(False, Reason.NODE_NOT_RESPONDING, pod.node or "")

    def mark_draining(self, reason: Reason) -> None:
        """Its pod is still there and takes no more requests."""
        self._set(phase=Phase.DRAINING)
        self._ready(False, reason)

    def mark_asleep(self, reason: Reason, *, words: LastWords | None, keeps: bool) -> None:
        """`keeps` is whether there is a place that what was saved outlives the pod in."""
        if words is not None:
            active = words.last_active_at
            self._set(
                last_active_at=min(active, self._now) if active is not None else None,
                sessions=words.sessions if keeps and words.saved else (),
            )
        self._let_go()
        self._set(
            phase=Phase.ASLEEP,
            asleep_since=self._fields["asleep_since"] or self._now,
            sleep_reason=reason.value,
            start_failures=None,
            next_start_at=None,
        )
        self._ready(False, reason)

    def mark_waking(self, *, hurry: bool = True) -> None:
        """It was about to sleep, or has just done so, and somebody wants it. Without `hurry`, one that had
        just started waits as after a failure.
        """
        if hurry or self._lasted:
            self._set(start_failures=None, next_start_at=None)
        else:
            self._slow_down()
        self._let_go()
        self._set(phase=Phase.STARTING)
        if self._old.pod_uid is not None:
            # Once for each pod: killed before it was removed, we come here again.
            self._set(wakes=(self._old.wakes or 0) + 1)
        self._ready(False, Reason.WAKING)

    def observe_wake(self, request: str) -> None:
        """What was asked for is so."""
        if request:
            self._set(wake_observed=request)

    def note_sleep_after(self, text: str | None) -> None:
        """The runtime goes by this from now on; None: nobody knows by what."""
        self._set(sleep_after=text)

    def note_ports(self, ports: tuple[PortStatus, ...]) -> None:
        self._set(ports=ports)

    def note_claim(self, name: str | None) -> None:
        self._set(workspace_claim=name)

    def mark_lost(self, reason: Reason, detail: str = "") -> None:
        """The pod that this status speaks of is over: count it, say why, and when there will be another."""
        if self._old.started_at is not None:
            self._set(restarts=(self._old.restarts or 0) + 1)
        if self._lasted:
            self._set(start_failures=None, next_start_at=None, phase=Phase.STARTING)
        else:
            failed = self._slow_down() >= FAILURES_UNTIL_FAILED
            self._set(phase=Phase.FAILED if failed else Phase.PENDING)
        self._let_go()
        self._ready(False, reason, detail)

    def mark_waiting(self, reason: Reason, detail: str = "", *, until: datetime | None = None) -> None:
        """There is no pod, and starting one now is of no use."""
        self._let_go()
        if self._old.phase is Phase.ASLEEP:
            # It does not work, so its time to live asleep goes on; and somebody wants it, so it begins anew.
            self._set(asleep_since=self._now)
        self._set(phase=Phase.PENDING, next_start_at=until)
        self._ready(False, reason, detail)

    def mark_replaced(self) -> None:
        """The pod is given up before anybody worked in it: no failure, and no pause after a change of the
        spec. Without one there may be no end of it: somebody may change every pod that we make.
        """
        if self._old.observed_generation == self._generation:
            self._slow_down()
        else:
            self._set(next_start_at=None)
        self._let_go()
        self._set(phase=Phase.STARTING)
        self._ready(False, Reason.REPLACED)

    def forgive(self) -> datetime | None:
        """Forget the failures before a start that lasts; returns when to do so if it is too early."""
        if not self._fields["start_failures"] or self._fields["started_at"] is None:
            return None
        due = still_to_come(self._fields["started_at"] + STABLE, now=self._now, within=STABLE + SKEW)
        if due is not None:
            return due
        self._set(start_failures=None)
        return None

    def finish(self, verdicts: Iterable[Verdict]) -> SandboxStatus | None:
        """The whole status; None when it says what the old one says."""
        for verdict in verdicts:
            self._condition(verdict.type, verdict.holds, verdict.reason, verdict.message)
        known: list[str] = list(ConditionType)
        others = [c for c in self._conditions.values() if c.type not in known]
        ours = [self._conditions[each] for each in known if each in self._conditions]
        self._set(conditions=[*ours, *others], observed_generation=self._generation)
        status = SandboxStatus(**self._fields)
        return None if status == self._old else status

    def _hold(self, pod: PodFacts, *, image: str) -> None:
        if self._fields["pod_uid"] != pod.uid:
            self._let_go()
        self._rise()
        self._set(pod_name=pod.name, pod_uid=pod.uid, pool=pod.pool, image=image, next_start_at=None)
        self._set(spec_hash=self._fields["spec_hash"] or pod.spec_hash)

    def _let_go(self) -> None:
        self._set(
            pod_name=None, pod_uid=None, pod_ip=None, image=None, runtime_version=None,
            started_at=None, spec_hash=None, sleep_after=None, setup=None, pool=None,
        )  # fmt: skip

    @property
    def _lasted(self) -> bool:
        """The last start was one that held."""
        started = self._old.started_at
        if started is None:
            return False
        return still_to_come(started + STABLE, now=self._now, within=STABLE + SKEW) is None

    def _slow_down(self) -> int:
        """One more start that did not last. Returns how many in a row."""
        failures = (self._old.start_failures or 0) + 1
        self._set(start_failures=failures, next_start_at=self._now + pause_after(failures))
        return failures

    def _rise(self) -> None:
        if self._fields["asleep_since"] is not None:
            self._set(asleep_since=None, sleep_reason=None, wakes=(self._old.wakes or 0) + 1)

    def _ready(self, holds: bool, reason: Reason, detail: str = "") -> None:
        message = sentence(reason, names=self._names, detail=detail)
        self._condition(ConditionType.READY, holds, reason, message)

    def _condition(self, kind: ConditionType, holds: bool, reason: Reason, message: str) -> None:
        self._conditions[kind] = condition(
            kind,
            holds=holds,
            reason=reason.value,
            message=message,
            before=self._conditions.get(kind),
            now=self._now,
            generation=self._generation,
        )

    def _set(self, **fields: Any) -> None:
        self._fields |= fields


def _ended(setup: SetupResult | None, *, now: datetime) -> SetupStatus | None:
    if setup is None:
        return None
    return SetupStatus(result=setup.state, message=setup.message, finished_at=now)


def pause_after(failures: int) -> timedelta:
    return min(timedelta(seconds=2 ** min(failures - 1, 16)), LONGEST_PAUSE)


def ready_reason(status: SandboxStatus) -> str:
    return next((c.reason for c in status.conditions if c.type == ConditionType.READY), "")


def summary(status: SandboxStatus) -> str:
    """In two words, for a log."""
    return f"{status.phase} ({ready_reason(status)})" if status.phase is not None else "new"


def status_patch(status: SandboxStatus) -> Json:
    """The merge patch that makes the object's status this one, whatever it was: what is empty is taken
    away.
    """
    given = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    if status.setup is not None:
        # With its empty fields: a merge patch would keep an earlier setup's.
        given["setup"] = status.setup.model_dump(mode="json", by_alias=True)
    names = [field.alias or name for name, field in SandboxStatus.model_fields.items()]
    return {name: given.get(name) or None for name in names}
