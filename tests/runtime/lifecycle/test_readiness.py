"""What the kubelet's probe is told: before the bind and after it, while it ends, and on a full disk."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.runtime import BIND, CREDENTIAL, TOKEN, Runtime, soon

Json = dict[str, Any]
Start = Callable[..., Runtime]
Sleepy = Callable[..., Any]
MIB = 1 << 20


async def probe(url: str) -> tuple[int, Json]:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/readyz") as response:
        return response.status, await response.json()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "workspace"
    place.mkdir()
    options = "size=64m,nr_inodes=200"
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", place], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


async def bind(runtime: Runtime, **changes: Any) -> Json:
    headers = {"X-Sandpod-Bind-Token": TOKEN}
    async with (
        aiohttp.ClientSession(runtime.url) as http,
        http.post("/api/bind", json=BIND | changes, headers=headers) as response,
    ):
        assert response.status == 200
        return await response.json()


async def disk(runtime: Runtime) -> Json | None:
    headers = {"X-Sandpod-Credential": CREDENTIAL}
    async with (
        aiohttp.ClientSession(runtime.url, headers=headers) as http,
        http.get("/api/lifecycle") as response,
    ):
        return (await response.json()).get("disk")


async def test_it_is_ready_without_a_credential_before_the_bind_and_after_it(start: Start) -> None:
    runtime = start(insecure=False)
    assert await probe(runtime.url) == (200, {"status": "ready"})
    await bind(runtime)
    assert await probe(runtime.url) == (200, {"status": "ready"})
    assert await disk(runtime) is None, "nothing outlives a sleep here"


async def test_probes_keep_nobody_awake_and_no_connection(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=1)

    async def probe_for_ever(http: aiohttp.ClientSession) -> None:
        while True:
            async with http.get("/readyz") as response:
                assert response.headers["Connection"] == "close"
            await asyncio.sleep(0.02)

    async with aiohttp.ClientSession(sleeper.runtime.url) as http, asyncio.timeout(30):
        with pytest.raises(aiohttp.ClientConnectionError):
            await probe_for_ever(http)
    assert (await asyncio.to_thread(sleeper.wait_for_sleep))["reason"] == "idle"


async def test_while_it_ends_it_is_not_ready(sleepy: Sleepy) -> None:
    sleeper = sleepy(sleep_after=None)
    async with aiohttp.ClientSession(sleeper.runtime.url) as http:
        # What takes its time to end gives us ours.
        command = {"command": "trap '' TERM; touch there; while :; do sleep 0.1; done"}
        async with http.post("/api/process/start", json=command) as response:
            assert response.status == 200
        await soon(lambda: (sleeper.runtime.workspace / "there").exists())
        async with http.post("/api/lifecycle/sleep", json={}) as response:
            assert response.status == 200
    status, body = await probe(sleeper.runtime.url)
    assert (status, body["code"]) == (503, "CONTAINER_UNAVAILABLE")
    await asyncio.to_thread(sleeper.wait_for_sleep)


async def test_a_full_disk_is_told_until_there_is_room_again(start: Start, small_disk: Path) -> None:
    runtime = start(insecure=False, workspace=small_disk, arguments=["--state", f"{small_disk}/.sandpod"])
    await bind(runtime)
    found = await disk(runtime)
    assert found == {
        "path": str(small_disk),
        "total": 64 * MIB,
        "free": found and found["free"],
        "full": False,
        "writable": True,
    }
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * (50 * MIB))
    assert await told(runtime, 507)
    found = await disk(runtime)
    assert found is not None
    assert found["full"]
    filler.write_bytes(b"x" * (40 * MIB))
    await asyncio.sleep(1.1)  # what is told is up to a second old; there is nothing else to wait for
    assert await told(runtime, 507), "a little more room is not enough"
    filler.unlink()
    assert await told(runtime, 200)


async def test_a_volume_that_cannot_be_written_to_is_told_at_the_bind(start: Start, small_disk: Path) -> None:
    runtime = start(insecure=False, workspace=small_disk, arguments=["--state", f"{small_disk}/.sandpod"])
    await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,ro", small_disk], check=True)
    answer = await bind(runtime)
    assert not answer["disk"]["writable"]
    found = await disk(runtime)
    assert found is not None
    assert not found["writable"]


async def test_a_disk_without_inodes_is_full(start: Start, small_disk: Path) -> None:
    runtime = start(insecure=False, workspace=small_disk, arguments=["--state", f"{small_disk}/.sandpod"])
    await bind(runtime)
    assert await told(runtime, 200)
    with contextlib.suppress(OSError):
        for number in range(1000):
            (small_disk / f"file-{number}").touch()
    message = await told(runtime, 507)
    assert message.startswith(f"the disk of {small_disk} is full")
    assert "spec.workspace.size" in message


async def told(runtime: Runtime, wanted: int) -> str:
    async with asyncio.timeout(10):
        while True:
            status, body = await probe(runtime.url)
            if status == wanted:
                return body.get("message") or body["status"]
            await asyncio.sleep(0.05)
