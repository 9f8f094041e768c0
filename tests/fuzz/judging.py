"""Whether an answer is one that the protocol and the runtime's own description allow."""

import json
import re
from typing import Any, cast

import msgspec
from sandpod_runtime.errors import STATUS
from sandpod_runtime.routing import Endpoint
from sandpod_runtime.wire import HEADERS

from tests.fuzz.attempts import Attempt
from tests.fuzz.sending import Answer

Json = dict[str, Any]

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CORS = {name.lower(): value for name, value in HEADERS.items() if name.startswith("Access-Control")}


class Wrong(Exception):
    """What is wrong with an answer."""


def judge(attempt: Attempt, answer: Answer, *, endpoint: Endpoint) -> str:
    """The code of an error, for the statistics; empty for a success."""
    if answer.problem:
        raise Wrong(answer.problem)
    if not answer.status and attempt.manner in ("cut", "hung up", "wait"):
        return ""
    if answer.status == 101:
        return ""
    for name, value in CORS.items():
        if answer.headers.get(name) != value:
            raise Wrong(f"the header {name} is {answer.headers.get(name)!r}")
    if attempt.method == "HEAD" or answer.status == 204:
        return ""
    if answer.status >= 300:
        return _error(answer, endpoint)
    if not attempt.is_plain:
        return ""  # a strange path that happens to be another endpoint's
    _success(answer, endpoint)
    return ""


def _error(answer: Answer, endpoint: Endpoint) -> str:
    if endpoint.websocket and answer.headers.get("content-type", "").startswith("text/plain"):
        return "plain text"
    try:
        body: Json = json.loads(answer.body)
    except ValueError:
        raise Wrong(f"{answer.status} without JSON: {answer.body[:200]!r}") from None
    code = body.get("code")
    if not isinstance(code, str) or not isinstance(body.get("message"), str) or not body["message"]:
        raise Wrong(f"an error without code or message: {body}")
    if not isinstance(body.get("context"), dict) or body.get("httpStatus") != answer.status:
        raise Wrong(f"an error without context, or with another httpStatus: {body}")
    if not TIMESTAMP.fullmatch(str(body.get("timestamp"))):
        raise Wrong(f"an error's timestamp: {body}")
    if code == "UNKNOWN_ERROR" and answer.status == 404:
        return code
    if STATUS.get(code) != answer.status:
        raise Wrong(f"{code} with status {answer.status}")
    # The protocol has no other code for a session that does not exist.
    unknown_session = code == "INTERNAL_ERROR" and "sessionId" in body["context"]
    if (code in ("INTERNAL_ERROR", "UNKNOWN_ERROR") and not unknown_session) or answer.status == 503:
        raise Wrong(f"{answer.status} {body}")
    return code


def _success(answer: Answer, endpoint: Endpoint) -> None:
    kind = answer.headers.get("content-type", "")
    if kind == "text/event-stream":
        _events(answer, endpoint)
    elif kind == "application/json" and endpoint.reply is not None:
        try:
            _shaped(answer.body, endpoint.reply)
        except Wrong:
            if endpoint.other_reply is None:
                raise
            _shaped(answer.body, endpoint.other_reply)
    elif endpoint.reply is not None and not endpoint.media:
        raise Wrong(f"a reply of type {kind!r}")


def _events(answer: Answer, endpoint: Endpoint) -> None:
    if not endpoint.events:
        raise Wrong("a stream that is not described")
    models = {_tag(model): model for model in endpoint.events}
    *blocks, rest = answer.body.split(b"\n\n")
    if answer.whole and rest:
        raise Wrong(f"a stream that ends in the middle of an event: {rest[-200:]!r}")
    for block in blocks:
        if block.startswith(b":"):
            continue
        if not block.startswith(b"data: ") or b"\n" in block or not block.isascii():
            raise Wrong(f"an event that is not one line of ASCII: {block[:200]!r}")
        found = json.loads(block[6:])
        model = models.get(found.get("type"))
        if model is None:
            raise Wrong(f"an event that is not described: {found}")
        _shaped(block[6:], model)


def _tag(model: type[msgspec.Struct]) -> str:
    return str(cast("Any", model).__struct_config__.tag)


def _shaped(data: bytes, model: type[msgspec.Struct]) -> None:
    try:
        msgspec.json.decode(data, type=model)
    except msgspec.MsgspecError as error:
        raise Wrong(f"a {model.__name__} that is none: {error}: {data[:300]!r}") from error
    body: Json = json.loads(data)
    for each in msgspec.structs.fields(model):
        if each.encode_name not in body and each.default is not msgspec.UNSET:
            raise Wrong(f"a {model.__name__} without {each.encode_name}: {data[:300]!r}")
    if "timestamp" in body and not TIMESTAMP.fullmatch(str(body["timestamp"])):
        raise Wrong(f"the timestamp {body['timestamp']!r}")
