"""What an answer that is no success becomes."""

import json
from typing import Any

import pytest
from sandpod import _requests, errors
from sandpod._failures import from_response

GET = _requests.get(namespace="default", name="demo")
EXEC = _requests.execute_stream(namespace="default", name="demo", body={})
LIST = _requests.list_page(namespace=None)


def failure(
    code: int, body: object, *, request: _requests.Request = GET, **headers: str
) -> errors.SandpodError:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return from_response(status=code, headers=given, body=data, request=request)


def status(code: int, message: str, **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "message": message, "details": details}


RBAC = 'sandboxes.sandpod.dev is forbidden: User "jane" cannot create resource "sandboxes/exec"'


@pytest.mark.parametrize(
    ("error", "kind", "fragment"),
    [
        (failure(401, status(401, "Unauthorized")), errors.Unauthenticated, "Log in again"),
        (failure(401, ""), errors.Unauthenticated, "Log in again"),
        (failure(403, status(403, RBAC)), errors.Forbidden, "sandboxes/exec"),
        (failure(403, status(403, RBAC)), errors.Forbidden, "Ask whoever runs the cluster"),
        (failure(403, status(403, "exceeded quota: x")), errors.Forbidden, "exceeded quota: x"),
        (
            failure(404, status(404, "x", name="demo")),
            errors.NotFound,
            'no sandbox "demo" in namespace "default"',
        ),
        (failure(404, status(404, "n", name="a", kind="namespaces")), errors.NotFound, 'no namespace "a"'),
        (
            failure(404, status(404, "the server could not find the requested resource")),
            errors.NotInstalled,
            "Helm",
        ),
        (failure(404, "404 page not found\n"), errors.NotInstalled, "no Sandpod"),
        (failure(409, status(409, "already exists", name="demo")), errors.Conflict, "already exists"),
        (failure(422, status(422, "spec.image: Invalid value")), errors.Invalid, "spec.image: Invalid value"),
        (failure(400, status(400, "strict decoding error")), errors.Invalid, "strict decoding error"),
        (failure(429, status(429, "too many requests")), errors.Unavailable, "too many"),
        (failure(503, "service unavailable", request=EXEC), errors.Unavailable, "kubectl get apiservice"),
        (
            failure(503, status(503, "apiserver is shutting down"), request=EXEC),
            errors.Unavailable,
            "shutting down",
        ),
        (failure(502, "<html>bad gateway</html>", request=LIST), errors.Unavailable, "bad gateway"),
        (failure(418, "", request=LIST), errors.SandpodError, "418"),
    ],
)
def test_each_answer_becomes_the_error_that_says_it_best(
    error: errors.SandpodError, kind: type[errors.SandpodError], fragment: str
) -> None:
    assert type(error) is kind
    assert fragment in str(error)


def test_a_refusal_of_another_kind_than_rbacs_does_not_send_people_to_their_administrator() -> None:
    assert "Ask" not in str(failure(403, status(403, "exceeded quota: x")))


def test_a_sandbox_that_is_starting_says_when_to_ask_again() -> None:
    body = status(503, 'sandbox "demo" is not ready (phase Starting)', name="demo", kind="sandboxes")
    error = failure(503, body, request=EXEC, retry_after="3")
    assert isinstance(error, errors.NotReady)
    assert error.retry_after == 3
    assert "phase Starting" in error.message


def test_a_runtime_that_takes_nothing_at_the_moment_is_one_that_is_not_ready() -> None:
    body: dict[str, Any] = {
        "code": "CONTAINER_UNAVAILABLE",
        "message": "draining",
        "httpStatus": 503,
        "context": {},
    }
    assert isinstance(failure(503, body, request=EXEC), errors.NotReady)


def test_the_runtimes_errors_keep_their_code_and_context() -> None:
    body = {"code": "VALIDATION_FAILED", "message": "no", "context": {"a": 1}, "suggestion": "write x"}
    error = failure(400, body, request=EXEC)
    assert isinstance(error, errors.RuntimeFailure)
    assert (error.code, error.context, str(error)) == ("VALIDATION_FAILED", {"a": 1}, "no write x")


@pytest.mark.parametrize("body", ["", "[]", "null", "{", '{"kind": "Status"}', '{"code": 5}', "\x00"])
@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 418, 429, 500, 503])
def test_no_answer_is_too_strange_to_be_told(code: int, body: str) -> None:
    assert str(failure(code, body))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "A", "-a", "a?b", "ä", "a" * 300, "a b"])
def test_a_name_that_would_lead_elsewhere_is_not_sent(name: str) -> None:
    with pytest.raises(errors.Invalid):
        _requests.get(namespace="default", name=name)
    with pytest.raises(errors.Invalid):
        _requests.execute_stream(namespace=name, name="demo", body={})
