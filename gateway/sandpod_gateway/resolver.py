"""From a sandbox's name to a pod that answers. The table is asked first; a client can be faster than our
watch, so a name that it does not know is looked up once at the API server, and a sandbox that is starting
gets a moment.
"""

from sandpod_crds import errors as api
from sandpod_crds import paths
from sandpod_crds.kube import Kube

from .errors import NotReady, unknown_sandbox
from .routes import Route, RouteTable


class Resolver:
    def __init__(self, *, kube: Kube, table: RouteTable, wait_seconds: float) -> None:
        self._kube = kube
        self._table = table
        self._wait_seconds = wait_seconds

    async def ready_route(self, *, namespace: str, name: str) -> Route:
        key = (namespace, name)
        route = self._table.get(key) or await self._look_up(namespace=namespace, name=name)
        if route.starting:
            # Nothing came over the watch: what the look-up said still holds.
            route = await self._table.settled(key, timeout=self._wait_seconds) or route
        if not route.ready:
            raise NotReady(_why_not(name, route), name=name)
        return route

    async def _look_up(self, *, namespace: str, name: str) -> Route:
        try:
            # Not written into the table: only the watch may, in its order, or a deletion could be undone.
            return Route.from_object(await self._kube.request("GET", paths.sandboxes(namespace, name)))
        except api.NotFound as error:
            raise unknown_sandbox(namespace=namespace, name=name) from error
        except api.ApiError as error:
            raise NotReady(
                f'sandbox "{name}" is not known here yet, and the API server did not answer when asked',
                name=name,
            ) from error


def _why_not(name: str, route: Route) -> str:
    state = "is being deleted" if route.deleting else f"is not ready (phase {route.phase or 'unknown'})"
    reason = ": ".join(text for text in (route.reason, route.message) if text)
    return f'sandbox "{name}" {state}{" - " if reason else ""}{reason}'
