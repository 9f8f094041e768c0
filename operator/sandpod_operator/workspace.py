"""The volume that holds a sandbox's files: what its claim says, what has to be written for it, and the
condition WorkspaceReady. Pure.
"""

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandpod_crds import durations
from sandpod_crds.models import Condition, Workspace
from sandpod_crds.names import LABEL_INSTANCE, ConditionType

from .claims import ClaimFacts
from .conditions import Verdict, verdict
from .kinds import CLAIM
from .objects import Json, section
from .observations import Errand, Outcome
from .plan import Plan, Removal, Verb, Write
from .pod_ends import Trouble
from .quantities import parse
from .reasons import Reason
from .resources.claim import build_claim
from .times import SKEW

if TYPE_CHECKING:
    from .case import Case

# A volume is made within seconds, or waits for something that somebody has to see to.
PROVISIONED_WITHIN = timedelta(seconds=30)
# So often is looked whether somebody else still has the claim.
RELEASED_WITHIN = timedelta(seconds=15)
# Somebody has to see to these.
WORTH_AN_EVENT = frozenset(
    {
        Reason.CLAIM_PENDING,
        Reason.CLAIM_LOST,
        Reason.CLAIM_DELETED,
        Reason.CLAIM_MISSING,
        Reason.CLAIM_NOT_FOUND,
        Reason.CANNOT_GROW,
        Reason.DISK_FULL,
        Reason.UNWRITABLE,
        Reason.SETUP_FAILED,
    }
)

# In the scheduler's words, of this version of Kubernetes and of earlier ones.
_NOT_THERE = re.compile(r"volume('s)? node affinity", re.IGNORECASE)
_NO_CLAIM = re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" not found', re.IGNORECASE)
_NO_VOLUME = re.compile(r"unbound (immediate )?persistentvolumeclaim", re.IGNORECASE)


def tend_the_workspace(case: "Case") -> Plan | None:
    """The claim follows the spec, also while the sandbox sleeps: who may delete it, and how large it is."""
    workspace, claim = case.spec.workspace, case.claim
    if workspace is None or workspace.claim_name is not None or claim is None:
        return None
    if not case.knows_files_and_network:
        # Whoever's claim it is to be, the template that is gone may have said.
        return None
    if claim.deleted and _is_untouched(case):
        return _leave_it(claim, case)
    if claim.deleted or not _is_ours(claim, case) or case.refusal_of(CLAIM) is not None:
        return None
    if case.holder is not None:
        # To own it is to take it along when this sandbox is deleted, from under whoever works in it.
        return None
    if case.pod is not None and case.pod.claimed_at is not None and not case.bound:
        # Whoever waits for a warm pod does not wait for this too.
        return None
    change = _changes(claim, workspace, case)
    return case.write(_patch(claim, change)) if change else None


def make_the_workspace(case: "Case") -> Plan | None:
    """A pod could be made before its claim, but not be scheduled."""
    workspace, claim = case.spec.workspace, case.claim
    if workspace is None or case.alive:
        return None
    pod = case.pod
    if case.holder is not None:
        # Two that started at once: nobody has been let into this one's pod yet.
        remove = Removal(name=pod.name, uid=pod.uid) if pod is not None else None
        # Neither the holder's deletion nor its end is sure to concern this sandbox.
        again = case.now + RELEASED_WITHIN
        return case.wait(Reason.CLAIM_IN_USE, case.holder, remove=remove, look_again_at=again)
    if pod is not None and case.other_in_claim is not None and _is_nobody_let_in(case):
        # Nobody is let in before the other is gone.
        case.draft.mark_obstructed(
            pod, image=case.image, reason=Reason.CLAIM_IN_USE, detail=case.other_in_claim
        )
        return case.settle(look_again_at=case.now + RELEASED_WITHIN)
    if pod is not None or workspace.claim_name is not None:
        return None
    if claim is None:
        refusal = case.refusal_of(CLAIM)
        if refusal is not None:
            return case.wait(refusal.reason, refusal.message, until=refusal.retry_at)
        return case.write(_creation(case, workspace))
    if not claim.deleted and _is_kept_for_another(claim, case):
        return case.wait(Reason.CLAIM_TAKEN, _kept_for(claim))
    if claim.deleted or not _is_ours(claim, case):
        return case.wait(Reason.EARLIER_CLAIM, claim.name)
    return None


def workspace_verdict(case: "Case", *, before: Condition | None) -> Verdict:
    workspace, pod = case.spec.workspace, case.pod
    if not case.knows_files_and_network and before is not None:
        return _as_it_was(before)
    if workspace is None:
        return _setup_trouble(case) or _scratch(case)
    if pod is not None and pod.workspace_claim is None:
        return _bad(Reason.WORKSPACE_AT_NEXT_START, pod.name, case)
    return (
        _refused(case)
        or _full_disk(case, before=before)
        or _claim_trouble(case, workspace)
        or _unwritable(case, before=before)
        or _setup_trouble(case)
        or _good_volume(case)
    )


