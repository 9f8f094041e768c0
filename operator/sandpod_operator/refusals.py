"""What it means when the API server does not take a sandbox's pod: whether to try again at once, or to say
why in a condition and try later. Pure.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sandpod_crds.errors import ApiError, Conflict, Forbidden, Gone, NotFound, Throttled, Unavailable
from sandpod_crds.models import Sandbox
from sandpod_crds.names import CHILD_LABELS, LABEL_VERSION, SANDBOX_KIND

from .kinds import CLAIM, INGRESS, POD, Kind
from .objects import Json, controller, entries, is_left_by_a_pool, section
from .observations import Refusal
from .reasons import Reason

LONGEST_PAUSE = timedelta(minutes=5)
PAUSES = {
    Reason.QUOTA_EXCEEDED: timedelta(seconds=5),
    Reason.NAME_TAKEN: timedelta(seconds=5),
    Reason.NAMESPACE_TERMINATING: LONGEST_PAUSE,
    Reason.POD_SECURITY: timedelta(seconds=30),
    Reason.FORBIDDEN: timedelta(seconds=15),
    # Only another spec can help, and that is tried at once.
    Reason.INVALID_POD: LONGEST_PAUSE,
    Reason.INVALID_POD_TEMPLATE: LONGEST_PAUSE,
    Reason.INVALID_CLAIM: LONGEST_PAUSE,
    Reason.UNDONE: timedelta(seconds=5),
    Reason.CLAIM_TAKEN: timedelta(seconds=5),
    Reason.POLICY_TAKEN: timedelta(seconds=5),
    Reason.INGRESS_TAKEN: timedelta(seconds=5),
    Reason.INGRESS_REFUSED: timedelta(seconds=15),
}
# Others end what they do not need, and nobody tells: who waits for it is not to wait long after that.
LONGEST_PAUSE_FOR_QUOTA = timedelta(seconds=30)
LONGEST_MESSAGE = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """Whose object was refused, and what it means when the API server finds fault with the object itself."""

    uid: str
    generation: int
    invalid: Reason = Reason.INVALID_POD
    # Of an object that the sandbox can do without: an admission webhook that is down must not hold it up.
    dispensable: bool = False
    # Somebody waits for it to be made, which nobody does for a warm pod.
    awaited: bool = False


def subject_of(kind: Kind, sandbox: Sandbox) -> Subject:
    invalid = {
        POD: Reason.INVALID_POD if sandbox.spec.pod_template is None else Reason.INVALID_POD_TEMPLATE,
        CLAIM: Reason.INVALID_CLAIM,
        INGRESS: Reason.INGRESS_REFUSED,
    }
    return Subject(
        uid=sandbox.metadata.uid,
        generation=sandbox.metadata.generation,
        invalid=invalid.get(kind, Reason.INVALID_POD),
        dispensable=kind is INGRESS,
        awaited=kind is not INGRESS,
    )


def refusal(error: ApiError, *, subject: Subject, now: datetime, before: Refusal | None) -> Refusal | None:
    """None when the error says nothing about the object."""
    if subject.dispensable and "failed calling webhook" in error.message:
        reason = subject.invalid
    else:
        reason = _reason(error, invalid=subject.invalid)
    if reason is None:
        return None
    return make_refusal(reason, error.message, subject=subject, now=now, before=before)


def make_refusal(
    reason: Reason, message: str, *, subject: Subject, now: datetime, before: Refusal | None
) -> Refusal:
    again = before is not None and (before.reason, before.generation) == (reason, subject.generation)
    tries = before.tries + 1 if before is not None and again else 1
    hurry = subject.awaited and reason is Reason.QUOTA_EXCEEDED
    longest = LONGEST_PAUSE_FOR_QUOTA if hurry else LONGEST_PAUSE
    pause = min(PAUSES[reason] * 2 ** min(tries - 1, 16), longest)
    return Refusal(
        sandbox_uid=subject.uid,
        generation=subject.generation,
        reason=reason,
        message=" ".join(message.split())[:LONGEST_MESSAGE],
        retry_at=now.replace(microsecond=0) + pause,
        tries=tries,
    )


def stranger(found: Json, *, sandbox_uid: str, heirless: bool = False) -> str | None:
    """Why what has the name of our object cannot be it; None when it is ours or an earlier sandbox's.
    `heirless` is what outlives its sandbox and belongs to nobody then.
    """
    metadata = found["metadata"]
    owner = controller(metadata)
    labelled = is_labelled(found)
    if owner.get("uid") == sandbox_uid:
        return None if labelled else "it was, but somebody has changed its labels, by which it is watched."
    if owner.get("kind") == SANDBOX_KIND and labelled:
        return None
    if owner:
        return f"it belongs to the {owner.get('kind')} {owner.get('name')}."
    if is_left_by_a_pool(found):
        return "it belongs to a SandboxPool."
    if heirless and labelled:
        return None
    return "it belongs to nobody."


def strange_ingress(found: Json, wanted: Json) -> str | None:
    """As `stranger`; its name and its labels say whose it is, as it has no owner."""
    labels = {key: value for key, value in wanted["metadata"]["labels"].items() if key != LABEL_VERSION}
    if labels.items() <= section(found["metadata"], "labels").items():
        return None
    name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
    return f"{name} in {namespace} does not have its labels."


def is_labelled(found: Json) -> bool:
    """The watch sees it."""
    return CHILD_LABELS.items() <= section(found["metadata"], "labels").items()


def _reason(error: ApiError, *, invalid: Reason) -> Reason | None:
    if may_pass(error):
        return None
    if not isinstance(error, Forbidden):
        # 422 breaks a rule, 400 has a wrong type somewhere, others are admission webhooks' own.
        return invalid
    if namespace_is_going(error):
        return Reason.NAMESPACE_TERMINATING
    if "exceeded quota" in error.message:
        return Reason.QUOTA_EXCEEDED
    if "violates PodSecurity" in error.message:
        return Reason.POD_SECURITY
    return Reason.FORBIDDEN


def may_pass(error: ApiError) -> bool:
    """The same request may work in a moment."""
    passing = isinstance(error, Throttled | Unavailable | Gone | Conflict | NotFound)
    return passing or not 400 <= error.status < 500


def namespace_is_going(error: ApiError) -> bool:
    return any(cause.get("reason") == "NamespaceTerminating" for cause in entries(error.details, "causes"))
