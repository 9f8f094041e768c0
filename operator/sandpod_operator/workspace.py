"""The volume that holds a sandbox's files: whose its claim is, and what has to be written for it. Pure."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandpod_crds.models import Workspace
from sandpod_crds.names import LABEL_INSTANCE, LABEL_POOL_UID, ConditionType

from .claims import ClaimFacts
from .kinds import CLAIM
from .objects import Json, section
from .plan import Plan, Removal, Verb, Write
from .pod_ends import Trouble
from .pods import ANNOTATION_POOL, PodFacts
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

# In the scheduler's words, of this version of Kubernetes and of earlier ones.
_NOT_THERE = re.compile(r"volume('s)? node affinity", re.IGNORECASE)
_NO_CLAIM = re.compile(r'persistentvolumeclaim "(?P<name>[^"]+)" not found', re.IGNORECASE)
_ANY_VOLUME = re.compile(r"volume|\bpvc", re.IGNORECASE)
_NO_VOLUME = re.compile(r"unbound (immediate )?persistentvolumeclaim", re.IGNORECASE)


def take_over_the_volume(case: "Case") -> Plan | None:
    """The warm pod is gone that said whose the volume is that came with it; now only the status does. While
    it was there, nobody had to wait for this write.
    """
    claim = case.brought
    if claim is None or not claim.of_pool or _is_held(claim, case):
        return None
    if not case.knows_files_and_network or case.refusal_of(CLAIM) is not None:
        return None
    retained = case.spec.workspace is not None and case.spec.workspace.reclaim == "Retain"
    return case.write(_patch(claim, _adoption(case, retained=retained)))


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
    if claim.deleted or not is_ours(claim, case) or case.refusal_of(CLAIM) is not None:
        return None
    if case.holder is not None:
        # To own it is to take it along when this sandbox is deleted, from under whoever works in it.
        return None
    if case.pod is not None and case.pod.claimed_at is not None and not case.bound:
        # Whoever waits for a warm pod does not wait for this too.
        return None
    # In this order: a class that cannot grow must not keep a volume from being retained.
    change = _new_keeper(claim, workspace, case) or _growth(claim, workspace, case)
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
    if workspace.claim_name is not None:
        return None
    if pod is not None:
        return _make_it_again(pod, workspace, case)
    if claim is None:
        refusal = case.refusal_of(CLAIM)
        if refusal is not None:
            return case.wait(refusal.reason, refusal.message, until=refusal.retry_at)
        return _make(case, workspace)
    if not claim.deleted and is_kept_for_another(claim, case):
        return case.wait(Reason.CLAIM_TAKEN, kept_for(claim))
    if claim.deleted or not is_ours(claim, case):
        return case.wait(Reason.EARLIER_CLAIM, claim.name)
    return None


def _make_it_again(pod: PodFacts, workspace: Workspace, case: "Case") -> Plan | None:
    """Somebody has deleted the claim before the pod that waits for it got a node: from then on, it could not
    go. When it may not be made now, the pod still says that it waits, and WorkspaceReady why.
    """
    gone = case.claim is None and pod.workspace_claim is not None and pod.node is None
    return _make(case, workspace) if gone and case.refusal_of(CLAIM) is None else None


def provisioning_deadline(case: "Case") -> datetime | None:
    """When a claim that still waits is worth a word."""
    claim = case.claim
    if claim is None or claim.phase != "Pending" or case.alive:
        return None
    return _end_of_provisioning(claim, case)


def waits_for_its_volume(case: "Case", obstacle: Trouble) -> bool:
    """Not worth a word yet: the scheduler looks again by itself as soon as the volume is there."""
    if obstacle.reason is not Reason.UNSCHEDULABLE or not _ANY_VOLUME.search(obstacle.message):
        return False
    return volume_is_coming(case)


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


def _is_untouched(case: "Case") -> bool:
    """A warm pod whose runtime nobody has bound yet: nothing of anybody's is in its volume."""
    pod = case.pod
    taken = pod is not None and pod.claimed_at is not None and pod.deleted_at is None
    return taken and _is_nobody_let_in(case)


