"""Processes of a runtime, as a client handles them."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from tests.support.events import events

Json = dict[str, Any]


class Processes:
    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def request(self, method: str, path: str, *, status: int = 200, **options: Any) -> Json:
        async with self._http.request(method, f"/api/process/{path}", **options) as response:
            body: Json = await response.json()
            assert response.status == status, body
            return body

    async def start(self, command: str, *, status: int = 200, **fields: Any) -> Json:
        return await self.request("POST", "start", json={"command": command, **fields}, status=status)

    async def get(self, process_id: str) -> Json:
        return (await self.request("GET", process_id))["process"]

    async def listed(self, query: str = "") -> list[Json]:
        return (await self.request("GET", f"list{query}"))["processes"]

    async def logs(self, process_id: str, query: str = "") -> Json:
        return await self.request("GET", f"{process_id}/logs{query}")

    async def kill(self, process_id: str, *, status: int = 200) -> Json:
        return await self.request("DELETE", process_id, status=status)

    async def wait(
        self, process_id: str, condition: str = "exit", *, status: int = 200, **fields: Any
    ) -> Json:
        body = {"for": condition, **fields}
        return await self.request("POST", f"{process_id}/wait", json=body, status=status)

    async def stream(self, process_id: str) -> AsyncIterator[Json]:
        async with self._http.get(f"/api/process/{process_id}/stream") as response:
            async for event in events(response):
                yield event

    async def followed(self, process_id: str) -> list[Json]:
        """All events of a log stream, up to its end."""
        return [event async for event in self.stream(process_id)]
