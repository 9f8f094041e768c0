"""From start to end: when the gateway is ready, what it tells about itself, and how it goes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from tests.support.gateway_api_server import sandbox
from tests.support.gateway_harness import PREFIX, Harness, proxy_path, until


async def plain(built: Harness, path: str) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{built.gateway.metrics_port}{path}") as response,
    ):
        return response.status, await response.text()


async def test_it_is_alive_before_it_is_ready_and_ready_when_its_caches_are_filled(built: Harness) -> None:
    built.api.down = True
    await built.start_api()
    await built.start_gateway()
    await until(lambda: built.api.refused > 0)

    assert await plain(built, "/livez") == (200, "ok\n")
    assert await plain(built, "/healthz") == (200, "ok\n")
    status, text = await plain(built, "/readyz")
    assert (status, text) == (
        503,
        "not ready: no list of sandboxes yet, no key, certificate or front-proxy CA yet\n",
    )

    built.api.down = False
    await built.until_ready()


async def test_health_is_answered_at_the_door_too_and_to_anybody(gateway: Harness) -> None:
    connector = aiohttp.TCPConnector(ssl=gateway.stranger_context())
    async with aiohttp.ClientSession(connector=connector) as session:
        for path in ("/livez", "/readyz", "/healthz"):
            assert (await gateway.request("GET", path, session=session)).status == 200


async def test_metrics_count_requests_and_tell_of_the_caches(gateway: Harness) -> None:
    await gateway.raw_runtime()
    await gateway.api.put(sandbox("hello"))
    await gateway.request("POST", proxy_path("hello"))
    await gateway.request("POST", proxy_path("unknown"))

    _, text = await plain(gateway, "/metrics")

    assert 'sandpod_gateway_requests_total{door="aggregated",code="200"} 1' in text
    assert 'sandpod_gateway_requests_total{door="aggregated",code="404"} 1' in text
    assert "sandpod_gateway_routes 1" in text
    # One question for all of the namespace's sandboxes.
    assert "sandpod_gateway_authorization_misses_total 1" in text
    assert "sandpod_gateway_authorization_hits_total 1" in text
    assert "sandpod_gateway_runtime_idle_connections 1" in text
    assert "sandpod_gateway_watch_age_seconds " in text
    assert (await plain(gateway, "/secrets"))[0] == 404


async def test_connections_beyond_the_bound_are_closed(built: Harness) -> None:
    await built.start(max_connections=3)
    held = [await built.connect() for _ in range(3)]

    reader, writer = await built.connect()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await asyncio.wait_for(reader.readexactly(1), 5)
    writer.close()

    # The ones that were there first are served, and make room when they go.
    held[0][1].write(f"GET {PREFIX} HTTP/1.1\r\nHost: x\r\nX-Remote-User: jane\r\n\r\n".encode())
    assert (await held[0][0].readline()).startswith(b"HTTP/1.1 200")
    for _, open_writer in held:
        open_writer.close()
    async with asyncio.timeout(5):
        while True:
            try:
                assert (await built.request("GET", PREFIX)).status == 200
            except aiohttp.ClientError:
                continue
            break


async def test_draining_ends_readiness_first_and_what_is_under_way_last(built: Harness) -> None:
    await built.start(drain_delay_seconds=0.5, drain_seconds=20)
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one ")
        entered.set()
        await go_on.wait()
        await response.write(b"two")
        return response

    await built.runtime(slow)
    await built.api.put(sandbox("hello"))
    under_way = asyncio.create_task(built.request("POST", proxy_path("hello")))
    await entered.wait()

    built.stop.set()

    await until(lambda: built.gateway.draining)
    assert await plain(built, "/readyz") == (503, "not ready: draining\n")
    # Whoever has not heard of it yet is still served, and told to come back elsewhere.
    late = await built.request("GET", PREFIX)
    assert (late.status, late.headers["Connection"]) == (200, "close")
    async with asyncio.timeout(5):
        while True:
            try:
                _, writer = await built.connect()
            except OSError:
                break
            writer.close()
            await asyncio.sleep(0.05)
    assert not under_way.done()
    go_on.set()
    assert (await under_way).body == b"one two"
    await asyncio.wait_for(built.running, 5)


async def test_it_ends_when_the_installations_key_has_changed_but_not_when_it_is_away(built: Harness) -> None:
    await built.start(refresh_seconds=0.05)
    key = built.api.secrets.pop("sandpod-key")
    reads = built.api.reads
    # Certificate, CA and key make three.
    await until(lambda: built.api.reads >= reads + 6)
    assert not built.stop.is_set()
    built.api.secrets["sandpod-key"] = key
    reads = built.api.reads
    await until(lambda: built.api.reads >= reads + 6)
    assert not built.stop.is_set()

    built.api.secrets["sandpod-key"] = {"key": b"n" * 32}

    await asyncio.wait_for(built.running, 5)


async def test_draining_has_an_end(built: Harness) -> None:
    await built.start(drain_seconds=0.2)
    entered = asyncio.Event()

    async def forever(request: web.BaseRequest) -> web.StreamResponse:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    await built.runtime(forever)
    await built.api.put(sandbox("hello"))
    under_way = asyncio.create_task(built.request("POST", proxy_path("hello")))
    await entered.wait()

    built.stop.set()

    await asyncio.wait_for(built.running, 5)
    with pytest.raises(aiohttp.ClientError):
        await under_way
    assert [line["status"] for line in built.audit_lines()] == [499]


@pytest.fixture
async def program(built: Harness, tmp_path: Path) -> dict[str, Any]:
    """How to start the gateway as a program against the test's API server."""
    await built.start_api()
    kubeconfig: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{built.api.port}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
        "current-context": "c",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    settings = {"httpsPort": 0, "httpPort": 0, "metricsPort": 0, "drainDelaySeconds": 0}
    return {
        "args": [sys.executable, "-m", "sandpod_gateway"],
        "env": {**os.environ, "KUBECONFIG": str(path), "SANDPOD_SETTINGS": json.dumps(settings)},
    }


async def test_the_program_starts_serves_and_ends_on_sigterm(program: dict[str, Any]) -> None:
    process = await asyncio.create_subprocess_exec(
        *program["args"], env=program["env"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    log = b""
    async with asyncio.timeout(30):
        while b"serving the aggregated API" not in log or b"listed" not in log:
            line = await process.stderr.readline()
            assert line, log
            log += line

    process.send_signal(signal.SIGTERM)

    out, rest = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out) == (0, b""), log + rest
    assert b"Traceback" not in log + rest


async def test_the_program_says_what_is_wrong_with_its_settings(program: dict[str, Any]) -> None:
    process = await asyncio.create_subprocess_exec(
        *program["args"], env={**program["env"], "SANDPOD_SETTINGS": '{"prot": 1}'}, stderr=subprocess.PIPE
    )

    _, text = await asyncio.wait_for(process.communicate(), 20)

    assert process.returncode == 2
    assert b"prot" in text
    assert b"Traceback" not in text
