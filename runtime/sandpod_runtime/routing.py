"""From a request's method and path to its handler: exact matches of the raw path, nothing clever.

The gateway decides by the same raw path what a user may do; a router that decodes or tidies paths would let
`/api/%65xecute` slip by it.
"""

from collections.abc import Awaitable, Callable

from aiohttp.web_response import StreamResponse

from sandpod_runtime.errors import Fault
from sandpod_runtime.wire import Request

Handler = Callable[[Request], Awaitable[StreamResponse]]
Route = tuple[str, str]
Routes = dict[Route, Handler]


def route_of(request: Request) -> Route:
    return request.method, request.raw_path.partition("?")[0]


def find(routes: Routes, route: Route) -> Handler:
    if (handler := routes.get(route)) is None:
        # Also for a known path with another method: the protocol knows no 405.
        raise Fault("UNKNOWN_ERROR", f"there is nothing at {route[0]} {route[1]}"[:500], status=404)
    return handler
