"""Many runtimes are asked, and none holds up the others."""

import asyncio
import gc
from dataclasses import replace

import pytest
from aiohttp import web
from sandpod_operator.observations import Key, Outcome
from sandpod_operator.runtime_client import MOST_AT_ONCE

from tests.support.asked_runtime import ASK, Asking, says
from tests.support.operator_objects import KEY


async def test_a_namespace_whose_pods_say_nothing_does_not_hold_up_others(bench: Asking) -> None:
    """Its pods accept connections and never answer; another tenant's runtime is asked all the same."""
    held: list[asyncio.StreamWriter] = []

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    silent = await asyncio.start_server(hold, host="127.0.0.1", port=0)
    where = {"10.1.0.8": silent.sockets[0].getsockname()[1], "10.1.0.7": bench.runtime.port}
    client = bench.client_to(lambda ip: f"127.0.0.1:{where[ip]}")
    for number in range(MOST_AT_ONCE + 1):
        client.want(Key("hostile", f"box-{number}"), replace(ASK, namespace="hostile", ip="10.1.0.8"))
    bench.runtime.binds = [says(200, {"runtimeVersion": "1"})]
    client.want(KEY, ASK)
    answer = await bench.answer()
    await client.close()
    for writer in held:
        writer.close()
    silent.close()

    assert answer.outcome is Outcome.DONE


async def test_what_has_said_nothing_once_is_given_less_time(
    bench: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandpod_operator.runtime_client.ANSWER_SECONDS", 0.05)
    # More of it here, so that only by it there can be an answer.
    monkeypatch.setattr("sandpod_operator.runtime_client.SILENT_SECONDS", 60.0)
    connections: list[asyncio.StreamWriter] = []

    async def answer_the_second(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        if len(connections) > 1:
            await asyncio.sleep(0.3)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    silent = await asyncio.start_server(answer_the_second, host="127.0.0.1", port=0)
    client = bench.client_to(lambda _: f"127.0.0.1:{silent.sockets[0].getsockname()[1]}")
    client.want(KEY, ASK)
    answer = await bench.answer()
    await client.close()
    for writer in connections:
        writer.close()
    silent.close()

    assert (answer.outcome, len(connections)) == (Outcome.DONE, 2)


async def test_a_namespace_in_which_nobody_is_asked_any_more_takes_no_room(bench: Asking) -> None:
    seen: list[int] = []

    def bound() -> web.Response:
        seen.append(bench.client.namespaces)
        return web.json_response({"runtimeVersion": "1"})

    bench.runtime.binds = [bound]
    for number in range(3):
        bench.client.want(KEY, replace(ASK, namespace=f"team-{number}"))
        await bench.answer()
    gc.collect()

    assert seen[0] == 1
    assert bench.client.namespaces == 0