def provisioning_deadline(case: "Case") -> datetime | None:
    """When a claim that still waits is worth a word."""
    claim = case.claim
    if claim is None or claim.phase != "Pending" or case.alive:
        return None
    return _end_of_provisioning(claim, case)


def volume_is_coming(case: "Case") -> bool:
    """The claim is so new that to wait for its volume is nothing to speak of."""
    return case.claim is not None and _end_of_provisioning(case.claim, case) is not None


def _end_of_provisioning(claim: ClaimFacts, case: "Case") -> datetime | None:
    return case.still_to_come(claim.created_at + PROVISIONED_WITHIN, within=PROVISIONED_WITHIN + SKEW)


def volume_obstacle(case: "Case", obstacle: Trouble) -> tuple[Reason, str] | None:
    """What keeps the pod waiting is its volume: there is none, or it is of a node that takes no pods."""
    name, claim = case.claim_name, case.claim
    if name is None or obstacle.reason is not Reason.UNSCHEDULABLE:
        return None
    if _NOT_THERE.search(obstacle.message):
        made_for = f", made for the node {claim.node}" if claim is not None and claim.node else ""
        return Reason.VOLUME_ELSEWHERE, f"PersistentVolumeClaim {name}{made_for}: {obstacle.message}"
    # A podTemplate may name other claims; of those that nobody has labelled, only the scheduler knows.
    missing = _NO_CLAIM.search(obstacle.message)
    if missing is not None and missing["name"] == name:
        return Reason.CLAIM_NOT_FOUND, name
    unbound = claim.phase == "Pending" if claim is not None else case.spec.pod_template is None
    return (Reason.CLAIM_PENDING, name) if unbound and _NO_VOLUME.search(obstacle.message) else None


def _scratch(case: "Case") -> Verdict:
    if case.sleep_after is None:
        return verdict(ConditionType.WORKSPACE_READY, True, Reason.SCRATCH_SPACE_KEPT)
    return verdict(
        ConditionType.WORKSPACE_READY, True, Reason.SCRATCH_SPACE, durations.format(case.sleep_after)
    )


def _refused(case: "Case") -> Verdict | None:
    refusal = case.refusal_of(CLAIM)
    if refusal is None:
        return None
    # Quota may be freed; whatever else is said of a claim that is there, is said of its growth.
    grows = case.claim is not None and refusal.reason is not Reason.QUOTA_EXCEEDED
    return _bad(Reason.CANNOT_GROW if grows else refusal.reason, refusal.message, case)


def _full_disk(case: "Case", *, before: Condition | None) -> Verdict | None:
    disk = case.disk_trouble
    if disk is not None:
        return _bad(Reason.DISK_FULL, disk, case)
    was_full = before is not None and before.reason == Reason.DISK_FULL
    return _as_it_was(before) if before is not None and was_full and case.disk_unknown else None


def _unwritable(case: "Case", *, before: Condition | None) -> Verdict | None:
    bind = case.answer_to(Errand.BIND)
    if bind is not None and bind.outcome is Outcome.DONE:
        return _bad(Reason.UNWRITABLE, case.claim_name or "", case) if bind.unwritable else None
    # Said at the bind only, and not to be forgotten by an operator that was started since.
    return _as_it_was(before) if before is not None and before.reason == Reason.UNWRITABLE else None


def _claim_trouble(case: "Case", workspace: Workspace) -> Verdict | None:
    claim, name = case.claim, case.claim_name or ""
    if case.holder is not None:
        return _bad(Reason.CLAIM_IN_USE, case.holder, case)
    if claim is None:
        if workspace.claim_name is not None:
            return _trouble_of_a_named_claim(case)
        # One in use cannot go.
        return _bad(Reason.CLAIM_MISSING, name, case) if case.pod is None else None
    if _is_kept_for_another(claim, case):
        return _bad(Reason.CLAIM_TAKEN, _kept_for(claim), case)
    if claim.phase == "Lost":
        return _bad(Reason.CLAIM_LOST, name, case)
    if claim.deleted and _is_ours(claim, case):
        return _bad(Reason.CLAIM_DELETED, name, case)
    if case.alive:
        return None
    if claim.phase == "Pending":
        return _bad(Reason.PROVISIONING if volume_is_coming(case) else Reason.CLAIM_PENDING, name, case)
    # Bound while the first pod is on its way: the write that says Running says that too.
    on_its_way = case.pod is not None and volume_is_coming(case)
    return _bad(Reason.PROVISIONING, name, case) if on_its_way else None


