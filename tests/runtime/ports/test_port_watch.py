"""Waiting for a port: `/api/port-watch`."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.support.ports import free_port
from tests.support.runtime import Runtime, soon

Json = dict[str, Any]
Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Watch:
    """An open stream, read event by event."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Json | None:
        async for line in self._response.content:
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        return None

    async def rest(self) -> list[Json]:
        found: list[Json] = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found


@asynccontextmanager
async def watching(http: aiohttp.ClientSession, **fields: Any) -> AsyncGenerator[Watch]:
    async with http.post("/api/port-watch", json=fields) as response:
        assert response.status == 200, await response.text()
        assert response.headers["Content-Type"] == "text/event-stream"
        watch = Watch(response)
        assert await watch.next() == {"type": "watching", "port": fields["port"]}
        yield watch


@asynccontextmanager
async def serving(
    *answers: bytes, host: str = "127.0.0.1", port: int = 0
) -> AsyncGenerator[tuple[int, list[bytes]]]:
    """Answers each connection with the next of these, the last for ever; tells what was asked."""
    asked: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(answers[min(len(asked), len(answers) - 1)])
        asked.append(head)
        writer.close()

    server = await asyncio.start_server(handle, host, port)
    async with server:
        yield server.sockets[0].getsockname()[1], asked


def answer(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "", ""]).encode()


async def test_ready_comes_once_the_server_is_there(http: aiohttp.ClientSession) -> None:
    port = free_port()
    async with (
        watching(http, port=port, interval=100) as watch,
        serving(answer("204 No Content"), port=port),
    ):
        assert await watch.rest() == [{"type": "ready", "port": port, "statusCode": 204}]


