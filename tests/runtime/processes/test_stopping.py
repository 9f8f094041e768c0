"""What becomes of a start while the runtime is being stopped."""

import asyncio
from collections.abc import Callable

import aiohttp

from tests.support.runtime import TERMINATED, Runtime


async def test_a_command_whose_body_comes_after_the_end_has_begun_is_not_started(
    start: Callable[..., Runtime],
) -> None:
    runtime = start()
    made = runtime.workspace / "made"
    body = f'{{"command":"touch {made}"}}'.encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    async with aiohttp.ClientSession(runtime.url) as http:
        # It keeps the runtime from ending for two seconds.
        stubborn = {"command": "trap 'echo ending' TERM; echo ready; while :; do sleep 0.05; done"}
        async with http.post("/api/execute/stream", json=stubborn) as response:
            while b'"ready' not in await response.content.readline():
                pass
            head = b"POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            writer.write(head)
            await writer.drain()
            await asyncio.sleep(0.2)  # until it has been admitted
            runtime.process.terminate()
            while b'"ending' not in await response.content.readline():
                pass
            writer.write(body)
            answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    writer.close()
    assert b" 503 " in answer
    assert runtime.stop() == TERMINATED
    assert not made.exists()