def _trouble_of_a_named_claim(case: "Case") -> Verdict | None:
    """It is somebody else's and not watched: what is known of it is whether a pod can have it."""
    obstacle = case.pod.obstacle if case.pod is not None and not case.alive else None
    found = volume_obstacle(case, obstacle) if obstacle is not None else None
    return _bad(*found, case) if found is not None else None


def _setup_trouble(case: "Case") -> Verdict | None:
    setup = case.draft.setup
    if setup is None or setup.result == "Succeeded":
        return None
    reason = Reason.SETUP_FAILED if setup.result == "Failed" else Reason.SETTING_UP
    return _bad(reason, setup.message, case)


def _good_volume(case: "Case") -> Verdict:
    claim, name = case.claim, case.claim_name or ""
    if claim is not None and claim.capacity and parse(claim.size) > parse(claim.capacity):
        return verdict(ConditionType.WORKSPACE_READY, True, Reason.GROWING, claim.resizing or name)
    return verdict(ConditionType.WORKSPACE_READY, True, Reason.WORKSPACE_BOUND, name)


def _as_it_was(before: Condition) -> Verdict:
    holds = before.status == "True"
    return Verdict(ConditionType.WORKSPACE_READY, holds, Reason(before.reason), before.message)


def _is_untouched(case: "Case") -> bool:
    """A warm pod whose runtime nobody has bound yet: nothing of anybody's is in its volume."""
    pod = case.pod
    taken = pod is not None and pod.claimed_at is not None and pod.deleted_at is None
    return taken and _is_nobody_let_in(case)


def _is_nobody_let_in(case: "Case") -> bool:
    return case.bind is None and not case.bound and not case.was_setting_up


def _leave_it(claim: ClaimFacts, case: "Case") -> Plan:
    """Its pool was deleted in the moment of the claim, and the volume goes with it."""
    assert case.pod is not None
    remove = Removal(name=case.pod.name, uid=case.pod.uid)
    return case.wait(Reason.EARLIER_CLAIM, claim.name, remove=remove)


def _is_ours(claim: ClaimFacts, case: "Case") -> bool:
    """Made for this sandbox, or left by an earlier one of its name, or brought by its warm pod."""
    held = case.pod.workspace_claim if case.pod is not None else None
    brought = claim.name in (held, case.status.workspace_claim)
    if _is_kept_for_another(claim, case):
        return False
    return claim.owner.get("uid") in (None, case.uid, case.pool_uid if brought else None)


def _is_kept_for_another(claim: ClaimFacts, case: "Case") -> bool:
    """A warm pod's claim that a sandbox retained: its name is like that of a sandbox named as the pod."""
    held = case.pod is not None and case.pod.workspace_claim == claim.name
    return not claim.owner and not held and claim.sandbox not in ("", case.sandbox.metadata.name)


def _kept_for(claim: ClaimFacts) -> str:
    return f"{claim.name} is kept for the sandbox {claim.sandbox}."


def _creation(case: "Case", workspace: Workspace) -> Write:
    assert case.claim_name is not None
    body = build_claim(
        workspace,
        name=case.claim_name,
        namespace=case.sandbox.metadata.namespace,
        labels=case.labels,
        owner=case.owner if workspace.reclaim == "Delete" else None,
        settings=case.settings,
    )
    return Write(verb=Verb.CREATE, kind=CLAIM, name=case.claim_name, body=body)


def _changes(claim: ClaimFacts, workspace: Workspace, case: "Case") -> Json:
    """The merge patch that makes the claim what the spec says, as far as a claim can be changed."""
    change: Json = {}
    ours = claim.owner.get("uid") == case.uid
    if workspace.reclaim == "Delete" and not ours:
        change["metadata"] = {"ownerReferences": [case.owner]}
    elif workspace.reclaim == "Retain" and claim.owner:
        change["metadata"] = {"ownerReferences": None}
    if claim.sandbox != case.sandbox.metadata.name:
        change.setdefault("metadata", {})["labels"] = {LABEL_INSTANCE: case.sandbox.metadata.name}
    larger = workspace.size is not None and parse(workspace.size) > parse(claim.size)
    if larger and not case.forbids("workspace"):
        change["spec"] = {"resources": {"requests": {"storage": str(workspace.size)}}}
    return change


def _patch(claim: ClaimFacts, change: Json) -> Write:
    # Of this very claim, and no other of its name.
    metadata = {**section(change, "metadata"), "uid": claim.uid}
    return Write(verb=Verb.PATCH, kind=CLAIM, name=claim.name, body={**change, "metadata": metadata})


def _bad(reason: Reason, detail: str, case: "Case") -> Verdict:
    return verdict(ConditionType.WORKSPACE_READY, False, reason, detail, names=case.names)
