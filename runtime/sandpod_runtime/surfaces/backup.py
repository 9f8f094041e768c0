"""backup: a directory into an archive file and back, by the protocol's terms; the archives are ours."""

from sandpod_runtime.backup.backups import Backups
from sandpod_runtime.models.backup import (
    CreateBackupReply,
    CreateBackupRequest,
    RestoreBackupReply,
    RestoreBackupRequest,
    UploadPartsRequest,
)
from sandpod_runtime.routing import Endpoint, Routes


class Backup:
    def __init__(self, backups: Backups) -> None:
        self._backups = backups

    def routes(self) -> Routes:
        return {
            ("POST", "/api/backup/create"): Endpoint(
                handler=self._backups.create,
                tag="backup",
                summary="Pack a directory into an archive file.",
                body=CreateBackupRequest,
                reply=CreateBackupReply,
                errors=("INVALID_BACKUP_CONFIG", "BACKUP_CREATE_FAILED", "RESOURCE_BUSY"),
            ),
            ("POST", "/api/backup/restore"): Endpoint(
                handler=self._backups.restore,
                tag="backup",
                summary="Make a directory what it was when its archive was made.",
                body=RestoreBackupRequest,
                reply=RestoreBackupReply,
                errors=("INVALID_BACKUP_CONFIG", "BACKUP_RESTORE_FAILED", "RESOURCE_BUSY"),
            ),
            ("POST", "/api/backup/upload-parts"): Endpoint(
                handler=self._backups.upload,
                tag="backup",
                summary="Always 404: the runtime speaks no TLS, and the client then uploads by itself.",
                body=UploadPartsRequest,
                errors=("INVALID_BACKUP_CONFIG", "UNKNOWN_ERROR"),
            ),
        }
