"""Sessions of a test's own, which are deleted at its end."""

import asyncio
import io
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest_asyncio

Json = dict[str, Any]


class Client:
    """Speaks to a runtime's sessions; the session of most calls is called "s"."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def post(self, path: str, status: int = 200, /, **body: Any) -> Json:
        # As a file, because aiohttp's client warns about large bodies in memory.
        async with self._http.post(path, data=io.BytesIO(json.dumps(body).encode())) as response:
            found: Json = await response.json()
            assert response.status == status, found
            return found

    async def get(self, path: str, status: int = 200) -> Json:
        async with self._http.get(path) as response:
            found: Json = await response.json()
            assert response.status == status, found
            return found

    async def run(self, command: str, *, session: str = "s", status: int = 200, **fields: Any) -> Json:
        return await self.post("/api/execute", status, command=command, sessionId=session, **fields)

    async def out(self, command: str, *, session: str = "s", **fields: Any) -> str:
        """What a command prints that neither fails nor complains."""
        found = await self.run(command, session=session, **fields)
        assert (found["exitCode"], found["stderr"]) == (0, ""), found
        return found["stdout"]

    async def create(self, session: str = "s", *, status: int = 200, **fields: Any) -> Json:
        return await self.post("/api/session/create", status, id=session, **fields)

    async def delete(self, session: str = "s", *, status: int = 200) -> Json:
        return await self.post("/api/session/delete", status, sessionId=session)

    async def shows(self, session: str = "s", **fields: Any) -> None:
        """Waits until the session is there and is like this."""
        async with asyncio.timeout(20):
            for pause in itertools.repeat(0.01):
                async with self._http.get(f"/api/session/{session}") as response:
                    found = await response.json()
                if found | fields == found:
                    return
                await asyncio.sleep(pause)

    async def ends(self, session: str = "s") -> None:
        """Waits until the session is not there any more."""
        async with asyncio.timeout(20):
            for pause in itertools.repeat(0.01):
                if session not in await self.ids():
                    return
                await asyncio.sleep(pause)

    async def ids(self) -> list[str]:
        found: list[str] = (await self.get("/api/session/list"))["data"]
        return found


@pytest_asyncio.fixture
async def sessions(http: aiohttp.ClientSession) -> AsyncIterator[Client]:
    client = Client(http)
    yield client
    # Also those that have ended: what the next call would be told must not reach another test.
    for session in {"s", "t", *await client.ids()}:
        async with http.post("/api/session/delete", json={"sessionId": session}):
            pass
