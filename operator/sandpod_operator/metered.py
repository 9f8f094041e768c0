"""The API server as the operator's parts reach it. Its writes are counted here and nowhere else, so that no
part can forget it.
"""

from .cluster import Cluster, Query
from .metrics import Metrics
from .objects import Json


class Metered:
    def __init__(self, cluster: Cluster, *, metrics: Metrics) -> None:
        self._cluster = cluster
        self._metrics = metrics

    async def get(self, path: str, *, query: Query | None = None) -> Json:
        return await self._cluster.get(path, query=query)

    async def list(self, path: str, *, query: Query | None = None, metadata_only: bool = False) -> Json:
        return await self._cluster.list(path, query=query, metadata_only=metadata_only)

    async def create(self, path: str, body: Json, *, query: Query | None = None) -> Json:
        self._count("create", path)
        return await self._cluster.create(path, body, query=query)

    async def patch(self, path: str, body: Json) -> Json:
        self._count("patch", path)
        return await self._cluster.patch(path, body)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace_seconds: int | None = None,
    ) -> Json:
        self._count("delete", path)
        return await self._cluster.delete(path, uid=uid, version=version, grace_seconds=grace_seconds)

    def _count(self, verb: str, path: str) -> None:
        # Before it is sent: one that fails has cost the API server as much.
        self._metrics.api_writes.add(verb=verb, resource=resource_of(path))


def resource_of(path: str) -> str:
    """As RBAC names it: `sandboxes/status` for the path of one sandbox's status."""
    parts = path.strip("/").split("/")
    # After /api/v1, or /apis/GROUP/VERSION; and after /namespaces/NAMESPACE, unless it is about that itself.
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return "/".join([rest[0], *rest[2:]])
