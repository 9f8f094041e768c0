"""Terminals of the shared runtime: made for a test, and gone after it."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import aiohttp
import pytest
import pytest_asyncio

from tests.support.terminal import Viewer

Json = dict[str, Any]


class Post(Protocol):
    async def __call__(self, what: str, *, status: int = 200, **fields: Any) -> Json: ...


@pytest_asyncio.fixture
async def post(http: aiohttp.ClientSession) -> AsyncIterator[Post]:
    """POST /api/terminal/<what>. What was created is destroyed in the end."""
    made: set[str] = set()

    async def call(what: str, *, status: int = 200, **fields: Any) -> Json:
        async with http.post(f"/api/terminal/{what}", json=fields) as response:
            body: Json = await response.json()
            assert response.status == status, body
            if what == "create" and status == 200:
                made.add(body["id"])
            return body

    yield call
    for each in made:
        await call("destroy", id=each)


@pytest_asyncio.fixture
async def terminal(post: Post) -> str:
    """The id of a terminal with a bash."""
    found: str = (await post("create", id="it", cwd="/", shell="bash"))["id"]
    return found


@pytest.fixture
def attach(http: aiohttp.ClientSession) -> Callable[..., Viewer]:
    def to(terminal: str, *, query: str = "", **options: Any) -> Viewer:
        return Viewer(http, f"/ws/terminal?terminalId={terminal}{query}", **options)

    return to


@pytest.fixture
def listed(http: aiohttp.ClientSession) -> Callable[[], Any]:
    async def call() -> dict[str, Json]:
        async with http.get("/api/terminal/list") as response:
            found = await response.json()
            assert (response.status, found["success"]) == (200, True)
            assert found["count"] == len(found["terminals"])
            return {each["id"]: each for each in found["terminals"]}

    return call
