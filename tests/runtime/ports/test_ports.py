"""What listens: `/api/ports`."""

import os
import socket
from collections.abc import Callable
from typing import Any

import aiohttp

from tests.support.runtime import Runtime, soon

Json = dict[str, Any]
Execute = Callable[..., Any]
LISTEN = (
    "import socket, sys, time; s = socket.create_server(('{host}', 0), family=socket.{family}); "
    "print(s.getsockname()[1], flush=True); time.sleep(60)"
)


async def ports(http: aiohttp.ClientSession) -> dict[int, Json]:
    async with http.get("/api/ports") as response:
        assert response.status == 200
        return {each["port"]: each for each in (await response.json())["ports"]}


async def started(http: aiohttp.ClientSession, host: str, family: str = "AF_INET") -> tuple[Json, int]:
    """A process that listens, and its port."""
    command = f'exec python3 -c "{LISTEN.format(host=host, family=family)}"'
    async with http.post("/api/process/start", json={"command": command}) as response:
        process: Json = await response.json()
        assert response.status == 200, process
    url = f"/api/process/{process['processId']}/logs"
    while True:
        async with http.get(url) as response:
            if text := (await response.json())["stdout"]:
                return process, int(text)


async def test_a_port_is_shown_with_the_process_behind_it(http: aiohttp.ClientSession) -> None:
    process, port = await started(http, "127.0.0.1")
    found = (await ports(http))[port]
    assert (found["address"], found["uid"], found["control"]) == ("127.0.0.1", os.geteuid(), False)
    assert (found["pid"], found["processId"]) == (process["pid"], process["processId"])
    assert found["name"].startswith("python")
    assert "create_server" in found["command"]
    async with http.delete(f"/api/process/{process['processId']}") as response:
        assert response.status == 200
    assert port not in await ports(http)


async def test_a_port_of_version_6_is_shown_as_well(http: aiohttp.ClientSession) -> None:
    process, port = await started(http, "::1", "AF_INET6")
    assert (await ports(http))[port]["address"] == "::1"
    await http.delete(f"/api/process/{process['processId']}")


async def test_the_runtimes_own_port_is_marked(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    found = await ports(http)
    assert found[runtime.port]["control"]
    assert [port for port, each in found.items() if each["control"]] == [runtime.port]


async def test_a_child_of_a_process_counts_as_that_process(
    http: aiohttp.ClientSession, execute: Execute
) -> None:
    command = f'python3 -c "{LISTEN.format(host="127.0.0.1", family="AF_INET")}" & wait'
    async with http.post("/api/process/start", json={"command": command}) as response:
        process = await response.json()
    await soon_async(http, process["processId"])
    await http.delete(f"/api/process/{process['processId']}")


async def soon_async(http: aiohttp.ClientSession, process_id: str) -> None:
    while True:
        for each in (await ports(http)).values():
            if each.get("processId") == process_id:
                assert "create_server" in each["command"]
                return


async def test_a_port_that_nobody_of_ours_holds_has_no_process(http: aiohttp.ClientSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = (await ports(http))[server.getsockname()[1]]
    # The test is of the same user, so its process can be seen; it is not one that the runtime started.
    assert "processId" not in found


async def test_looking_leaves_nothing_open(http: aiohttp.ClientSession, runtime: Runtime) -> None:
    await ports(http)
    before = runtime.descriptors()
    for _ in range(20):
        await ports(http)
    await soon(lambda: runtime.descriptors() <= before)
