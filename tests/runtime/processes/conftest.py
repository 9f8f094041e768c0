"""The processes of the shared runtime."""

from collections.abc import AsyncIterator

import aiohttp
import pytest_asyncio

from tests.support.processes import Processes


@pytest_asyncio.fixture
async def processes(http: aiohttp.ClientSession) -> AsyncIterator[Processes]:
    found = Processes(http)
    yield found
    await found.request("DELETE", "kill-all")
