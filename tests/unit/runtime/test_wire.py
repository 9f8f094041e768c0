"""Times, events and errors as they are spelled on the wire."""

import json
import re
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime import clock, sse
from sandpod_runtime.errors import STATUS, Fault, invalid
from sandpod_runtime.models.exec import ExecuteRequest
from sandpod_runtime.surfaces.exec_reply import OutputEvents
from sandpod_runtime.wire import decoded


@given(seconds=st.floats(0, 32_503_680_000))
def test_a_time_has_milliseconds_and_a_z_and_is_that_time(seconds: float) -> None:
    text = clock.timestamp(seconds)
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z", text)
    read = datetime.fromisoformat(text)
    assert read.tzinfo == UTC
    assert 0 <= seconds - read.timestamp() < 0.0011


@given(text=st.text())
def test_an_event_is_one_line_of_ascii_that_is_the_text(text: str) -> None:
    block = sse.data_event("stdout", sse.ascii_json(text))
    assert block.isascii()
    assert block.startswith(b"data: {")
    assert block.endswith(b"}\n\n")
    assert block.count(b"\n") == 2
    found = json.loads(block[6:])
    assert (found["type"], found["data"]) == ("stdout", text)


@given(fields=st.dictionaries(st.sampled_from(["command", "pid", "exitCode"]), st.text() | st.integers()))
def test_a_small_event_is_one_line_of_ascii_too(fields: dict[str, Any]) -> None:
    block = sse.event("start", **fields)
    assert block.isascii()
    assert block.count(b"\n") == 2
    found = json.loads(block[6:])
    assert found.pop("timestamp")
    assert found == {"type": "start", **fields}


def test_an_event_never_holds_what_is_not_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        sse.event("result", value=float("nan"))


@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 200)))
def test_output_in_events_is_the_same_however_it_was_cut(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut <= len(data)), len(data)]
    events = OutputEvents(base64=False)
    blocks = [events.of("stdout", data[a:b]) for a, b in pairwise(edges)]
    blocks.append(events.end(note=""))
    found = [json.loads(block[6:]) for block in b"".join(blocks).split(b"\n\n") if block]
    assert "".join(event["data"] for event in found) == data.decode(errors="replace")


# Section 2.2 of the protocol, and what Sandpod adds.
PROTOCOL = {
    400: "IS_DIRECTORY NOT_DIRECTORY NAME_TOO_LONG INVALID_COMMAND INVALID_PORT INVALID_PORT_NUMBER "
    "CUSTOM_DOMAIN_REQUIRED INVALID_GIT_URL INVALID_JSON_RESPONSE VALIDATION_FAILED MISSING_CREDENTIALS "
    "INVALID_MOUNT_CONFIG BACKUP_EXPIRED INVALID_BACKUP_CONFIG",
    401: "GIT_AUTH_FAILED UNAUTHENTICATED",
    403: "PERMISSION_DENIED COMMAND_PERMISSION_DENIED PROCESS_PERMISSION_DENIED READ_ONLY",
    404: "FILE_NOT_FOUND COMMAND_NOT_FOUND PROCESS_NOT_FOUND PORT_NOT_EXPOSED GIT_REPOSITORY_NOT_FOUND "
    "GIT_BRANCH_NOT_FOUND CONTEXT_NOT_FOUND WATCH_NOT_FOUND BACKUP_NOT_FOUND",
    408: "PROCESS_READY_TIMEOUT",
    409: "FILE_EXISTS PORT_ALREADY_EXPOSED PORT_IN_USE RESOURCE_BUSY SESSION_ALREADY_EXISTS "
    "OPERATION_INTERRUPTED ALREADY_BOUND NOT_BOUND",
    410: "SESSION_DESTROYED SESSION_TERMINATED",
    413: "FILE_TOO_LARGE",
    500: "NO_SPACE TOO_MANY_FILES TOO_MANY_LINKS FILESYSTEM_ERROR COMMAND_EXECUTION_ERROR STREAM_START_ERROR "
    "PROCESS_ERROR PROCESS_EXITED_BEFORE_READY PORT_OPERATION_ERROR GIT_CLONE_FAILED GIT_CHECKOUT_FAILED "
    "GIT_OPERATION_FAILED CODE_EXECUTION_ERROR BUCKET_MOUNT_ERROR BUCKET_UNMOUNT_ERROR S3FS_MOUNT_ERROR "
    "BACKUP_CREATE_FAILED BACKUP_RESTORE_FAILED WATCH_START_ERROR WATCH_STOP_ERROR UNKNOWN_ERROR "
    "INTERNAL_ERROR",
    501: "PYTHON_NOT_AVAILABLE JAVASCRIPT_NOT_AVAILABLE",
    502: "SERVICE_NOT_RESPONDING GIT_NETWORK_ERROR",
    503: "INTERPRETER_NOT_READY OPENCODE_STARTUP_FAILED RPC_TRANSPORT_ERROR CONTAINER_UNAVAILABLE",
}


def test_every_code_has_the_protocols_status() -> None:
    assert {code: status for status, codes in PROTOCOL.items() for code in codes.split()} == STATUS


def test_an_error_body_has_every_field_that_clients_read() -> None:
    body = Fault("INVALID_COMMAND", "no", operation="command.execute", suggestion="try this").body()
    assert body.pop("timestamp")
    assert body == {
        "code": "INVALID_COMMAND",
        "message": "no",
        "context": {},
        "httpStatus": 400,
        "operation": "command.execute",
        "suggestion": "try this",
    }


def test_a_validation_error_names_the_field() -> None:
    fault = invalid("path", "is empty", code="INVALID_PATH")
    assert fault.context == {
        "validationErrors": [{"field": "path", "message": "is empty", "code": "INVALID_PATH"}]
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"command":5}', "command"),
        (b'{"env":{"A":1}}', "env[...]"),
        (b'{"timeoutMs":-1}', "timeoutMs"),
        (b"[]", "body"),
        (b"{", "body"),
        (b'{"x":' + b"[" * 100_000, "body"),
    ],
)
def test_decoding_names_the_field_that_is_wrong(body: bytes, field: str) -> None:
    with pytest.raises(Fault) as caught:
        decoded(body, msgspec.json.Decoder(ExecuteRequest))
    problems: Any = caught.value.context["validationErrors"]
    assert problems[0]["field"] == field
