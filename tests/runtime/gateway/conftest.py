"""The gateway's tests run on the event loop that the gateway runs on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest_asyncio
import uvloop

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import Harness, harness
from tests.support.haproxy import World, world


def pytest_asyncio_loop_factories(
    config: Any, item: Any
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest_asyncio.fixture
async def built() -> AsyncIterator[Harness]:
    """Everything there, nothing started."""
    async with harness() as built:
        yield built


@pytest_asyncio.fixture
async def gateway(built: Harness) -> Harness:
    """A gateway that is ready."""
    await built.start()
    return built


@pytest_asyncio.fixture
async def hello(gateway: Harness) -> Harness:
    """A gateway and a sandbox `hello` that is ready; the test brings the runtime."""
    await gateway.api.put(sandbox("hello"))
    return gateway


@pytest_asyncio.fixture
async def fast() -> AsyncIterator[World]:
    """A real HAProxy on loopback, with what steers it."""
    async with world() as built:
        yield built
