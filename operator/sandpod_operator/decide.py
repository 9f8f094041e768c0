"""The lifecycle of a sandbox. Read it from top to bottom: each phase looks at the situation and decides, or
leaves it to the next. Pure: the same situation at the same time gives the same plan.

A plan is one step. After its writes decide is asked again, with what they have changed, until nothing is
left to do: each step may be the last one before the operator is killed, and nothing is lost.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from .case import Case, Situation
from .errors import BadPodTemplate
from .observations import Answered
from .plan import Plan, Removal, Tone
from .pods import PodFacts
from .reasons import Reason, sentence
from .settings import Installation

# A pod that is still there so long after its grace period has a node that will not report its end.
GRACE_OVERDUE = timedelta(seconds=30)
# After so long, a start that is still under way is worth a word.
SLOW = timedelta(seconds=60)


def decide(situation: Situation, *, now: datetime, installation: Installation) -> Plan:
    sandbox = situation.sandbox
    if sandbox is None or sandbox.metadata.deletion_timestamp is not None:
        return leave_with_the_sandbox(situation)
    case = Case(situation, sandbox, now=now, installation=installation)
    for phase in PHASES:
        plan = phase(case)
        if plan is not None:
            return plan
    raise AssertionError("the last phase always decides")


def leave_with_the_sandbox(situation: Situation) -> Plan:
    """The pod of a sandbox that is gone, or going, goes too. The garbage collector would see to it, later."""
    sandbox, pod = situation.sandbox, situation.pod
    owner = sandbox.metadata.uid if sandbox is not None else situation.departed
    if pod is None or owner is None or pod.owner_uid != owner or pod.deleted_at is not None:
        return Plan()
    return Plan() if situation.orphaning else Plan(remove_pod=Removal(uid=pod.uid))


def respect_the_name(case: Case) -> Plan | None:
    """A pod has our name and another owner: the pod of an earlier sandbox is removed, anybody else's is
    left alone.
    """
    pod = case.pod
    if pod is None or pod.owner_uid == case.sandbox.metadata.uid:
        return None
    if pod.of_sandbox:
        case.draft.mark_waiting(Reason.EARLIER_POD)
        return see_it_off(case, pod)
    wait_because(case, Reason.NAME_TAKEN, "it belongs to somebody else.")
    return case.settle()


def let_the_old_pod_go(case: Case) -> Plan | None:
    """The pod is being deleted: nothing starts before it is gone, and it is forced out when its node is
    silent.
    """
    pod = case.pod
    if pod is None or pod.deleted_at is None:
        return None
    if case.current:
        lose(case, Reason.POD_DELETED, pod.deleted_by)
    return see_it_off(case, pod)


def bury_the_pod(case: Case) -> Plan | None:
    """The pod has ended: say how, remove it, and have another when it is time."""
    pod = case.pod
    if pod is None or pod.end is None:
        return None
    if case.current:
        reason = pod.end.reason
        if not case.bound and reason in (Reason.CRASHED, Reason.RUNTIME_EXITED):
            reason = Reason.CRASHED_AT_START
        lose(case, reason, pod.end.message)
    return case.settle(remove=Removal(uid=pod.uid))


def start_a_pod(case: Case) -> Plan | None:
    """There is no pod: make one, unless the last attempt says to wait."""
    if case.pod is not None:
        return None
    if case.status.pod_uid is not None:
        lose(case, Reason.POD_DELETED, "by force, or with its node.")
        return case.settle(look_again_at=case.now)
    try:
        pod = case.wanted_pod
    except BadPodTemplate as error:
        wait_because(case, Reason.INVALID_POD_TEMPLATE, str(error))
        return case.settle()
    if case.refusal is not None:
        until = case.refusal.retry_at
        wait_because(case, case.refusal.reason, case.refusal.message, until=until)
        return case.settle(look_again_at=until)
    if case.start_at is not None:
        return case.settle(look_again_at=case.start_at)
    return case.create(pod)


def replace_an_outdated_pod(case: Case) -> Plan | None:
    """The spec was changed before anybody could work in the pod: no use in waiting for this one."""
    pod = case.pod
    if pod is None or case.alive or not case.outdated:
        return None
    case.draft.mark_replaced()
    case.tell(Reason.REPLACED, sentence(Reason.REPLACED, pod=pod.name), tone=Tone.NORMAL)
    return case.settle(remove=Removal(uid=pod.uid))


def name_the_obstacle(case: Case) -> Plan | None:
    """Scheduler or kubelet say why the pod does not start. They keep trying; so there is nothing to do but
    say so.
    """
    pod = case.pod
    if pod is None or pod.obstacle is None or case.alive:
        return None
    reason, detail = pod.obstacle.reason, pod.obstacle.message
    case.draft.mark_obstructed(pod, image=case.image, reason=reason, detail=detail)
    if case.draft.ready_reason != reason:
        case.tell(reason, sentence(reason, pod=pod.name, detail=detail))
    return case.settle()


def wait_for_the_runtime(case: Case) -> Plan | None:
    """The pod is on its way: ask its runtime until it answers, or until it has had its time."""
    pod = case.pod
    if pod is None or case.alive:
        return None
    if case.answer is not None and case.answer.outcome is Answered.REFUSED:
        lose(case, Reason.BIND_REFUSED, case.answer.message)
        return case.settle(remove=Removal(uid=pod.uid))
    slow = pod.under_way_since + SLOW
    reason = Reason.STARTING if case.now < slow or pod.running_since else Reason.STARTING_SLOWLY
    look_again_at = slow if reason is Reason.STARTING else None
    if pod.running_since is not None:
        deadline = pod.running_since + timedelta(seconds=case.settings.start_timeout_seconds)
        if case.now >= deadline:
            lose(case, Reason.RUNTIME_NOT_ANSWERING, f"{case.settings.start_timeout_seconds:g} seconds")
            return case.settle(remove=Removal(uid=pod.uid))
        look_again_at = deadline
    case.draft.mark_starting(pod, image=case.image, reason=reason)
    return case.settle(ask=case.ask(), look_again_at=look_again_at)


def keep_it_running(case: Case) -> Plan | None:
    """The runtime has answered: the sandbox is up until its pod ends. A changed spec waits for that."""
    pod = case.pod
    assert pod is not None
    answer = case.answer
    case.draft.mark_running(pod, answer=answer, image=case.image)
    if answer is not None:
        case.tell(Reason.STARTED, f"The runtime answers in the pod {pod.name}.", tone=Tone.NORMAL)
    elif not pod.node_responds and case.draft.ready_reason != Reason.NODE_NOT_RESPONDING:
        detail = pod.node or ""
        case.tell(
            Reason.NODE_NOT_RESPONDING, sentence(Reason.NODE_NOT_RESPONDING, pod=pod.name, detail=detail)
        )
    return case.settle(look_again_at=case.draft.forgive())


def see_it_off(case: Case, pod: PodFacts) -> Plan:
    """Delete the pod, and once more by force when its time is long over."""
    if pod.deleted_at is None:
        return case.settle(remove=Removal(uid=pod.uid))
    overdue = pod.deleted_at + GRACE_OVERDUE
    if pod.has_claim:
        # Its volume might be in use by a container that nobody can see: two writers would destroy it.
        return case.settle()
    if case.now < overdue:
        return case.settle(look_again_at=overdue)
    # Looked at again, because a finalizer of somebody else may hold it even then.
    return case.settle(remove=Removal(uid=pod.uid, force=True), look_again_at=case.now + GRACE_OVERDUE)


def lose(case: Case, reason: Reason, detail: str = "") -> None:
    case.draft.mark_lost(reason, detail)
    case.tell(reason, sentence(reason, pod=case.sandbox.metadata.name, detail=detail))


def wait_because(case: Case, reason: Reason, detail: str, *, until: datetime | None = None) -> None:
    case.draft.mark_waiting(reason, detail, until=until)
    if case.draft.ready_reason != reason:
        case.tell(reason, sentence(reason, pod=case.sandbox.metadata.name, detail=detail))


PHASES: tuple[Callable[[Case], Plan | None], ...] = (
    respect_the_name,
    let_the_old_pod_go,
    bury_the_pod,
    start_a_pod,
    replace_an_outdated_pod,
    name_the_obstacle,
    wait_for_the_runtime,
    keep_it_running,
)
