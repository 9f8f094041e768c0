"""backup: a directory into an archive file and back, by the protocol's terms; the archives are ours."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiohttp.web_response import StreamResponse

from sandpod_runtime.models.backup import (
    CreateBackupReply,
    CreateBackupRequest,
    RestoreBackupReply,
    RestoreBackupRequest,
    UploadPartsRequest,
)
from sandpod_runtime.routing import Endpoint, Routes
from sandpod_runtime.wire import Request

if TYPE_CHECKING:
    from sandpod_runtime.backup.backups import Backups


class Backup:
    def __init__(self, make: Callable[[], "Backups"]) -> None:
        """`make` is called when it is needed: a cold start does without what packs and unpacks."""
        self._make = make
        self._made: Backups | None = None

    def routes(self) -> Routes:
        return {
            ("POST", "/api/backup/create"): Endpoint(
                handler=self._create,
                tag="backup",
                summary="Pack a directory into an archive file.",
                body=CreateBackupRequest,
                reply=CreateBackupReply,
                errors=("INVALID_BACKUP_CONFIG", "BACKUP_CREATE_FAILED", "RESOURCE_BUSY"),
            ),
            ("POST", "/api/backup/restore"): Endpoint(
                handler=self._restore,
                tag="backup",
                summary="Make a directory what it was when its archive was made.",
                body=RestoreBackupRequest,
                reply=RestoreBackupReply,
                errors=("INVALID_BACKUP_CONFIG", "BACKUP_RESTORE_FAILED", "RESOURCE_BUSY"),
            ),
            ("POST", "/api/backup/upload-parts"): Endpoint(
                handler=self._upload,
                tag="backup",
                summary="Always 404: the runtime speaks no TLS, and the client then uploads by itself.",
                body=UploadPartsRequest,
                errors=("INVALID_BACKUP_CONFIG", "UNKNOWN_ERROR"),
            ),
        }

    async def _create(self, request: Request) -> StreamResponse:
        return await self._backups().create(request)

    async def _restore(self, request: Request) -> StreamResponse:
        return await self._backups().restore(request)

    async def _upload(self, request: Request) -> StreamResponse:
        return await self._backups().upload(request)

    def _backups(self) -> "Backups":
        if self._made is None:
            self._made = self._make()
        return self._made
