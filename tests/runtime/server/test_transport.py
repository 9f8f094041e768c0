"""What holds for every request: headers, statuses, the error body, big and bad bodies."""

import asyncio
import io
import json
import re
from typing import Any

import aiohttp
import pytest

from tests.support.events import TIMESTAMP
from tests.support.runtime import Runtime

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, Authorization, X-Session-Id, X-Sandbox-Id, X-Trace-Id",
}

POST = b"POST /api/execute HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


def check_fault(body: dict[str, Any], *, code: str, status: int) -> None:
    assert body["code"] == code
    assert body["httpStatus"] == status
    assert isinstance(body["message"], str)
    assert isinstance(body["context"], dict)
    assert TIMESTAMP.match(body["timestamp"])


async def raw(runtime: Runtime, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """What the runtime answers to these very bytes, after which they hang up their side."""
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(request)
    try:
        answer = await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", None),
        ("GET", "/api/ping", None),
        ("POST", "/api/execute", {"command": "true"}),
        ("POST", "/api/execute", {"command": ""}),
        ("POST", "/api/execute/stream", {"command": "true"}),
        ("POST", "/api/execute/stream", {}),
        ("GET", "/no/such/path", None),
        ("DELETE", "/api/execute", None),
        ("OPTIONS", "/api/execute", None),
    ],
)
async def test_every_reply_carries_the_three_cors_headers(
    http: aiohttp.ClientSession, method: str, path: str, body: Any
) -> None:
    async with http.request(method, path, json=body) as response:
        await response.read()
    assert {name: response.headers.get(name) for name in CORS} == CORS


async def test_what_is_not_http_gets_the_cors_headers_and_an_error_body_too(runtime: Runtime) -> None:
    status, headers, body = await raw(runtime, b"NONSENSE\r\n\r\n")
    assert status == 400
    assert {name: headers.get(name) for name in CORS} == CORS
    fault = json.loads(body)
    check_fault(fault, code="VALIDATION_FAILED", status=400)
    assert [problem["field"] for problem in fault["context"]["validationErrors"]] == ["request"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/nothing"),
        ("GET", "/api/execute"),  # wrong method
        ("POST", "/api/ping"),
        ("PATCH", "/api/ping"),
        ("HEAD", "/api/ping"),
        ("POST", "/api/execute/"),  # no tolerance for slashes
        ("POST", "//api/execute"),
        ("POST", "/API/EXECUTE"),
        ("POST", "/api/%65xecute"),  # what the gateway did not see must not work here
        ("POST", "/api/./execute"),
        ("GET", "/ws/pty"),
    ],
)
async def test_an_unknown_path_or_method_is_a_404_of_the_protocol(
    runtime: Runtime, method: str, path: str
) -> None:
    request = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    status, headers, body = await raw(runtime, request.encode())
    assert status == 404
    assert headers["Content-Type"] == "application/json"
    if method != "HEAD":
        found = json.loads(body)
        check_fault(found, code="UNKNOWN_ERROR", status=404)
        assert found["context"] == {}


async def test_options_answers_204_without_a_body(http: aiohttp.ClientSession) -> None:
    async with http.options("/api/whatever") as response:
        assert response.status == 204
        assert await response.read() == b""


async def test_get_with_a_json_content_type_and_no_body_succeeds(http: aiohttp.ClientSession) -> None:
    for path in ("/api/ping", "/api/version", "/api/commands", "/api/lifecycle"):
        async with http.get(path, headers={"Content-Type": "application/json"}) as response:
            assert response.status == 200
            assert response.headers["Content-Type"] == "application/json"
            body = await response.json()
        assert body["success"] is True
        assert TIMESTAMP.match(body["timestamp"])


