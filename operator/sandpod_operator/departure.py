"""How pods go: the phases in which a pod has ended, is being deleted, or has lost its sandbox.
What it leaves says whether its sandbox sleeps, is wanted again at once, or was lost; and a label on it,
whether a drain may take it from whoever works in it. Pure.
"""

from datetime import datetime, timedelta

from sandpod_crds.names import LABEL_PROTECTED

from .case import Case
from .exposure import withdraw
from .fence import take_down
from .kinds import POD
from .last_words import LastWords
from .objects import Json
from .plan import Plan, Removal, Verb, Write
from .pods import PodFacts
from .pool.take import record_of_the_claim
from .reasons import Reason
from .situation import Situation
from .times import SKEW

# A pod that is still there so long after its grace period has a node that will not report its end.
GRACE_OVERDUE = timedelta(seconds=30)
# What we tell a runtime, and find again in its last words.
PAUSED = "paused"


def leave_with_the_sandbox(situation: Situation) -> Plan:
    """The pod of a sandbox that is gone, or going, goes too: the garbage collector would see to it, later.
    Its previews, which are in another namespace, nobody else would remove.
    """
    # Also of one that is deleted with --cascade=orphan: its pod would work on, where no policy reaches it.
    there = (*([situation.pod] if situation.pod is not None else []), *situation.orphans)
    pod = next((each for each in there if each.deleted_at is None), None)
    if pod is not None:
        # A step of its own: somebody may refuse the others, and the pod is not to work on for that.
        return Plan(remove_pod=removal(pod))
    # Its wall stands for as long as its pod has not ended.
    wall = () if there or situation.others_behind else take_down(situation.network_policy)
    return Plan(writes=(*withdraw(situation.ingresses), *wall))


def keep_one_pod(case: Case) -> Plan | None:
    """An answer that was lost may have left two; the one that is known stays. And what earlier sandboxes of
    the name have left goes.
    """
    for pod in case.orphans:
        if pod.deleted_at is None:
            return Plan(remove_pod=removal(pod))
    for pod in case.surplus:
        if pod.deleted_at is None:
            case.tell(Reason.SURPLUS_POD, pod.name)
            return case.settle(remove=removal(pod))
    return None


def take_it_back(case: Case) -> Plan | None:
    """Somebody has taken the owner off its pod, which would outlive its sandbox. Where it may not be had
    back, the pod goes on, sleeps and ends as any other.
    """
    pod = case.pod
    if pod is None or pod.owner_uid is not None or case.refusal_of_owner is not None:
        return None
    metadata: Json = {"uid": pod.uid, "ownerReferences": [case.owner]}
    return case.write(Write(verb=Verb.PATCH, kind=POD, name=pod.name, body={"metadata": metadata}))


def write_down_whose_it_is(case: Case) -> Plan | None:
    """In a burst of claims there was no time for it."""
    write = record_of_the_claim(case)
    return case.write(write) if write is not None else None


def let_the_old_pod_go(case: Case) -> Plan | None:
    """The pod is being deleted: nothing starts before it is gone, and it is forced out when its node is
    silent.
    """
    pod = case.pod
    if pod is None or pod.deleted_at is None:
        return None
    if case.current:
        words = pod.words
        if words is not None and words.slept:
            _fall_asleep(case, words)
        elif case.spec.paused:
            case.sleep(Reason.PAUSED)
        elif pod.disrupted and pod.end is None and case.bound and pod.node_responds:
            # What it says at its end tells whether somebody works in it.
            case.draft.mark_draining(Reason.NODE_DRAINING)
        elif pod.disrupted and words is not None and words.quiet and case.sleep_after is not None:
            if case.wake:
                case.draft.mark_waking()
            else:
                case.sleep(Reason.NODE)
        elif pod.has_claim and not pod.node_responds:
            # Told below, with what it waits for.
            case.draft.mark_lost(Reason.NODE_LOST, pod.node or "")
        else:
            case.lose(Reason.POD_DELETED, pod.deleted_by)
    return see_it_off(case, pod)


def guard_the_work(case: Case) -> Plan | None:
    """Whether a drain of its node waits for the sandbox follows the spec while it runs."""
    pod = case.pod
    if pod is None or not case.bound:
        return None
    if not case.knows_files_and_network and not case.drain_overdue:
        return None
    if pod.protected == case.holds_up_drains or case.refusal_of_labels is not None:
        return None
    if case.unwritten is not None:
        # What it is told first was refused.
        return None
    label = "true" if case.holds_up_drains else None
    metadata: Json = {"uid": pod.uid, "labels": {LABEL_PROTECTED: label}}
    return case.write(Write(verb=Verb.PATCH, kind=POD, name=pod.name, body={"metadata": metadata}))


def bury_the_pod(case: Case) -> Plan | None:
    """The pod has ended: in sleep, or by accident. Say how, and remove it."""
    pod = case.pod
    if pod is None or pod.end is None:
        return None
    words = pod.words
    if words is not None and words.slept:
        _fall_asleep(case, words)
    elif case.spec.paused and case.current:
        case.sleep(Reason.PAUSED)
    elif case.current:
        reason = pod.end.reason
        if not case.bound and reason in (Reason.CRASHED, Reason.RUNTIME_EXITED):
            reason = Reason.CRASHED_AT_START
        case.lose(reason, pod.end.message)
    return case.settle(remove=removal(pod, force=pod.over))


def _fall_asleep(case: Case, words: LastWords) -> None:
    if case.spec.paused:
        case.sleep(Reason.PAUSED)
    elif case.wake:
        case.draft.mark_waking()
    elif words.detail != PAUSED:
        case.sleep(Reason.IDLE if words.reason == "idle" else Reason.REQUESTED)
    elif case.current:
        # Told to sleep, and paused no more. Code in the sandbox may say so too, again and again.
        case.draft.mark_waking(hurry=False)


def see_it_off(case: Case, pod: PodFacts) -> Plan:
    """Delete the pod, and once more by force when its time is long over."""
    if pod.deleted_at is None:
        return case.settle(remove=removal(pod))
    overdue = pod.deleted_at + GRACE_OVERDUE
    if pod.has_claim:
        # Its volume might be in use by a container that nobody can see: two writers would destroy it.
        return _wait_for_the_node(case, pod, overdue=overdue)
    longest = pod.grace + GRACE_OVERDUE + SKEW
    if case.still_to_come(overdue, within=longest) is not None:
        return case.settle(look_again_at=overdue)
    # Looked at again, because a finalizer of somebody else may hold it even then.
    return case.settle(remove=removal(pod, force=True), look_again_at=case.now + GRACE_OVERDUE)


def _wait_for_the_node(case: Case, pod: PodFacts, *, overdue: datetime) -> Plan:
    """Its kubelet, or somebody who knows that the node is off, has to say that the pod has ended."""
    if pod.over:
        # What holds it is not its node.
        return case.settle()
    if pod.node_responds and case.now < overdue:
        return case.settle(look_again_at=overdue)
    wanted = not case.spec.paused and (case.draft.asleep_since is None or case.wake)
    return case.wait(Reason.NODE_LOST, pod.node or "") if wanted else case.settle()


def removal(pod: PodFacts, *, force: bool = False) -> Removal:
    return Removal(name=pod.name, uid=pod.uid, force=force)
