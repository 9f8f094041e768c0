"""Whatever is sent, the answer is one of the protocol's, and the runtime goes on as before."""

import http.client
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandpod_runtime.errors import STATUS

from tests.support.runtime import Runtime

FIELDS = [
    "command", "sessionId", "timeoutMs", "env", "cwd", "origin", "background", "stdin", "stdinEncoding",
    "outputEncoding", "maxOutputBytes", "onDisconnect", "unknown",
]  # fmt: skip
# No random text as a command: it would run.
COMMANDS = st.sampled_from(["true", "exit 3", "echo ä >&2", "", " ", "\0", "true\n", "# only a comment"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
LIKELY = st.sampled_from(
    [
        "utf-8",
        "base64",
        "kill",
        "detach",
        "user",
        "__DISABLE_SESSION__",
        "/",
        "/tmp",
        "..",
        0,
        1,
        10**30,
        -1,
        1e308,
    ]
)
# What may go wrong with a body that is in order: a directory that cannot be entered, a session that the
# command ends or that takes too long, a crowd of sessions.
EXPECTED = {"COMMAND_EXECUTION_ERROR": (500,), "SESSION_TERMINATED": (410,), "RESOURCE_BUSY": (409,)}
BODIES = st.dictionaries(st.sampled_from(FIELDS), VALUES | LIKELY, max_size=6)

relaxed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def post(runtime: Runtime, path: str, body: bytes) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", runtime.port, timeout=20)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def check(status: int, body: bytes) -> None:
    found: dict[str, Any] = json.loads(body)
    if status == 200:
        assert found["success"] in (True, False)
        return
    assert found["httpStatus"] == status == STATUS[found["code"]]
    assert isinstance(found["context"], dict)
    assert found["code"] != "INTERNAL_ERROR"
    assert status in (400, *EXPECTED.get(found["code"], ())), found


@pytest.fixture
def tidy(runtime: Runtime) -> Iterator[None]:
    """Some bodies make sessions, and some start processes."""
    yield
    with urllib.request.urlopen(f"{runtime.url}/api/session/list") as response:
        sessions: list[str] = json.load(response)["data"]
    for session_id in sessions:
        body = json.dumps({"sessionId": session_id}).encode()
        assert post(runtime, "/api/session/delete", body)[0] == 200


@relaxed
@given(body=BODIES, command=COMMANDS | VALUES.filter(lambda value: not isinstance(value, str)))
@pytest.mark.usefixtures("tidy")
def test_any_object_gets_an_answer_of_the_protocol(
    runtime: Runtime, body: dict[str, Any], command: Any
) -> None:
    text = json.dumps({**body, "command": command} if command is not None else body | {"command": ""})
    check(*post(runtime, "/api/execute", text.encode()))


@relaxed
@given(body=st.binary(max_size=200))
def test_any_bytes_get_an_answer_of_the_protocol(runtime: Runtime, body: bytes) -> None:
    status, answer = post(runtime, "/api/execute", body)
    assert status == 400
    check(status, answer)


@pytest.mark.parametrize(
    "body",
    [
        b'{"x":' + b"[" * 2_000_000,
        b'{"x":' + b"[" * 500_000 + b"]" * 500_000 + b"}",
        b'{"env":' + b'{"a":' * 500_000,
        b'{"command":"true","timeoutMs":' + b"9" * 5_000 + b"}",
        b'{"command":"true","timeoutMs":1e999}',
        b'{"command":"true","timeoutMs":-1}',
        b'{"command":"true","timeoutMs":NaN}',
        b'{"command":"true","timeoutMs":true}',
        b'{"command":"true","maxOutputBytes":99999999999999999999}',
        b'{"command":"\\ud800"}',
        b'{"command":"true","env":{"\\u0000":"x"}}',
        b'{"command":"true","env":["A=B"]}',
        b'{"command":"true","onDisconnect":"explode"}',
        b'{"command":"true","cwd":"' + b"/x" * 3_000 + b'"}',
        b'\xef\xbb\xbf{"command":"true"}',
        b'{"command":"true"}{"command":"true"}',
    ],
    ids=lambda body: body[:30].decode(errors="replace"),
)
def test_what_is_known_to_break_servers_is_refused(runtime: Runtime, body: bytes) -> None:
    for path in ("/api/execute", "/api/execute/stream"):
        status, answer = post(runtime, path, body)
        assert status == 400, answer
        check(status, answer)
    status, _ = post(runtime, "/api/execute", b'{"command":"true"}')
    assert status == 200


def test_a_timeout_of_ages_is_no_problem(runtime: Runtime) -> None:
    status, answer = post(runtime, "/api/execute", b'{"command":"echo yes","timeoutMs":9007199254740992}')
    assert status == 200
    assert json.loads(answer)["stdout"] == "yes\n"


def test_a_thousand_variables_are_fine(runtime: Runtime) -> None:
    env = {f"V{number}": "x" * 100 for number in range(1000)}
    body = json.dumps({"command": 'echo "$V999" | wc -c', "env": env}).encode()
    assert json.loads(post(runtime, "/api/execute", body)[1])["stdout"] == "101\n"
