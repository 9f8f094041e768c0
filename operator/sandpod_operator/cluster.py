"""What the operator uses of sandpod_crds.kube. Tests bring an API server in memory instead."""

from collections.abc import Mapping
from typing import Protocol

from .objects import Json

Query = Mapping[str, str | int | bool]

# A field that the API server does not know, of a podTemplate say, is an error, and not dropped in silence.
STRICT: Query = {"fieldValidation": "Strict"}


class Cluster(Protocol):
    async def get(self, path: str, *, query: Query | None = None) -> Json: ...

    async def list(self, path: str, *, query: Query | None = None, metadata_only: bool = False) -> Json: ...

    async def create(self, path: str, body: Json, *, query: Query | None = None) -> Json: ...

    async def patch(self, path: str, body: Json) -> Json:
        """A merge patch. A UID in its metadata is a precondition: Conflict, when another object has the name.
        Not for a status, whose patch ignores it: there, only a resourceVersion is one.
        """
        ...

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace_seconds: int | None = None,
    ) -> Json: ...
