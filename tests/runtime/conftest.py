"""Runtimes for tests. One is shared; after a test it must have no more processes, descriptors and errors."""

import io
import json
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

import aiohttp
import pytest
import pytest_asyncio

from tests.support.runtime import TERMINATED, Runtime
from tests.support.waiting import eventually

Json = dict[str, Any]


class Execute(Protocol):
    async def __call__(self, command: str, **fields: Any) -> Json: ...


@pytest.fixture(scope="session")
def shared_runtime() -> Iterator[Runtime]:
    runtime = Runtime()
    try:
        # The first session makes a place for all of them, which stays open.
        for path, body in (("create", {"id": "first"}), ("delete", {"sessionId": "first"})):
            data = json.dumps(body).encode()
            urllib.request.urlopen(f"{runtime.url}/api/session/{path}", data=data).close()
        yield runtime
        assert runtime.stop() == TERMINATED
    finally:
        runtime.dispose()


@pytest.fixture
def runtime(shared_runtime: Runtime) -> Iterator[Runtime]:
    assert shared_runtime.descendants() == {}
    descriptors = shared_runtime.descriptors()
    failures = len(shared_runtime.failures())
    yield shared_runtime
    try:
        eventually(lambda: shared_runtime.descendants() == {}, timeout=10, every=0.02)
    finally:
        shared_runtime.end_descendants()  # or every later test would fail with this one
    eventually(lambda: shared_runtime.descriptors() <= descriptors, timeout=10, every=0.02)
    assert shared_runtime.failures()[failures:] == []


@pytest_asyncio.fixture
async def http(runtime: Runtime) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(runtime.url) as session:
        yield session


@pytest.fixture
def execute(http: aiohttp.ClientSession) -> Execute:
    """`/api/execute`, which must answer 200."""

    async def call(command: str, **fields: Any) -> Json:
        # As a file, because aiohttp's client warns about large bodies in memory.
        data = io.BytesIO(json.dumps({"command": command, **fields}).encode())
        async with http.post("/api/execute", data=data) as response:
            body: Json = await response.json()
            assert response.status == 200, body
            return body

    return call


@pytest.fixture
def start() -> Iterator[Callable[..., Runtime]]:
    """Makes runtimes of a test's own, and makes sure that nothing of them is left."""
    made: list[Runtime] = []

    def build(**options: Any) -> Runtime:
        made.append(Runtime(**options))
        return made[-1]

    yield build
    for each in made:
        each.dispose()
