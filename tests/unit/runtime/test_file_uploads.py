"""How long unfinished uploads live."""

import asyncio
from pathlib import Path
from typing import cast

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from sandpod_runtime.disk import Disk
from sandpod_runtime.errors import Fault
from sandpod_runtime.files import receiving
from sandpod_runtime.files.draft import Draft
from sandpod_runtime.files.places import Place
from sandpod_runtime.files.uploads import Upload, Uploads
from sandpod_runtime.wire import Request

from tests.support.waiting import eventually


def begun(uploads: Uploads, path: Path) -> Upload:
    uploads.admit()
    place = Place(given=path.name, path=str(path))
    upload = Upload(place, Draft(str(path)), size=None, sha256=None)
    uploads.add(upload)
    return upload


async def gone(uploads: Uploads, upload: Upload) -> None:
    await asyncio.to_thread(eventually, lambda: not uploads.holds(upload.id), timeout=5, every=0.01)


async def test_an_idle_upload_is_given_up(tmp_path: Path) -> None:
    uploads = Uploads(disk=Disk(), idle_seconds=0.05)
    upload = begun(uploads, tmp_path / "file")
    await gone(uploads, upload)
    with pytest.raises(Fault, match="upload not found"):
        uploads.find(upload.id)


async def test_an_upload_that_is_being_sent_is_not_idle(tmp_path: Path) -> None:
    uploads = Uploads(disk=Disk(), idle_seconds=0.05)
    upload = begun(uploads, tmp_path / "file")
    with uploads.alone(upload):
        await asyncio.sleep(0.2)
        assert uploads.holds(upload.id)
    await gone(uploads, upload)


async def test_at_the_end_nothing_is_left(tmp_path: Path) -> None:
    uploads = Uploads(disk=Disk())
    upload = begun(uploads, tmp_path / "file")
    await uploads.shut_down()
    assert not uploads.holds(upload.id)
    with pytest.raises(OSError, match="given up"):
        upload.draft.write([b"x"])


async def test_a_body_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "IDLE_SECONDS", 0.01)
    connection = BaseProtocol(asyncio.get_running_loop())
    connection.connection_made(asyncio.Transport())
    body = StreamReader(connection, limit=1024)
    request = cast("Request", make_mocked_request("PUT", "/api/files/archive", payload=body))
    body.feed_data(b"a beginning")
    assert await receiving.next_part(request) == b"a beginning"
    with pytest.raises(Fault) as fault:
        await receiving.next_part(request)
    assert fault.value.code == "OPERATION_INTERRUPTED"