@pytest.mark.parametrize("path", ["/api/execute", "/api/execute/stream"])
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b"null", b"42", b'{"command":"true"', b"\xff\xfe", b'{"command":"\xff"}'],
)
async def test_a_body_that_is_not_a_json_object_is_refused_without_a_stack_trace(
    http: aiohttp.ClientSession, path: str, body: bytes
) -> None:
    async with http.post(path, data=body, headers={"Content-Type": "application/json"}) as response:
        found = await response.json()
        assert response.status == 400
    check_fault(found, code="VALIDATION_FAILED", status=400)
    assert found["context"]["validationErrors"]
    assert "Traceback" not in json.dumps(found)


async def test_a_field_of_the_wrong_type_is_named(http: aiohttp.ClientSession) -> None:
    async with http.post("/api/execute", json={"command": "true", "timeoutMs": "soon"}) as response:
        found = await response.json()
    check_fault(found, code="VALIDATION_FAILED", status=400)
    assert found["context"]["validationErrors"][0]["field"] == "timeoutMs"


async def test_unknown_fields_are_ignored(http: aiohttp.ClientSession) -> None:
    async with http.post("/api/execute", json={"command": "true", "news": {"of": ["2030"]}}) as response:
        assert response.status == 200


async def test_a_body_of_100_megabytes_is_accepted(http: aiohttp.ClientSession) -> None:
    body = b'{"command":"wc -c","stdin":"' + b"x" * 100_000_000 + b'"}'
    async with http.post("/api/execute", data=io.BytesIO(body)) as response:
        assert (await response.json())["stdout"] == "100000000\n"


async def test_a_body_beyond_the_limit_is_refused_and_says_what_the_limit_is(runtime: Runtime) -> None:
    request = POST + b"Content-Length: 999999999999\r\n\r\n"
    status, _, body = await raw(runtime, request)
    assert status == 413
    found = json.loads(body)
    check_fault(found, code="FILE_TOO_LARGE", status=413)
    assert found["context"] == {"maxSize": 144 << 20, "actualSize": 999999999999}


async def test_a_chunked_body_is_read(runtime: Runtime) -> None:
    request = POST + b'Transfer-Encoding: chunked\r\n\r\n9\r\n{"command\r\nd\r\n":"echo yes"}\r\n0\r\n\r\n'
    status, _, body = await raw(runtime, request)
    assert status == 200
    assert b"yes" in body


async def test_a_client_that_waits_for_100_continue_gets_it(runtime: Runtime) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(
        b"POST /api/execute HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Expect: 100-continue\r\nContent-Length: 22\r\n\r\n"
    )
    assert await asyncio.wait_for(reader.readline(), 5) == b"HTTP/1.1 100 Continue\r\n"
    writer.write(b'{"command":"echo yes"}')
    assert b"yes" in await asyncio.wait_for(reader.read(), 5)
    writer.close()


async def test_a_compressed_body_is_not_unpacked(http: aiohttp.ClientSession) -> None:
    async with http.post(
        "/api/execute", data=b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"}
    ) as response:
        assert response.status == 400


async def test_headers_have_a_bound(runtime: Runtime) -> None:
    request = b"GET /api/ping HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n"
    status, _, body = await raw(runtime, request)
    assert status == 400
    check_fault(json.loads(body), code="VALIDATION_FAILED", status=400)


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Content-Length: 2\r\nContent-Length: 3",
        b"Content-Length: -1",
        b"Content-Length: 1e1",
    ],
)
async def test_a_request_whose_length_is_ambiguous_is_refused(runtime: Runtime, headers: bytes) -> None:
    status, _, _ = await raw(
        runtime, b"POST /api/execute HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n{}"
    )
    assert status == 400


async def test_requests_on_one_connection_are_answered_in_order(runtime: Runtime) -> None:
    ping = b"GET /api/ping HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(ping * 5 + last)
    answer = await asyncio.wait_for(reader.read(), 5)
    assert len(re.findall(rb"HTTP/1.1 200 OK", answer)) == 6
    assert answer.endswith(b"sandbox.\n")
    writer.close()


async def test_replies_do_not_tell_which_software_made_them(http: aiohttp.ClientSession) -> None:
    async with http.get("/") as response:
        assert response.headers["Server"] == "sandpod"
