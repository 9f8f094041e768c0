"""From a method and a raw path to an endpoint: segment by segment, literal paths first, decoded last."""

from typing import Annotated, Any, cast
from urllib.parse import urlencode

import msgspec
import pytest
from msgspec import Meta
from sandpod_runtime.errors import Fault
from sandpod_runtime.routing import Endpoint, Family, Router, Routes, queried, route_of
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


def found(method: str, raw_path: str, *, router: Router = ROUTER) -> tuple[str, dict[str, str]]:
    asked = cast("Request", Asked(method, raw_path))
    name = router.find(asked, route_of(asked)).summary
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


class Made:
    """A surface that notes when it is made."""

    def __init__(self, *paths: str) -> None:
        self._paths = paths
        self.times = 0

    def make(self) -> "list[Made]":
        self.times += 1
        return [self]

    def routes(self) -> Routes:
        return {("GET", path): endpoint(path) for path in self._paths}


class Families:
    """A router of three families; `/api/files/raw` has one of its own."""

    def __init__(self) -> None:
        self.git = Made("/api/git/{id}/log", "/api/git/status", "/ws/git")
        self.files = Made("/api/files/{name}")
        self.raw = Made("/api/files/raw", "/api/files/raw/{id}")
        self.router = Router(
            {("GET", "/api/gitless"): endpoint("/api/gitless")},
            [
                Family("/api/git", "/ws/git", make=self.git.make),
                Family("/api/files", make=self.files.make),
                Family("/api/files/raw", make=self.raw.make),
            ],
        )

    def made(self) -> tuple[int, int, int]:
        return self.git.times, self.files.times, self.raw.times

    def find(self, path: str, *, method: str = "GET") -> str:
        return found(method, path, router=self.router)[0]


def test_a_family_is_made_once_by_the_first_request_for_one_of_its_paths() -> None:
    families = Families()
    assert families.find("/api/gitless") == "/api/gitless"
    assert families.made() == (0, 0, 0)
    for path in ("/ws/git", "/api/git/status?x=1", "/api/git/status"):
        assert families.find(path) == path.partition("?")[0]
    assert families.find("/api/git/one/log") == "/api/git/{id}/log"
    assert families.made() == (1, 0, 0)


@pytest.mark.parametrize("path", ["/api/files/raw", "/api/files/raw/x"])
def test_a_path_belongs_to_the_nearest_family(path: str) -> None:
    families = Families()
    assert families.find(path).startswith("/api/files/raw")
    assert families.made() == (0, 0, 1)
    assert families.find("/api/files/other") == "/api/files/{name}"
    assert families.find("/api/files/raw") == "/api/files/raw"
    assert families.made() == (0, 1, 1)


@pytest.mark.parametrize("again", range(2))
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/git"),
        ("GET", "/api/git/"),
        ("GET", "/api/git/nothing"),
        ("POST", "/api/git/status"),
        ("GET", "/api/git/status/"),
        ("GET", "/api/gits"),
        ("GET", "/api/%67it/status"),
        ("GET", "/api"),
        ("GET", ""),
    ],
)
def test_what_a_family_lacks_is_not_found(method: str, path: str, again: int) -> None:
    families = Families()
    for _ in range(again):
        families.find("/api/git/status")
    with pytest.raises(Fault) as refused:
        families.find(path, method=method)
    assert refused.value.status == 404


def test_a_family_that_could_not_be_made_is_made_by_the_next_request() -> None:
    trouble: list[Exception] = [ImportError("no memory")]
    made = Made("/api/git/status")

    def make() -> list[Made]:
        if trouble:
            raise trouble.pop()
        return made.make()

    router = Router({}, [Family("/api/git", make=make)])
    with pytest.raises(ImportError):
        found("GET", "/api/git/status", router=router)
    assert found("GET", "/api/git/status", router=router)[0] == "/api/git/status"


def test_everything_is_told_in_order_whatever_was_asked_for_first() -> None:
    families = Families()
    families.find("/api/files/raw")
    assert [path for _, path in families.router.everything()] == [
        "/api/gitless", "/api/git/{id}/log", "/api/git/status", "/ws/git", "/api/files/{name}",
        "/api/files/raw", "/api/files/raw/{id}",
    ]  # fmt: skip
    assert families.find("/api/git/status") == "/api/git/status"
    assert families.made() == (1, 1, 1)


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
