from collections.abc import AsyncIterator

import pytest

from tests.support.asked_runtime import AskedRuntime, Asking


@pytest.fixture
async def bench() -> AsyncIterator[Asking]:
    runtime = AskedRuntime()
    await runtime.start()
    bench = Asking(runtime)
    yield bench
    await bench.client.close()
    await runtime.stop()
