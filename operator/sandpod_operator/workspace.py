"""The volume that holds a sandbox's files: what its claim says, what has to be written for it, and the
condition WorkspaceReady. Pure.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandpod_crds import durations
from sandpod_crds.models import Condition, Workspace
from sandpod_crds.names import LABEL_INSTANCE, ConditionType

from .claims import ClaimFacts
from .conditions import Verdict, verdict
from .kinds import CLAIM
from .objects import Json, section
from .plan import Plan, Verb, Write
from .quantities import parse
from .reasons import Reason
from .resources.claim import build_claim

if TYPE_CHECKING:
    from .case import Case

# A volume is made within seconds, or waits for something that somebody has to see to.
PROVISIONED_WITHIN = timedelta(seconds=30)


def tend_the_workspace(case: "Case") -> Plan | None:
    """The claim follows the spec, also while the sandbox sleeps: who may delete it, and how large it is."""
    workspace, claim = case.spec.workspace, case.claim
    if workspace is None or workspace.claim_name is not None or claim is None:
        return None
    if claim.deleted or not _is_ours(claim, case) or case.refusal_of(CLAIM) is not None:
        return None
    if case.pod is not None and case.pod.claimed_at is not None and not case.bound:
        # Whoever waits for a warm pod does not wait for this too.
        return None
    change = _changes(claim, workspace, case)
    return case.write(_patch(claim, change)) if change else None


def make_the_workspace(case: "Case") -> Plan | None:
    """A pod could be made before its claim, but not be scheduled."""
    workspace, claim = case.spec.workspace, case.claim
    if workspace is None or workspace.claim_name is not None or case.pod is not None:
        return None
    if claim is None:
        refusal = case.refusal_of(CLAIM)
        if refusal is not None:
            return case.wait(refusal.reason, refusal.message, until=refusal.retry_at)
        return case.write(_creation(case, workspace))
    if claim.deleted or not _is_ours(claim, case):
        return case.wait(Reason.EARLIER_CLAIM, claim.name)
    return None


def workspace_verdict(case: "Case", *, before: Condition | None) -> Verdict:
    workspace = case.spec.workspace
    if workspace is None:
        return _scratch(case)
    name = case.claim_name or "?"
    refusal = case.refusal_of(CLAIM)
    if refusal is not None:
        reason = Reason.CANNOT_GROW if case.claim is not None else refusal.reason
        return _bad(reason, refusal.message)
    setup = case.draft.setup
    disk = case.disk_trouble
    if disk is not None:
        return _bad(Reason.DISK_FULL, disk)
    if before is not None and before.reason == Reason.DISK_FULL and case.disk_unknown:
        return Verdict(ConditionType.WORKSPACE_READY, False, Reason.DISK_FULL, before.message)
    claim = case.claim
    if claim is not None and claim.phase == "Lost":
        return _bad(Reason.CLAIM_LOST, name)
    if claim is not None and claim.phase == "Pending" and not case.alive:
        late = case.now >= claim.created_at + PROVISIONED_WITHIN
        return _bad(Reason.CLAIM_PENDING if late else Reason.PROVISIONING, name)
    if setup is not None and setup.result == "Failed":
        return _bad(Reason.SETUP_FAILED, setup.message)
    if setup is not None and setup.result == "Running":
        return _bad(Reason.SETTING_UP, setup.message)
    if claim is not None and claim.capacity and parse(claim.size) > parse(claim.capacity):
        return verdict(ConditionType.WORKSPACE_READY, True, Reason.GROWING, claim.resizing or name)
    return verdict(ConditionType.WORKSPACE_READY, True, Reason.WORKSPACE_BOUND, name)


def provisioning_deadline(case: "Case") -> datetime | None:
    """When a claim that still waits is worth a word."""
    claim = case.claim
    if claim is None or claim.phase != "Pending" or case.alive:
        return None
    due = claim.created_at + PROVISIONED_WITHIN
    return due if case.now < due else None


def volume_is_coming(case: "Case") -> bool:
    """The claim is so new that to wait for its volume is nothing to speak of."""
    claim = case.claim
    return claim is not None and case.now < claim.created_at + PROVISIONED_WITHIN


def _scratch(case: "Case") -> Verdict:
    setup = case.draft.setup
    if setup is not None and setup.result == "Failed":
        return _bad(Reason.SETUP_FAILED, setup.message)
    if setup is not None and setup.result == "Running":
        return _bad(Reason.SETTING_UP, setup.message)
    if case.sleep_after is None:
        return verdict(ConditionType.WORKSPACE_READY, True, Reason.SCRATCH_SPACE_KEPT)
    return verdict(
        ConditionType.WORKSPACE_READY, True, Reason.SCRATCH_SPACE, durations.format(case.sleep_after)
    )


def _is_ours(claim: ClaimFacts, case: "Case") -> bool:
    """Made for this sandbox, or left by an earlier one of its name, or brought by its warm pod."""
    held = case.pod.workspace_claim if case.pod is not None else None
    brought = claim.name in (held, case.status.workspace_claim)
    return claim.owner.get("uid") in (None, case.uid, case.pool_uid if brought else None)


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
    if workspace.size is not None and parse(workspace.size) > parse(claim.size):
        change["spec"] = {"resources": {"requests": {"storage": str(workspace.size)}}}
    return change


def _patch(claim: ClaimFacts, change: Json) -> Write:
    # Of this very claim: the API server takes the UID of a patch for a precondition.
    metadata = {**section(change, "metadata"), "uid": claim.uid}
    return Write(verb=Verb.PATCH, kind=CLAIM, name=claim.name, body={**change, "metadata": metadata})


def _bad(reason: Reason, detail: str) -> Verdict:
    return verdict(ConditionType.WORKSPACE_READY, False, reason, detail)