async def test_tcp_needs_no_answer_and_tells_no_status(http: aiohttp.ClientSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        async with watching(http, port=port, mode="tcp") as watch:
            assert await watch.rest() == [{"type": "ready", "port": port}]


@pytest.mark.parametrize("mode", ["http", "tcp"])
async def test_a_server_on_version_6_alone_is_found(http: aiohttp.ClientSession, mode: str) -> None:
    async with (
        serving(answer("200 OK"), host="::1") as (port, _),
        watching(http, port=port, mode=mode) as watch,
    ):
        assert [event["type"] for event in await watch.rest()] == ["ready"]


async def test_only_the_wanted_status_is_ready(http: aiohttp.ClientSession) -> None:
    answers = (answer("500 Oops"), answer("404 Not Found"), b"not http at all\r\n\r\n", answer("418 Tea"))
    async with (
        serving(*answers) as (port, asked),
        watching(http, port=port, statusMin=418, statusMax=418, interval=100) as watch,
    ):
        assert (await watch.rest())[0]["statusCode"] == 418
    assert len(asked) == 4


async def test_the_path_is_asked_for_as_one_line(http: aiohttp.ClientSession) -> None:
    async with (
        serving(answer("200 OK")) as (port, asked),
        watching(http, port=port, path="ready now?x=ü&y=1#part") as watch,
    ):
        await watch.rest()
    assert asked[0].startswith(b"GET /ready%20now?x=%C3%BC&y=1 HTTP/1.1\r\n")
    assert b"\r\nHost: localhost:%d\r\n" % port in asked[0]


async def test_an_early_hint_is_not_the_answer(http: aiohttp.ClientSession) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    async with serving(hints + answer("200 OK")) as (port, _), watching(http, port=port) as watch:
        assert (await watch.rest())[0]["statusCode"] == 200


async def test_redirects_are_followed_on_this_machine(http: aiohttp.ClientSession) -> None:
    async with serving(answer("200 OK")) as (port, asked):
        moved = answer("302 Found", f"Location: http://localhost:{port}/there")
        async with serving(moved) as (first, _), watching(http, port=first, statusMax=299) as watch:
            assert (await watch.rest())[0] == {"type": "ready", "port": first, "statusCode": 200}
    assert asked[0].startswith(b"GET /there ")


async def test_a_redirect_elsewhere_is_itself_the_answer(http: aiohttp.ClientSession) -> None:
    moved = answer("302 Found", "Location: http://203.0.113.1/away")
    async with serving(moved) as (port, asked), watching(http, port=port) as watch:
        assert (await watch.rest())[0]["statusCode"] == 302
    assert len(asked) == 1


async def test_a_circle_of_redirects_is_no_answer(http: aiohttp.ClientSession) -> None:
    async with (
        serving(answer("302 Found", "Location: /again")) as (port, asked),
        watching(http, port=port, interval=10_000),
    ):
        await soon(lambda: len(asked) >= 11)
        await asyncio.sleep(0.05)
    assert len(asked) == 11


async def test_the_end_of_the_process_is_told_at_once(http: aiohttp.ClientSession) -> None:
    async with http.post("/api/process/start", json={"command": "sleep 0.2; exit 3"}) as response:
        process_id = (await response.json())["processId"]
    begun = asyncio.get_running_loop().time()
    port = free_port()
    async with watching(http, port=port, processId=process_id, interval=10_000) as watch:
        assert await watch.rest() == [{"type": "process_exited", "port": port, "exitCode": 3}]
    # Not a round of the interval later.
    assert asyncio.get_running_loop().time() - begun < 8


async def test_a_process_that_has_ended_already_comes_before_its_port(http: aiohttp.ClientSession) -> None:
    async with http.post("/api/process/start", json={"command": "exit 0"}) as response:
        process_id = (await response.json())["processId"]
    async with http.post(f"/api/process/{process_id}/wait", json={"for": "exit"}) as response:
        assert response.status == 200
    async with (
        serving(answer("200 OK")) as (port, _),
        watching(http, port=port, processId=process_id) as watch,
    ):
        assert await watch.rest() == [{"type": "process_exited", "port": port, "exitCode": 0}]


async def test_an_unknown_process_is_an_error_in_the_stream(http: aiohttp.ClientSession) -> None:
    async with watching(http, port=5, processId="nobody") as watch:
        (event,) = await watch.rest()
    assert event["type"] == "error"
    assert "not found" in event["error"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"port": 0},
        {"port": 65536},
        {"port": "80"},
        {"port": 80.5},
        {"port": 80, "mode": "udp"},
        {"port": 80, "interval": "soon"},
        {"port": 80, "path": "/a\r\nHost: evil"},
        {"port": 80, "path": "/" + "x" * 5000},
        {"port": 80, "statusMin": -1},
        {"port": 80, "processId": 5},
    ],
)
async def test_bad_requests_are_refused(http: aiohttp.ClientSession, fields: Json) -> None:
    async with http.post("/api/port-watch", json=fields) as response:
        assert (response.status, (await response.json())["code"]) == (400, "VALIDATION_FAILED")


async def test_a_client_that_hangs_up_stops_the_probing(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    async with serving(answer("500 Oops")) as (port, asked):
        before = runtime.descriptors()
        async with watching(http, port=port, interval=100):
            await soon(lambda: len(asked) >= 2)
        await soon(lambda: runtime.descriptors() <= before)
        count = len(asked)
        await asyncio.sleep(0.4)
        assert len(asked) == count


async def test_a_server_that_says_nothing_does_not_hold_the_end_of_a_watch(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = runtime.descriptors()
        async with watching(http, port=server.getsockname()[1]):
            pass
        await soon(lambda: runtime.descriptors() <= before)


async def test_there_may_be_so_many_watches_and_no_more(http: aiohttp.ClientSession) -> None:
    port = free_port()
    async with aiohttp.ClientSession(http._base_url, connector=aiohttp.TCPConnector(limit=0)) as many:  # pyright: ignore[reportPrivateUsage]
        open_ones = [await many.post("/api/port-watch", json={"port": port}) for _ in range(64)]
        async with many.post("/api/port-watch", json={"port": port}) as response:
            found = await response.json()
            assert (response.status, found["code"]) == (409, "RESOURCE_BUSY")
            assert "64 port watches" in found["message"]
        for each in open_ones:
            each.close()
