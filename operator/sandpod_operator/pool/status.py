"""What a pool says about itself: its counts, and the sentences of its conditions. Pure."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from sandpod_crds.models import Condition, SandboxPool, SandboxPoolStatus

from ..conditions import condition
from ..objects import Json
from ..observations import Refusal
from ..pod_ends import Trouble
from ..reasons import Reason
from .pod import waiting_selector
from .share import Share

READY = "Ready"
TEMPLATE_FOUND = "TemplateFound"
SECRETS_READABLE = "SecretsReadable"
TYPES = (READY, TEMPLATE_FOUND, SECRETS_READABLE)


class PoolReason(StrEnum):
    ALL_READY = "AllReady"
    FILLING = "Filling"
    REPLACING = "Replacing"
    PODS_FAIL = "PodsFail"
    PODS_VANISH = "PodsVanish"
    WARM_PODS_LIMITED = "WarmPodsLimited"
    # TemplateFound
    FOUND = "Found"
    NOT_FOUND = "NotFound"
    INVALID_TEMPLATE = "InvalidTemplate"
    POLICY_EXCEEDED = "PolicyExceeded"
    # SecretsReadable
    READABLE = "Readable"
    WITHHELD = "Withheld"


SENTENCES = {
    PoolReason.ALL_READY: "As many pods as asked for are warm.",
    PoolReason.FILLING: "Pods are starting; sandboxes that find none start cold.",
    PoolReason.REPLACING: "Pods of an earlier template are being replaced. Sandboxes start cold until there "
    "are pods of the present one.",
    PoolReason.PODS_FAIL: "Warm pods do not come up: {detail} Correct the template; it is tried again about "
    "once a minute, and a changed template at once.",
    PoolReason.PODS_VANISH: "Somebody deletes or changes warm pods as soon as they are made. The operator "
    "makes others a minute later; find out who it is.",
    PoolReason.WARM_PODS_LIMITED: "The SandboxPolicy {share.policy} allows {share.most} warm pods in this "
    "namespace (maxWarmPods), and the older pools ask for {share.before}: {share.left} are left for this "
    "one. Lower spec.replicas here or there, or ask the platform team for more.",
    PoolReason.FOUND: "New pods are made from the SandboxTemplate {template}.",
    PoolReason.NOT_FOUND: "There is no SandboxTemplate {template} in this namespace. Create it, or correct "
    "spec.templateRef; pods that are there already stay.",
    PoolReason.INVALID_TEMPLATE: "The SandboxTemplate {template} does not make a pod: {detail} Correct it; "
    "pods that are there already stay.",
    PoolReason.POLICY_EXCEEDED: "The platform team's policy does not allow the pods of the SandboxTemplate "
    "{template}: {detail} Pods that are there already stay.",
    PoolReason.READABLE: "The operator may read what the template's environment refers to.",
    PoolReason.WITHHELD: "The template's environment refers to Secrets or ConfigMaps, which the operator may "
    "not read in this namespace: every sandbox starts cold. Add the namespace to the chart's "
    "pools.readSecrets, or take the references out of the template.",
}
REFUSALS = {
    Reason.QUOTA_EXCEEDED: "The namespace's quota is used up: {detail} Raise the quota, or lower "
    "spec.replicas.",
    Reason.POD_SECURITY: "The namespace's Pod Security level does not allow the pod: {detail} Correct the "
    "template, or ask for another level.",
    Reason.POLICY_TAKEN: "The name of the NetworkPolicy that the pool's pods need is taken: {detail} Delete "
    "that policy; no pod is made without its own.",
    Reason.NAMESPACE_TERMINATING: "The namespace is being deleted, and the pool with it.",
    Reason.UNDONE: "Somebody changes or deletes the NetworkPolicy that the pool's pods need, again and "
    "again: {detail} Find out who it is; no pod is made without it.",
}
REFUSED = "The API server does not accept a warm pod: {detail} Correct the template."
OBSTACLE = "Warm pods cannot start: {detail} The cluster keeps trying."


def condition_of_ready(
    *,
    ready: int,
    wanted: int,
    old: int,
    refusal: Refusal | None,
    troubles: Sequence[tuple[Trouble, bool]],
    before: Condition | None,
    share: Share | None = None,
    vanished: bool = False,
) -> tuple[bool, str, str]:
    """The worst that is known. A trouble comes with whether its pod has ended. `share` is less than what the
    pool asks for, and all that is wanted then.
    """
    # Pods that are there already have lost their wall then.
    open_to_all = refusal is not None and refusal.reason in (Reason.POLICY_TAKEN, Reason.UNDONE)
    enough = ready >= wanted and not old and not open_to_all
    if enough and share is None:
        return True, PoolReason.ALL_READY, SENTENCES[PoolReason.ALL_READY]
    if not enough and refusal is not None:
        text = REFUSALS.get(refusal.reason, REFUSED)
        return False, refusal.reason, text.format(detail=_ended(refusal.message))
    for trouble, over in troubles:
        if over:
            detail = _ended(trouble.message)
            return False, PoolReason.PODS_FAIL, SENTENCES[PoolReason.PODS_FAIL].format(detail=detail)
        return False, trouble.reason, OBSTACLE.format(detail=_ended(trouble.message))
    if before is not None and before.reason == PoolReason.PODS_FAIL and ready < wanted:
        # Until the next ones have come up, or failed too.
        return False, before.reason, before.message
    if vanished and not enough:
        return False, PoolReason.PODS_VANISH, SENTENCES[PoolReason.PODS_VANISH]
    if share is not None:
        limited = PoolReason.WARM_PODS_LIMITED
        return False, limited, SENTENCES[limited].format(share=share)
    reason = PoolReason.REPLACING if old else PoolReason.FILLING
    return False, reason, SENTENCES[reason]


class PoolDraft:
    """The status while it is being worked out."""

    def __init__(self, pool: SandboxPool, *, now: datetime) -> None:
        self._pool = pool
        self._now = now.replace(microsecond=0)
        self._conditions = {each.type: each for each in pool.status.conditions}

    def say(self, kind: str, holds: bool, reason: str, message: str) -> None:
        self._conditions[kind] = condition(
            kind,
            holds=holds,
            reason=str(reason),
            message=message,
            before=self._conditions.get(kind),
            now=self._now,
            generation=self._pool.metadata.generation,
        )

    def said(self, kind: str) -> Condition | None:
        return self._conditions.get(kind)

    def unsay(self, kind: str) -> None:
        self._conditions.pop(kind, None)

    def finish(
        self,
        *,
        replicas: int,
        ready: int,
        pending: int,
        updated: int,
        claimed: int,
        template_hash: str | None,
    ) -> SandboxPoolStatus | None:
        """The whole status; None when it says what the old one says."""
        others = [each for each in self._conditions.values() if each.type not in TYPES]
        ours = [self._conditions[kind] for kind in TYPES if kind in self._conditions]
        status = SandboxPoolStatus(
            replicas=replicas,
            ready_replicas=ready,
            pending_replicas=pending,
            updated_replicas=updated,
            claimed=claimed,
            selector=waiting_selector(self._pool.metadata.uid),
            conditions=(*ours, *others),
            observed_generation=self._pool.metadata.generation,
            template_hash=template_hash or self._pool.status.template_hash,
            lending=self._pool.status.lending,
        )
        return None if status == self._pool.status else status


def status_patch(status: SandboxPoolStatus) -> Json:
    """A merge patch: what is empty is taken away, a zero stays."""
    given = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    names = [field.alias or name for name, field in SandboxPoolStatus.model_fields.items()]
    return {name: given.get(name) for name in names}


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
