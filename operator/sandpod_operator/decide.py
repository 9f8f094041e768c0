"""The lifecycle of a sandbox. Read it from top to bottom: each phase looks at the situation and decides, or
leaves it to the next. Pure: the same situation at the same time gives the same plan.

A plan is one step. After its writes decide is asked again, with what they have changed, until nothing is
left to do: each step may be the last one before the operator is killed, and nothing is lost.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from sandpod_crds.names import Phase

from .case import Case, earliest
from .departure import (
    PAUSED,
    bury_the_pod,
    guard_the_work,
    keep_one_pod,
    leave_with_the_sandbox,
    let_the_old_pod_go,
    removal,
    see_it_off,
    take_it_back,
    write_down_whose_it_is,
)
from .errors import BadPodTemplate
from .exposure import expose_the_ports
from .fence import fence_the_network
from .kinds import SANDBOX
from .observations import Errand, Outcome
from .permission import ask_permission
from .plan import Ask, Plan, Tone, Verb, Write
from .pods import PodFacts
from .pool.claim import Reading
from .pool.take import end_of_patience, environment_of, take_a_warm_pod
from .reasons import Reason
from .settings import Installation
from .situation import Situation
from .times import SKEW
from .workspace import (
    make_the_workspace,
    take_over_the_volume,
    tend_the_workspace,
    volume_obstacle,
    waits_for_its_volume,
)

# After so long, a start that is still under way is worth a word.
SLOW = timedelta(seconds=60)
# For so long at least a runtime is asked before it is given up.
FAIR = timedelta(seconds=10)
# A runtime that has been told to sleep saves and ends within 20 seconds, or never.
SLEEPY = timedelta(seconds=30)


def decide(situation: Situation, *, now: datetime, installation: Installation) -> Plan:
    sandbox = situation.sandbox
    if sandbox is None or sandbox.metadata.deletion_timestamp is not None:
        return leave_with_the_sandbox(situation)
    case = Case(situation, sandbox, now=now, installation=installation)
    for phase in PHASES:
        if (plan := phase(case)) is not None:
            return expose_the_ports(plan, case)
    raise AssertionError("the last phase always decides")


def end_in_time(case: Case) -> Plan | None:
    """Its lifetime is over: the sandbox is deleted, and all that belongs to it goes with it."""
    if case.deadline is None or case.now < case.deadline:
        return None
    case.tell(Reason.EXPIRED, case.which_lifetime, tone=Tone.NORMAL)
    found = case.sandbox.metadata
    # Of this version only: somebody may have asked it awake a moment ago.
    version = found.resource_version
    return case.depart(Write(verb=Verb.DELETE, kind=SANDBOX, name=found.name, uid=found.uid, version=version))


def stay_asleep(case: Case) -> Plan | None:
    """Nobody wants it awake, or it is paused. What happened to its pod meanwhile does not matter."""
    if case.pod is not None:
        return None
    if case.stays_asleep:
        reason = Reason.PAUSED if case.spec.paused else Reason(case.status.sleep_reason or Reason.IDLE)
        if (case.status.phase, case.status.sleep_reason) != (Phase.ASLEEP, reason):
            # Also one that was to wake and could not, when nobody wants that any more.
            case.sleep(reason)
        return case.settle()
    if case.spec.paused:
        case.sleep(Reason.PAUSED)
        return case.settle()
    return None


def know_the_spec(case: Case) -> Plan | None:
    """Without its template, nobody knows what the sandbox is to be. One that works goes on as it is."""
    trouble = case.effective.trouble
    if trouble is None or case.alive:
        return None
    return case.wait(*trouble, remove=removal(case.pod) if case.pod is not None else None)


def respect_the_name(case: Case) -> Plan | None:
    """A pod has our name and another owner: the pod of an earlier sandbox is removed, anybody else's is
    left alone.
    """
    pod = case.namesake
    if pod is None or case.pod is not None:
        return None
    if pod.of_sandbox or pod in case.orphans:
        case.draft.mark_waiting(Reason.EARLIER_POD)
        return see_it_off(case, pod)
    return case.wait(Reason.NAME_TAKEN, "it belongs to somebody else.")


def start_a_pod(case: Case) -> Plan | None:
    """There is no pod: make one, unless the last attempt says to wait."""
    if case.pod is not None:
        return None
    if case.status.pod_uid is not None:
        case.lose(Reason.POD_DELETED, "by force, or with its node.")
        return case.settle(look_again_at=case.now)
    try:
        pod = case.wanted_pod
    except BadPodTemplate as error:
        return case.wait(Reason.INVALID_POD_TEMPLATE, str(error))
    if case.refusal is not None:
        return case.wait(case.refusal.reason, case.refusal.message, until=case.refusal.retry_at)
    if case.start_at is not None:
        return case.settle(look_again_at=case.start_at)
    return case.create(pod)


def replace_an_outdated_pod(case: Case) -> Plan | None:
    """The spec was changed before anybody could work in the pod: no use in waiting for this one."""
    pod = case.pod
    if pod is None or case.alive or not (case.outdated or case.spec.paused):
        return None
    if case.spec.paused:
        case.sleep(Reason.PAUSED)
    else:
        case.draft.mark_replaced()
        case.tell(Reason.REPLACED, tone=Tone.NORMAL)
    return case.settle(remove=removal(pod))


def name_the_obstacle(case: Case) -> Plan | None:
    """Scheduler or kubelet say why the pod does not start. They keep trying; so there is nothing to do but
    say so.
    """
    pod = case.pod
    if pod is None or pod.obstacle is None or case.alive:
        return None
    if waits_for_its_volume(case, pod.obstacle):
        return None
    reason, detail = volume_obstacle(case, pod.obstacle) or (pod.obstacle.reason, pod.obstacle.message)
    case.draft.mark_obstructed(pod, image=case.image, reason=reason, detail=detail)
    case.draft.observe_wake(case.wake)
    case.tell_once(reason, detail)
    return case.settle()


def wait_for_the_setup(case: Case) -> Plan | None:
    """The runtime is ours and runs spec.setup, for as long as that takes."""
    pod = case.pod
    if pod is None or not case.setting_up:
        return None
    until = end_of_patience(case) or case.end_of_glance
    if until is not None:
        return Plan(ask=case.ask(Errand.SETUP), look_again_at=until)
    case.draft.mark_setting_up(pod, image=case.image)
    case.fulfil_the_wake()
    return case.settle(ask=case.ask(Errand.SETUP))


def wait_for_the_runtime(case: Case) -> Plan | None:
    """The pod is on its way: ask its runtime until it answers, or until it has had its time."""
    pod = case.pod
    if pod is None or case.alive:
        return None
    if case.bind is not None and case.bind.outcome is Outcome.REFUSED:
        case.lose(Reason.BIND_REFUSED, case.bind.message)
        return case.settle(remove=removal(pod))
    look_again_at = case.still_to_come(pod.under_way_since + SLOW, within=SLOW + SKEW)
    reason = Reason.STARTING if look_again_at or pod.running_since else Reason.STARTING_SLOWLY
    if pod.running_since is not None and not case.was_setting_up:
        look_again_at = _end_of_start(case, since=pod.running_since)
        if look_again_at is None:
            case.lose(Reason.RUNTIME_NOT_ANSWERING, f"{case.settings.start_timeout_seconds:g} seconds")
            return case.settle(remove=removal(pod))
    environment = environment_of(case)
    if isinstance(environment, Reading):
        return Plan(reading=environment)
    if environment is not None and environment.problem is not None:
        case.lose(Reason.CONFIG_MISSING, environment.problem)
        return case.settle(remove=removal(pod))
    ask = case.ask(Errand.BIND, subject=case.sleep_after_text)
    if (until := end_of_patience(case)) is not None:
        return Plan(ask=ask, look_again_at=until)
    if case.was_setting_up:
        # Of an operator that was started again, the runtime has to hear once more. Its setup goes on.
        return case.settle(ask=ask)
    _tell_how_it_starts(case, pod, reason)
    case.take_up_the_wake()
    return case.settle(ask=ask, look_again_at=look_again_at)


def _tell_how_it_starts(case: Case, pod: PodFacts, reason: Reason) -> None:
    if reason is Reason.STARTING and pod.cold:
        reason = Reason.STARTING_COLD
    if reason is Reason.STARTING_SLOWLY:
        case.tell_once(reason)
    case.draft.mark_starting(pod, image=case.image, reason=reason, detail=pod.cold)


def _end_of_start(case: Case, *, since: datetime) -> datetime | None:
    """None when it is over."""
    longest = timedelta(seconds=case.settings.start_timeout_seconds)
    if case.ask(Errand.BIND) is None:
        return case.still_to_come(since + longest, within=longest + SKEW)
    # The operator may have been away, or its clock be another than the node's.
    asked_since = case.asked_since or case.now
    due = max(min(since, asked_since) + longest, asked_since + FAIR)
    return due if case.now < due else None


def put_it_to_sleep(case: Case) -> Plan | None:
    """It is paused while somebody may work in it: its runtime saves what there is and ends by itself."""
    pod = case.pod
    if pod is None or not case.spec.paused:
        return None
    since = case.draft.draining_since or case.now
    overdue = case.still_to_come(since + SLEEPY, within=SLEEPY + SKEW)
    if overdue is None:
        case.sleep(Reason.PAUSED)
        return case.settle(remove=removal(pod))
    case.draft.mark_draining(Reason.PAUSING)
    asked = case.answer_to(Errand.SLEEP) is not None
    return case.settle(ask=None if asked else case.ask(Errand.SLEEP, subject=PAUSED), look_again_at=overdue)


def keep_it_running(case: Case) -> Plan | None:
    """The runtime has answered: the sandbox is up until its pod ends. A changed spec waits for that; what
    need not wait, the runtime is told.
    """
    pod = case.pod
    assert pod is not None
    told = case.answer_to(Errand.SETUP) or case.bind
    case.draft.mark_running(pod, answer=case.bind, image=case.image, setup=told.setup if told else None)
    if case.bind is not None:
        case.fulfil_the_wake()
        if pod.claimed_at is None and (case.status.wakes or case.status.restarts):
            # The first start is told by the status alone: it is the one that comes in storms.
            case.tell(Reason.STARTED, tone=Tone.NORMAL)
    elif not pod.node_responds:
        case.tell_once(Reason.NODE_NOT_RESPONDING, pod.node or "")
    again = earliest((case.draft.forgive(), case.disk.ask_again_at))
    return case.settle(ask=_news(case), look_again_at=again)


def _news(case: Case) -> Ask | None:
    """What the runtime does not know yet, the most urgent first. Its answers are taken up on the way."""
    if (wake := case.wake) and case.bound:
        stay = case.answer_to(Errand.STAY, subject=wake)
        if stay is None:
            return case.ask(Errand.STAY, subject=wake)
        # Refused: it is going to sleep. The request stays open, and its end is followed by a start.
        if stay.outcome is Outcome.DONE:
            case.draft.observe_wake(wake)
    told, wanted = case.status.sleep_after, case.sleep_after_text
    if case.bound and case.knows_files_and_network and told != wanted:
        # An answer counts only while the status says that one is waited for. Otherwise whoever changes their
        # mind before it has come would leave the runtime with what they do not want any more.
        adjusted = case.answer_to(Errand.ADJUST, subject=wanted) if told is None else None
        case.draft.note_sleep_after(None)
        if adjusted is None:
            return case.ask(Errand.ADJUST, subject=wanted)
        if adjusted.outcome is Outcome.DONE:
            case.draft.note_sleep_after(wanted)
    if case.disk.is_to_be_asked:
        return case.ask(Errand.CHECK, subject=case.disk.unready_since or "")
    return None


PHASES: tuple[Callable[[Case], Plan | None], ...] = (
    end_in_time,
    keep_one_pod,
    let_the_old_pod_go,
    bury_the_pod,
    take_it_back,
    write_down_whose_it_is,
    take_over_the_volume,
    tend_the_workspace,
    stay_asleep,
    know_the_spec,
    respect_the_name,
    ask_permission,
    take_a_warm_pod,
    make_the_workspace,
    fence_the_network,
    start_a_pod,
    replace_an_outdated_pod,
    name_the_obstacle,
    wait_for_the_setup,
    wait_for_the_runtime,
    put_it_to_sleep,
    guard_the_work,
    keep_it_running,
)