def _is_nobody_let_in(case: "Case") -> bool:
    return case.bind is None and not case.bound and not case.was_setting_up


def _leave_it(claim: ClaimFacts, case: "Case") -> Plan:
    """Somebody has deleted it in the moment of the claim."""
    assert case.pod is not None
    remove = Removal(name=case.pod.name, uid=case.pod.uid)
    return case.wait(Reason.EARLIER_CLAIM, claim.name, remove=remove)


def is_ours(claim: ClaimFacts, case: "Case") -> bool:
    """Made for this sandbox, or left by an earlier one of its name, or brought by its warm pod."""
    if is_kept_for_another(claim, case):
        return False
    if claim.of_pool:
        return _is_held(claim, case) or case.brought == claim
    return claim.owner.get("uid") in (None, case.uid)


def is_kept_for_another(claim: ClaimFacts, case: "Case") -> bool:
    """A warm pod's claim that a sandbox retained: its name is like that of a sandbox named as the pod."""
    return (
        not claim.owner
        and not _is_held(claim, case)
        and claim.sandbox not in ("", case.sandbox.metadata.name)
    )


def _is_held(claim: ClaimFacts, case: "Case") -> bool:
    """By its pod."""
    return case.pod is not None and case.pod.workspace_claim == claim.name


def is_to_grow(claim: ClaimFacts, workspace: Workspace) -> bool:
    return workspace.size is not None and parse(workspace.size) > parse(claim.size)


def kept_for(claim: ClaimFacts) -> str:
    return f"{claim.name} is kept for the sandbox {claim.sandbox}."


def _make(case: "Case", workspace: Workspace) -> Plan:
    """An empty one. Whoever had files in one that is gone is told."""
    creation = _creation(case, workspace)
    before = next((c for c in case.status.conditions if c.type == ConditionType.WORKSPACE_READY), None)
    if before is None or before.reason not in (Reason.WORKSPACE_BOUND, Reason.GROWING):
        return case.write(creation)
    return case.write(replace(creation, notice=case.notice(Reason.CLAIM_MISSING, creation.name)))


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


def _new_keeper(claim: ClaimFacts, workspace: Workspace, case: "Case") -> Json:
    """The merge patch after which the claim goes with the sandbox, or stays, as the spec says."""
    if claim.of_pool:
        # One that is to stay must say so in time: without its pod and its sandbox, it would be swept up.
        return _adoption(case, retained=True) if workspace.reclaim == "Retain" else {}
    metadata: Json = {}
    ours = claim.owner.get("uid") == case.uid
    if workspace.reclaim == "Delete" and not ours:
        metadata["ownerReferences"] = [case.owner]
    elif workspace.reclaim == "Retain" and claim.owner:
        metadata["ownerReferences"] = None
    if claim.sandbox != case.sandbox.metadata.name:
        metadata["labels"] = {LABEL_INSTANCE: case.sandbox.metadata.name}
    return {"metadata": metadata} if metadata else {}


def _adoption(case: "Case", *, retained: bool) -> Json:
    """The merge patch after which it has nothing to do with a pool any more."""
    metadata: Json = {
        "labels": {LABEL_INSTANCE: case.sandbox.metadata.name, LABEL_POOL_UID: None},
        "annotations": {ANNOTATION_POOL: None},
    }
    if not retained:
        metadata["ownerReferences"] = [case.owner]
    return {"metadata": metadata}


def _growth(claim: ClaimFacts, workspace: Workspace, case: "Case") -> Json:
    """The merge patch after which it is as large as the spec says; a claim cannot become smaller."""
    if not is_to_grow(claim, workspace) or case.forbids("workspace"):
        return {}
    return {"spec": {"resources": {"requests": {"storage": str(workspace.size)}}}}


def _patch(claim: ClaimFacts, change: Json) -> Write:
    # Of this very claim, and no other of its name.
    metadata = {**section(change, "metadata"), "uid": claim.uid}
    return Write(verb=Verb.PATCH, kind=CLAIM, name=claim.name, body={**change, "metadata": metadata})
