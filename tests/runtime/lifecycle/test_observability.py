"""What an operator of sandboxes sees: ids that join replies and logs, and figures."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime, soon

Json = dict[str, Any]

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
ID = re.compile(r"[0-9a-f]{16}")


async def figures(http: aiohttp.ClientSession) -> dict[str, float]:
    async with http.get("/metrics") as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = await response.text()
    samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/", None),
        ("GET", "/api/ping", None),
        ("POST", "/api/execute", {"command": "true"}),
        ("POST", "/api/execute/stream", {"command": "true"}),
        ("POST", "/api/execute", {"command": ""}),
        ("GET", "/nothing", None),
        ("OPTIONS", "/", None),
    ],
)
async def test_every_reply_has_an_id(http: aiohttp.ClientSession, method: str, path: str, body: Any) -> None:
    ids: set[str] = set()
    for _ in range(3):
        async with http.request(method, path, json=body) as response:
            await response.read()
            ids.add(response.headers["X-Request-Id"])
    assert len(ids) == 3
    assert all(ID.fullmatch(each) for each in ids)


async def test_an_error_says_the_id_under_which_the_log_has_it(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    async with http.post("/api/execute", json={"command": 5}) as response:
        body = await response.json()
    assert body["requestId"] == response.headers["X-Request-Id"]
    line = next(line for line in runtime.logged("request") if line["request_id"] == body["requestId"])
    assert (line["method"], line["route"], line["status"]) == ("POST", "/api/execute", 400)


async def test_what_is_not_http_gets_an_id_too(runtime: Runtime) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", runtime.port)
    writer.write(b"NONSENSE\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    said = re.search(rb"X-Request-Id: ([0-9a-f]{16})\r\n", answer)
    assert said is not None
    assert b'"requestId":"%b"' % said[1] in answer


async def test_all_lines_about_a_request_bear_its_trace(
    http: aiohttp.ClientSession, runtime: Runtime
) -> None:
    headers = {"traceparent": TRACEPARENT, "X-Trace-Id": "tr_0123456789abcdef"}
    async with http.post("/api/execute", json={"command": "true"}, headers=headers) as response:
        request_id = response.headers["X-Request-Id"]
    lines = [line for line in runtime.log() if line.get("request_id") == request_id]
    assert {line["message"] for line in lines} >= {"request", "command ended"}
    for line in lines:
        assert line["trace_id"] == TRACE
        assert line["client_trace_id"] == "tr_0123456789abcdef"
        assert line["span_id"] not in TRACEPARENT


async def test_a_malformed_trace_begins_a_new_one(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    async with http.get("/api/ping", headers={"traceparent": TRACEPARENT.upper()}) as response:
        request_id = response.headers["X-Request-Id"]
    line = next(line for line in runtime.logged("request") if line["request_id"] == request_id)
    assert re.fullmatch("[0-9a-f]{32}", line["trace_id"])
    assert line["trace_id"] != TRACE


async def test_paths_and_queries_are_not_logged(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    async with http.get("/nothing/hunter3?token=hunter3", headers={"Authorization": "hunter3"}) as response:
        assert response.status == 404
    async with http.get("/api/process/hunter3") as response:
        assert response.status == 404
    assert "hunter3" not in str(runtime.log())
    assert runtime.logged("request")[-1]["route"] == "/api/process/{id}"


async def test_requests_are_counted_by_the_route_as_it_is_declared(http: aiohttp.ClientSession) -> None:
    name = 'sandpod_runtime_requests_total{method="GET",route="/api/process/{id}",status="404"}'
    before = (await figures(http)).get(name, 0)
    for number in range(5):
        async with http.get(f"/api/process/no-{number}") as response:
            assert response.status == 404
    found = await figures(http)
    assert found[name] == before + 5
    assert not [each for each in found if "no-1" in each]


async def test_what_strangers_ask_for_makes_no_series(http: aiohttp.ClientSession) -> None:
    before = set(await figures(http))
    for number in range(20):
        async with http.request(f"METHOD{number}", f"/{number}") as response:
            await response.read()
    more = set(await figures(http)) - before
    assert len([each for each in more if "requests_total" in each]) <= 1


async def test_how_long_requests_took_is_a_histogram(http: aiohttp.ClientSession) -> None:
    async with http.post("/api/execute", json={"command": "sleep 0.6"}) as response:
        await response.read()
    found = await figures(http)
    prefix = 'sandpod_runtime_request_seconds_bucket{route="/api/execute",le='
    buckets = [value for name, value in found.items() if name.startswith(prefix)]
    assert buckets == sorted(buckets)
    assert found[prefix + '"0.5"}'] < found[prefix + '"2.5"}']
    assert buckets[-1] == found['sandpod_runtime_request_seconds_count{route="/api/execute"}']


async def test_what_runs_and_is_open_is_shown(http: aiohttp.ClientSession) -> None:
    name = 'sandpod_runtime_running{kind="commands"}'
    assert (await figures(http))[name] == 0
    async with http.post("/api/execute/stream", json={"command": "sleep 1"}) as _:
        found = await figures(http)
        assert found[name] == 1
        assert found['sandpod_runtime_requests_in_flight{route="/api/execute/stream"}'] == 1


async def test_a_client_that_hangs_up_is_counted(http: aiohttp.ClientSession) -> None:
    name = 'sandpod_runtime_requests_total{method="POST",route="/api/execute",status="499"}'
    before = (await figures(http)).get(name, 0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await http.post("/api/execute", json={"command": "sleep 20"})
    for _ in range(200):
        if (await figures(http)).get(name, 0) == before + 1:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it was not counted")


async def test_output_that_nobody_will_see_is_counted(http: aiohttp.ClientSession) -> None:
    name = "sandpod_runtime_output_dropped_bytes_total"
    before = (await figures(http))[name]
    body = {"command": "head -c 100000 /dev/zero", "maxOutputBytes": 40_000}
    async with http.post("/api/execute", json=body) as response:
        assert (await response.json())["stdoutCut"]["bytes"] == 60_000
    assert (await figures(http))[name] == before + 60_000
    body = {"command": "head -c 10000000 /dev/zero", "processId": "much"}
    async with http.post("/api/process/start", json=body) as response:
        assert response.status == 200
    async with http.post("/api/process/much/wait", json={"for": "exit"}) as response:
        assert response.status == 200
    assert (await figures(http))[name] > before + 60_000 + 5_000_000


async def test_the_runtimes_own_needs_are_shown(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    found = await figures(http)
    assert found["process_resident_memory_bytes"] == pytest.approx(runtime.memory() << 20, rel=0.2)
    assert found["process_open_fds"] == pytest.approx(runtime.descriptors(), abs=5)
    assert found["process_cpu_seconds_total"] > 0
    assert found["sandpod_runtime_uptime_seconds"] > 0
    assert 0 <= found["sandpod_runtime_memory_taken_bytes"] < found["sandpod_runtime_memory_total_bytes"]
    assert [value for name, value in found.items() if name.startswith("sandpod_runtime_build_info{")] == [1]
    assert "sandpod_runtime_seconds_until_sleep" not in found


async def test_the_time_until_sleep_is_shown(start: Callable[..., Runtime]) -> None:
    runtime = start(arguments=["--sleep-after", "600"])
    async with aiohttp.ClientSession(runtime.url) as http:
        assert 500 < (await figures(http))["sandpod_runtime_seconds_until_sleep"] <= 600


async def test_the_figures_need_the_credential(start: Callable[..., Runtime]) -> None:
    runtime = start(insecure=False)
    async with aiohttp.ClientSession(runtime.url) as http:
        async with http.get("/metrics") as response:
            assert response.status == 503
        async with http.post("/api/bind", json=BIND, headers={"X-Sandpod-Bind-Token": TOKEN}) as response:
            assert response.status == 200
        async with http.get("/metrics") as response:
            assert response.status == 401
        async with http.get("/metrics", headers={"X-Sandpod-Credential": CREDENTIAL}) as response:
            assert response.status == 200
            text = await response.text()
    assert CREDENTIAL not in text
    await soon(lambda: bool(runtime.logged("bound")))
    assert CREDENTIAL not in str(runtime.log())
