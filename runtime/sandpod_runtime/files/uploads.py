"""Uploads in parts: drafts that outlive a connection, for an hour after somebody last asked for them."""

import asyncio
import secrets
from collections.abc import Generator
from contextlib import contextmanager

from sandpod_runtime.disk import Disk
from sandpod_runtime.errors import Fault
from sandpod_runtime.files.draft import Draft
from sandpod_runtime.files.places import Place
from sandpod_runtime.limits import Slots

MOST = 64
IDLE_SECONDS = 3600.0


class Upload:
    def __init__(self, place: Place, draft: Draft, *, size: int | None, sha256: str | None) -> None:
        self.id = secrets.token_hex(16)
        self.place = place
        self.draft = draft
        self.size = size
        self.sha256 = sha256
        self.is_busy = False
        self.expiry: asyncio.TimerHandle | None = None


class Uploads:
    def __init__(self, *, disk: Disk, idle_seconds: float = IDLE_SECONDS) -> None:
        self._disk = disk
        self._idle_seconds = idle_seconds
        self._slots = Slots("unfinished uploads", MOST)
        self._present: dict[str, Upload] = {}

    def admit(self) -> None:
        """Before a draft is made for `add`, which then may fail no more."""
        self._slots.take()

    def give_up(self) -> None:
        self._slots.give()

    def add(self, upload: Upload) -> None:
        self._present[upload.id] = upload
        self._postpone(upload)

    def holds(self, upload_id: str) -> bool:
        return upload_id in self._present

    def find(self, upload_id: str) -> Upload:
        upload = self._present.get(upload_id)
        if upload is None:
            raise Fault(
                "FILE_NOT_FOUND",
                f"upload not found: {upload_id[:100]}",
                context={"path": upload_id[:100], "operation": "file.upload"},
                operation="file.upload",
                suggestion=f"an upload is given up after {self._idle_seconds:.0f} idle seconds; start again",
            )
        self._postpone(upload)
        return upload

    @contextmanager
    def alone(self, upload: Upload) -> Generator[None]:
        """Nobody else may send, complete or delete it meanwhile."""
        if upload.is_busy:
            raise Fault(
                "RESOURCE_BUSY",
                "another request is sending a part of this upload",
                context={"path": upload.place.given, "operation": "file.upload"},
                operation="file.upload",
            )
        upload.is_busy = True
        try:
            yield
        finally:
            upload.is_busy = False
            if self.holds(upload.id):
                self._postpone(upload)

    def remove(self, upload: Upload) -> None:
        """What was sent is gone."""
        if self._forget(upload):
            self._disk.later(upload.draft.discard)

    async def shut_down(self) -> None:
        for upload in list(self._present.values()):
            if self._forget(upload):
                await self._disk.run(upload.draft.discard)

    def _forget(self, upload: Upload) -> bool:
        if self._present.pop(upload.id, None) is None:
            return False
        self._slots.give()
        if upload.expiry is not None:
            upload.expiry.cancel()
        return True

    def _postpone(self, upload: Upload) -> None:
        if upload.expiry is not None:
            upload.expiry.cancel()
        loop = asyncio.get_running_loop()
        upload.expiry = loop.call_later(self._idle_seconds, self._expire, upload)

    def _expire(self, upload: Upload) -> None:
        if upload.is_busy:
            self._postpone(upload)
        else:
            self.remove(upload)
