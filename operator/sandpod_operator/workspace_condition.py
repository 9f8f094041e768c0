"""The condition WorkspaceReady: whether files are kept, and what is wrong with their volume. Pure."""

from typing import TYPE_CHECKING

from sandpod_crds import durations
from sandpod_crds.models import Condition, Workspace
from sandpod_crds.names import ConditionType

from .conditions import Verdict, verdict
from .kinds import CLAIM
from .observations import Errand, Outcome
from .quantities import parse
from .reasons import Reason
from .workspace import (
    is_kept_for_another,
    is_ours,
    is_to_grow,
    kept_for,
    volume_is_coming,
    volume_obstacle,
)

if TYPE_CHECKING:
    from .case import Case

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


def workspace_verdict(case: "Case", *, before: Condition | None) -> Verdict:
    workspace, pod = case.spec.workspace, case.pod
    if not case.knows_files_and_network and before is not None:
        return _as_it_was(before)
    if workspace is None:
        return _setup_trouble(case) or _scratch(case)
    if pod is not None and pod.workspace_claim is None:
        return _bad(Reason.WORKSPACE_AT_NEXT_START, pod.name, case)
    return (
        _refused(case, workspace)
        or _full_disk(case, before=before)
        or _claim_trouble(case, workspace)
        or _unwritable(case, before=before)
        or _setup_trouble(case)
        or _good_volume(case)
    )


def _scratch(case: "Case") -> Verdict:
    if case.sleep_after is None:
        return verdict(ConditionType.WORKSPACE_READY, True, Reason.SCRATCH_SPACE_KEPT)
    return verdict(
        ConditionType.WORKSPACE_READY, True, Reason.SCRATCH_SPACE, durations.format(case.sleep_after)
    )


def _refused(case: "Case", workspace: Workspace) -> Verdict | None:
    refusal, claim = case.refusal_of(CLAIM), case.claim
    if refusal is None:
        return None
    larger = claim is not None and is_to_grow(claim, workspace)
    # Quota may be freed, and who undoes it may stop.
    grows = larger and refusal.reason not in (Reason.QUOTA_EXCEEDED, Reason.UNDONE)
    return _bad(Reason.CANNOT_GROW if grows else refusal.reason, refusal.message, case)


def _full_disk(case: "Case", *, before: Condition | None) -> Verdict | None:
    disk = case.disk.trouble
    if disk is not None:
        return _bad(Reason.DISK_FULL, disk, case)
    was_full = before is not None and before.reason == Reason.DISK_FULL
    return _as_it_was(before) if before is not None and was_full and case.disk.is_unknown else None


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
        # One of a pod that has a node cannot go.
        return _bad(Reason.CLAIM_MISSING, name, case) if case.pod is None or case.pod.node is None else None
    if is_kept_for_another(claim, case):
        return _bad(Reason.CLAIM_TAKEN, kept_for(claim), case)
    if claim.phase == "Lost":
        return _bad(Reason.CLAIM_LOST, name, case)
    if claim.deleted and is_ours(claim, case):
        return _bad(Reason.CLAIM_DELETED, name, case)
    if case.alive:
        return None
    if claim.phase == "Pending":
        return _bad(Reason.PROVISIONING if volume_is_coming(case) else Reason.CLAIM_PENDING, name, case)
    # Bound while the first pod is on its way: the write that says Running says that too.
    on_its_way = case.pod is not None and volume_is_coming(case) and case.draft.setup is None
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


def _bad(reason: Reason, detail: str, case: "Case") -> Verdict:
    return verdict(ConditionType.WORKSPACE_READY, False, reason, detail, names=case.names)
