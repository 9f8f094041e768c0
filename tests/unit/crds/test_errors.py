"""The API server's refusals become exceptions that callers can tell apart."""

import json

import pytest
from sandpod_crds import errors


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.ApiError),
        (401, errors.ApiError),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Gone),
        (422, errors.Invalid),
        (429, errors.Throttled),
        (500, errors.Unavailable),
        (503, errors.Unavailable),
        (504, errors.Unavailable),
    ],
)
def test_each_status_has_its_exception(status: int, kind: type[errors.ApiError]) -> None:
    body = json.dumps({"kind": "Status", "reason": "Because", "message": "no", "details": {"kind": "pods"}})
    error = errors.from_response(status, body.encode())
    assert type(error) is kind
    assert (error.status, error.reason, error.message, error.details) == (
        status,
        "Because",
        "no",
        {"kind": "pods"},
    )
    assert str(error) == f"{status} Because: no"


def test_a_conflict_says_whether_the_object_exists_already() -> None:
    exists = errors.from_status(409, {"reason": "AlreadyExists", "message": "x"})
    changed = errors.from_status(409, {"reason": "Conflict", "message": "x"})
    assert isinstance(exists, errors.Conflict)
    assert exists.already_exists
    assert isinstance(changed, errors.Conflict)
    assert not changed.already_exists


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"[]", b"null", b'"text"', b"\xff\xfe"])
def test_an_answer_that_is_no_status_is_still_an_error_with_its_text(body: bytes) -> None:
    error = errors.from_response(502, body)
    assert isinstance(error, errors.Unavailable)
    assert error.message


def test_the_time_to_wait_comes_from_the_header_or_else_from_the_details() -> None:
    body = {"message": "slow down", "details": {"retryAfterSeconds": 3}}
    assert errors.from_status(429, body).retry_after == 3
    assert errors.from_status(429, body, retry_after=1).retry_after == 1
    assert errors.from_status(429, {"message": "slow down"}).retry_after is None
