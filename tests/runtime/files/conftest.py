"""Calls of the files' endpoints."""

import io
import json
import shutil
from typing import Any, Protocol

import aiohttp
import pytest

from tests.support.runtime import Runtime

Json = dict[str, Any]


class Call(Protocol):
    async def __call__(self, path: str, /, *, status: int = 200, **fields: Any) -> Json: ...


@pytest.fixture(autouse=True)
def empty_workspace(runtime: Runtime) -> None:
    """The runtime is shared; what an earlier test has left is not."""
    for path in runtime.workspace.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.fixture
def call(http: aiohttp.ClientSession) -> Call:
    """POSTs these fields to `/api/<path>`, which must answer with this status; a null field is left out."""
    return calling(http)


def calling(http: aiohttp.ClientSession) -> Call:
    async def post(path: str, /, *, status: int = 200, **fields: Any) -> Json:
        sent = {name: value for name, value in fields.items() if value is not None}
        # As a file, because aiohttp's client warns about large bodies in memory.
        async with http.post(f"/api/{path}", data=io.BytesIO(json.dumps(sent).encode())) as response:
            found: Json = await response.json()
            assert response.status == status, found
            if status >= 400:
                assert found["httpStatus"] == status
                assert isinstance(found["context"], dict)
            else:
                assert found["success"] is True
            assert found["timestamp"].endswith("Z")
            return found

    return post
