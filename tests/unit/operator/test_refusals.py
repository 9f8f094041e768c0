"""What the API server's no to a pod means."""

from datetime import timedelta

import pytest
from sandpod_crds.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
)
from sandpod_crds.names import CHILD_LABELS, LABEL_INSTANCE, LABEL_POOL_UID
from sandpod_operator.reasons import Reason
from sandpod_operator.refusals import LONGEST_MESSAGE, Subject, refusal, stranger

from tests.support.operator_objects import NOW, UID, pod

SUBJECT = Subject(uid=UID, generation=4, invalid=Reason.INVALID_POD)
TEMPLATED = Subject(uid=UID, generation=4, invalid=Reason.INVALID_POD_TEMPLATE)
AWAITED = Subject(uid=UID, generation=4, awaited=True)
QUOTA = Forbidden(403, "Forbidden", 'pods "box" is forbidden: exceeded quota: small')


@pytest.mark.parametrize(
    ("error", "subject", "reason"),
    [
        (QUOTA, SUBJECT, Reason.QUOTA_EXCEEDED),
        (
            Forbidden(403, "Forbidden", 'pods "box" is forbidden: violates PodSecurity "restricted:latest"'),
            SUBJECT,
            Reason.POD_SECURITY,
        ),
        (Forbidden(403, "Forbidden", "User cannot create resource pods"), SUBJECT, Reason.FORBIDDEN),
        (Invalid(422, "Invalid", "spec.x: Invalid value"), SUBJECT, Reason.INVALID_POD),
        (Invalid(422, "Invalid", "spec.x: Invalid value"), TEMPLATED, Reason.INVALID_POD_TEMPLATE),
        (ApiError(400, "BadRequest", "cannot unmarshal"), TEMPLATED, Reason.INVALID_POD_TEMPLATE),
    ],
)
def test_a_refusal_has_a_reason(error: ApiError, subject: Subject, reason: Reason) -> None:
    found = refusal(error, subject=subject, now=NOW, before=None)

    assert found is not None
    assert (found.reason, found.message, found.generation) == (reason, error.message, 4)


@pytest.mark.parametrize(
    "error",
    [
        Throttled(429, "TooManyRequests", ""),
        Unavailable(503, "Unavailable", ""),
        Unavailable(0, "Timeout", ""),
        Gone(410, "Gone", ""),
        Conflict(409, "Conflict", ""),
        NotFound(404, "NotFound", "namespace"),
    ],
)
def test_what_says_nothing_about_the_pod_is_no_refusal(error: ApiError) -> None:
    assert refusal(error, subject=SUBJECT, now=NOW, before=None) is None


@pytest.mark.parametrize(
    ("error", "subject", "first", "longest"),
    [
        (Forbidden(403, "Forbidden", "User cannot create resource pods"), AWAITED, [15, 30, 60], 300),
        (QUOTA, AWAITED, [5, 10, 20], 30),
        (QUOTA, SUBJECT, [5, 10, 20], 300),
    ],
    ids=["forbidden", "quota", "quota for what nobody waits for"],
)
def test_the_same_refusal_waits_longer_each_time_up_to_a_limit(
    error: ApiError, subject: Subject, first: list[int], longest: int
) -> None:
    before, pauses = None, list[timedelta]()
    for _ in range(30):
        before = refusal(error, subject=subject, now=NOW, before=before)
        assert before is not None
        pauses.append(before.retry_at - NOW)

    assert pauses[:3] == [timedelta(seconds=each) for each in first]
    assert pauses[-1] == timedelta(seconds=longest)


def test_another_spec_or_another_reason_begins_anew() -> None:
    before = refusal(QUOTA, subject=SUBJECT, now=NOW, before=None)
    assert before is not None

    changed = refusal(
        QUOTA, subject=Subject(uid=UID, generation=5, invalid=Reason.INVALID_POD), now=NOW, before=before
    )
    other = refusal(Forbidden(403, "Forbidden", "no"), subject=SUBJECT, now=NOW, before=before)
    assert changed is not None
    assert other is not None
    assert (changed.tries, other.tries) == (1, 1)


def test_a_message_is_one_line_and_bounded() -> None:
    found = refusal(Invalid(422, "Invalid", "a\n b" + "c" * 9999), subject=SUBJECT, now=NOW, before=None)

    assert found is not None
    assert found.message.startswith("a b")
    assert len(found.message) == LONGEST_MESSAGE


def test_a_pod_of_our_name_is_ours_by_its_owner_s_uid() -> None:
    owner = {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": "Sandbox",
        "name": "box",
        "uid": "u",
        "controller": True,
    }

    assert stranger(pod(), sandbox_uid=UID) is None
    # An earlier sandbox's: decide removes it.
    assert stranger(pod(ownerReferences=[owner]), sandbox_uid=UID) is None
    assert stranger(pod(ownerReferences=[]), sandbox_uid=UID) == "it belongs to nobody."
    theirs = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    assert stranger(pod(ownerReferences=[theirs]), sandbox_uid=UID) == "it belongs to the ReplicaSet web."


def test_the_volume_of_a_warm_pod_is_not_the_sandboxs_whose_name_it_has() -> None:
    labels = {**CHILD_LABELS, LABEL_POOL_UID: "p"}
    found = pod(labels=labels, ownerReferences=[])

    assert stranger(found, sandbox_uid=UID, heirless=True) == "it belongs to a SandboxPool."
    handed_over = pod(labels={**CHILD_LABELS, LABEL_INSTANCE: "box"}, ownerReferences=[])
    assert stranger(handed_over, sandbox_uid=UID, heirless=True) is None


def test_a_pod_without_our_labels_cannot_be_watched() -> None:
    assert "labels" in str(stranger(pod(labels={}), sandbox_uid=UID))
