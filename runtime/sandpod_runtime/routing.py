"""From a request's method and path to its endpoint: segment by segment as they were sent, nothing clever.

The gateway decides by the same raw path what a user may do; a router that decodes or tidies paths would let
`/api/%65xecute` slip by it. Only what stands where a path says `{id}` is decoded, after it was found.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec
from aiohttp.web_response import StreamResponse

from sandpod_runtime.errors import Fault, invalid
from sandpod_runtime.wire import Request

Handler = Callable[[Request], Awaitable[StreamResponse]]
Route = tuple[str, str]
Model = type[msgspec.Struct]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A handler, and what the reference says of it: the models are the ones that the handler uses."""

    handler: Handler
    summary: str
    tag: str
    # What is read as JSON, and what is read from the query.
    body: Model | None = None
    query: Model | None = None
    # A JSON object; the events of a stream, in the order in which they come; or the type of raw bytes.
    reply: Model | None = None
    # What it is instead, where the request decides.
    other_reply: Model | None = None
    events: tuple[Model, ...] = ()
    media: str = ""
    # What goes over it, when this is a WebSocket.
    websocket: str = ""
    # The type of a body that is raw bytes.
    accepts: str = ""
    # The codes that this endpoint answers besides those that every one may (VALIDATION_FAILED, ...).
    errors: tuple[str, ...] = ()
    # Whether somebody works as long as it lasts. Probes and looks at the runtime's state keep nobody awake; a
    # terminal tells itself when bytes go through it.
    is_activity: bool = True
    # Whether somebody only looks on, perhaps in a window that was forgotten: then its beginning is activity,
    # and so is each event that is sent, but not the quiet in between.
    looks_on: bool = False


Routes = Mapping[Route, Endpoint]


class Surface(Protocol):
    def routes(self) -> Routes: ...


class Family:
    """Surfaces that are imported when a request first asks for something of theirs: a cold start is mostly
    imports, and most runtimes are asked for little.
    """

    def __init__(self, *paths: str, make: Callable[[], Iterable[Surface]]) -> None:
        """Each path of theirs must be one of `paths`, or below one."""
        self.paths = paths
        self._make = make

    @cached_property
    def routes(self) -> Routes:
        """Made in the event loop only, or two that ask at once could make two of each."""
        return joined(self._make())


def joined(surfaces: Iterable[Surface]) -> Routes:
    return {route: endpoint for surface in surfaces for route, endpoint in surface.routes().items()}


def route_of(request: Request) -> Route:
    return request.method, request.raw_path.partition("?")[0]


class Router:
    """Literal paths win over those with `{…}`, as the protocol wants it."""

    def __init__(self, routes: Routes, families: Sequence[Family] = ()) -> None:
        self._first = routes
        self._families = families
        # The longest first: what is below two of them belongs to the nearer one.
        starts = [(f"{path}/", family) for family in families for path in family.paths]
        self._starts = sorted(starts, key=lambda each: len(each[0]), reverse=True)
        self._added: set[Family] = set()
        self._literal: dict[Route, Endpoint] = {}
        self._patterns: dict[tuple[str, int], list[tuple[list[str], Endpoint]]] = {}
        self._add(routes)

    def find(self, request: Request, route: Route) -> Endpoint:
        """Leaves what stood for `{…}` in `request.segments`, and the path with them in `request.template`."""
        endpoint = self._literal.get(route)
        if endpoint is None and self._add_family_of(route[1]):
            endpoint = self._literal.get(route)
        if endpoint is not None:
            request.template = route[1]
            return endpoint
        given = route[1].split("/")
        for segments, endpoint in self._patterns.get((route[0], len(given)), ()):
            if all(
                want == got or (want[:1] == "{" and got) for want, got in zip(segments, given, strict=True)
            ):
                request.segments = {
                    want[1:-1]: _decoded(want[1:-1], got)
                    for want, got in zip(segments, given, strict=True)
                    if want[:1] == "{"
                }
                request.template = "/".join(segments)
                return endpoint
        # Also for a known path with another method: the protocol knows no 405.
        raise Fault("UNKNOWN_ERROR", f"there is nothing at {route[0]} {route[1]}"[:500], status=404)

    def everything(self) -> Routes:
        """Also what nobody has asked for yet."""
        found = dict(self._first)
        for family in self._families:
            found |= family.routes
        return found

    def _add(self, routes: Routes) -> None:
        for (method, path), endpoint in routes.items():
            if "{" in path:
                segments = path.split("/")
                self._patterns.setdefault((method, len(segments)), []).append((segments, endpoint))
            else:
                self._literal[method, path] = endpoint

    def _add_family_of(self, path: str) -> bool:
        """Whether there are more routes now."""
        whole = f"{path}/"
        family = next((family for start, family in self._starts if whole.startswith(start)), None)
        if family is None or family in self._added:
            return False
        self._add(family.routes)
        self._added.add(family)
        return True


def _decoded(name: str, segment: str) -> str:
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise invalid(name, "this is not percent-encoded UTF-8") from error


def queried(request: Request, model: type[Any]) -> Any:
    """The query as `model`: numbers and truth values are read from their texts, the last of equals counts."""
    try:
        # Strictly: a path with U+FFFD in the place of a byte would be another file's.
        query = request.raw_path.partition("#")[0].partition("?")[2]
        given = parse_qsl(query, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise invalid("query", "this is not percent-encoded UTF-8") from error
    try:
        return msgspec.convert(dict(given), model, strict=False)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        raise invalid(where.rstrip("`").lstrip(".") or "query", message) from error
