"""Repositories to clone, in folders and behind a server, and a runtime to do it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import pytest
import pytest_asyncio

from tests.support.git_server import GitServer, repository, serving

Json = dict[str, Any]


class Ask(Protocol):
    async def __call__(self, operation: str, *, expect: int = 200, **fields: Any) -> Json: ...


@pytest.fixture
def ask(http: aiohttp.ClientSession) -> Ask:
    """`POST /api/git/<operation>`, which must answer with this status."""

    async def call(operation: str, *, expect: int = 200, **fields: Any) -> Json:
        async with http.post(f"/api/git/{operation}", json=fields) as response:
            found: Json = await response.json()
            assert response.status == expect, found
            return found

    return call


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    root = tmp_path / "served"
    root.mkdir()
    return repository(root)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "target"


@pytest_asyncio.fixture
async def server(bare: Path) -> AsyncIterator[GitServer]:
    async with serving(bare.parent) as server:
        yield server
