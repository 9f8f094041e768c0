"""From a method and a raw path to an endpoint: segment by segment, literal paths first, decoded last."""

from typing import Annotated, Any, cast
from urllib.parse import urlencode

import msgspec
import pytest
from msgspec import Meta
from sandpod_runtime.errors import Fault
from sandpod_runtime.routing import Endpoint, Router, queried, route_of
from sandpod_runtime.wire import Request


class Asked:
    """As much of a request as routing looks at."""

    def __init__(self, method: str, raw_path: str, query: list[tuple[str, str]] | None = None) -> None:
        self.method = method
        self.raw_path = f"{raw_path}?{urlencode(query)}" if query else raw_path
        self.segments: dict[str, str] = {}
        self.template = ""


async def nothing(_: Any) -> Any: ...


def endpoint(name: str) -> Endpoint:
    return Endpoint(handler=nothing, summary=name, tag="test")


PATHS = [
    ("GET", "/"),
    ("GET", "/api/process/list"),
    ("GET", "/api/process/{id}"),
    ("DELETE", "/api/process/{id}"),
    ("DELETE", "/api/process/kill-all"),
    ("GET", "/api/process/{id}/logs"),
    ("GET", "/api/pair/{first}/{second}"),
]
ROUTER = Router({route: endpoint(" ".join(route)) for route in PATHS})


def found(method: str, raw_path: str) -> tuple[str, dict[str, str]]:
    asked = cast("Request", Asked(method, raw_path))
    name = ROUTER.find(asked, route_of(asked)).summary
    return name, dict(asked.segments)


@pytest.mark.parametrize(
    ("method", "path", "name", "segments"),
    [
        ("GET", "/", "GET /", {}),
        ("GET", "/api/process/list", "GET /api/process/list", {}),
        ("GET", "/api/process/list?status=running", "GET /api/process/list", {}),
        ("DELETE", "/api/process/kill-all", "DELETE /api/process/kill-all", {}),
        ("GET", "/api/process/one", "GET /api/process/{id}", {"id": "one"}),
        ("DELETE", "/api/process/list", "DELETE /api/process/{id}", {"id": "list"}),
        ("GET", "/api/process/a%2Fb%20c%C3%A4", "GET /api/process/{id}", {"id": "a/b cä"}),
        ("GET", "/api/process/%6cist", "GET /api/process/{id}", {"id": "list"}),
        ("GET", "/api/process/x/logs", "GET /api/process/{id}/logs", {"id": "x"}),
        ("GET", "/api/pair/a/b", "GET /api/pair/{first}/{second}", {"first": "a", "second": "b"}),
    ],
)
def test_a_request_finds_its_endpoint(method: str, path: str, name: str, segments: dict[str, str]) -> None:
    assert found(method, path) == (name, segments)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/process/list"),
        ("GET", "/api/process/list/"),
        ("GET", "/api/process/"),
        ("GET", "//api/process/list"),
        ("GET", "/api/%70rocess/list"),
        ("GET", "/API/process/list"),
        ("GET", "/api/process/x/logs/y"),
        ("GET", "/api/process//logs"),
        ("GET", ""),
        ("GET", "*"),
    ],
)
def test_nothing_else_does(method: str, path: str) -> None:
    with pytest.raises(Fault) as refused:
        found(method, path)
    assert (refused.value.code, refused.value.status) == ("UNKNOWN_ERROR", 404)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(Fault) as refused:
        found("GET", "/api/process/%ff")
    assert refused.value.code == "VALIDATION_FAILED"


def test_a_long_path_is_not_repeated_whole() -> None:
    with pytest.raises(Fault) as refused:
        found("GET", "/" + "x" * 100_000)
    assert len(refused.value.message) <= 500


class Query(msgspec.Struct, rename="camel"):
    at_most: Annotated[int, Meta(ge=1, le=10)] = 5
    follow: bool = False
    name: str | None = None


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ([], Query()),
        ([("atMost", "7"), ("follow", "true"), ("name", "7")], Query(at_most=7, follow=True, name="7")),
        ([("atMost", "1"), ("atMost", "2")], Query(at_most=2)),
        ([("unknown", "x")], Query()),
    ],
)
def test_a_query_is_read_by_its_model(query: list[tuple[str, str]], wanted: Query) -> None:
    assert queried(cast("Request", Asked("GET", "/", query)), Query) == wanted


@pytest.mark.parametrize(
    ("name", "value"), [("atMost", "11"), ("atMost", "x"), ("follow", "maybe"), ("atMost", "")]
)
def test_a_query_that_cannot_be_read_names_its_field(name: str, value: str) -> None:
    with pytest.raises(Fault) as refused:
        queried(cast("Request", Asked("GET", "/", [(name, value)])), Query)
    assert cast("Any", refused.value.context["validationErrors"])[0]["field"] == name
