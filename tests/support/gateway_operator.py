"""A small operator beside a gateway: real runtimes, one life after the other, over one workspace. It does
with the annotation what the real one does: a wake that comes while a runtime goes to sleep stays pending.
"""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
from sandpod_crds import keys
from sandpod_crds.names import ANNOTATION_WAKE, BIND_TOKEN_HEADER, CREDENTIAL_HEADER

from .gateway_api_server import sandbox
from .gateway_harness import KEY, Harness, until
from .runtime import TOKEN, Runtime

Json = dict[str, Any]

# Runtimes that are started ahead, because starting one takes longer than all the rest of a round.
SPARE = 1


class SmallOperator:
    def __init__(self, harness: Harness, *, name: str, network: str, workspace: Path) -> None:
        """`network` is the beginning of its pods' addresses."""
        self.name = name
        self._network = network
        self._harness = harness
        workspace.mkdir()
        self._workspace = workspace
        self._random = random.Random(name)
        self._numbers = itertools.count(1)
        self._spare: asyncio.Queue[Runtime] = asyncio.Queue(SPARE)
        self._session = aiohttp.ClientSession()
        self._observed = ""
        # All that are not disposed of
        self._made: list[Runtime] = []
        self._making: asyncio.Future[Runtime] | None = None
        self._url: str | None = None
        self._headers: dict[str, str] = {}
        self.lives = 0
        # How often a runtime was found to refuse a lease, and how often it went to sleep without a wake
        self.refused = 0
        self.asleep = 0

    async def run(self) -> None:
        while True:
            await self._live()
            # What the real one does between the end of a pod and what it writes about it.
            await asyncio.sleep(self._random.uniform(0, 0.05))
            if self._wanted() == self._observed:
                self.asleep += 1
                await self._write("Asleep")
                await until(lambda: self._wanted() != self._observed, seconds=600)

    async def falling_asleep(self, *, before: float) -> None:
        """Returns so many seconds before the runtime will sleep, or when it does already. It may change its
        mind about the first: a command's own CPU time keeps it awake a little longer.
        """
        while (url := self._url) is not None:
            try:
                async with self._session.get(f"{url}/api/lifecycle", headers=self._headers) as answer:
                    told = await answer.json()
            except aiohttp.ClientError:
                return
            left: float = told.get("secondsLeft", 1.0)
            if told.get("phase") != "running" or left < before:
                return
            await asyncio.sleep(min(max(left - before, 0.01), 0.1))

    async def make_spares(self) -> None:
        while True:
            self._making = asyncio.ensure_future(asyncio.to_thread(self._make))
            # Shielded: a runtime that a thread is just starting would be left behind.
            await self._spare.put(await asyncio.shield(self._making))

    def _make(self) -> Runtime:
        runtime = Runtime(insecure=False, workspace=self._workspace)
        self._made.append(runtime)
        return runtime

    async def close(self) -> None:
        if self._making is not None:
            await self._making
        for runtime in list(self._made):
            await self._dispose(runtime)
        await self._session.close()

    async def _dispose(self, runtime: Runtime) -> None:
        self._made.remove(runtime)
        await asyncio.to_thread(runtime.dispose)

    async def _live(self) -> None:
        self._observed = self._wanted()
        await self._write("Starting")
        runtime = await self._spare.get()
        number = next(self._numbers)
        pod = {"pod_ip": f"{self._network}.{number % 250 + 1}", "pod_uid": f"{self.name}-{number}"}
        credential = keys.credential(key=KEY, namespace="default", pod_uid=pod["pod_uid"])
        self._harness.targets[pod["pod_ip"]] = runtime.port
        await self._bind(runtime, credential, pod["pod_uid"])
        self._url, self._headers = runtime.url, {CREDENTIAL_HEADER: credential}
        self.lives += 1
        await self._write("Running", **pod)
        while runtime.process.poll() is None:
            value = self._wanted()
            if value != self._observed and await self._lease(runtime):
                self._observed = value
                await self._write("Running", **pod)
            await asyncio.sleep(0.005)
        assert runtime.process.returncode == 0, runtime.log()
        self._url = None
        await self._dispose(runtime)

    async def _bind(self, runtime: Runtime, credential: str, pod_uid: str) -> None:
        body = {
            "sandbox": {"namespace": "default", "name": self.name, "uid": "u"},
            "pod": {"name": self.name, "uid": pod_uid},
            "credential": credential,
            "lifecycle": {"sleepAfterSeconds": self._random.uniform(0.1, 0.3)},
        }
        async with self._session.post(
            f"{runtime.url}/api/bind", json=body, headers={BIND_TOKEN_HEADER: TOKEN}
        ) as answer:
            assert answer.status == 200, await answer.text()

    async def _lease(self, runtime: Runtime) -> bool:
        with contextlib.suppress(aiohttp.ClientError):
            async with self._session.post(
                f"{runtime.url}/api/lifecycle/lease",
                json={"seconds": 0.1, "holder": "operator"},
                headers=self._headers,
            ) as answer:
                if answer.status == 200 and (await answer.json())["phase"] == "running":
                    return True
        self.refused += 1
        return False

    def _wanted(self) -> str:
        item = self._harness.api.objects.get(("default", self.name))
        return "" if item is None else item["metadata"]["annotations"].get(ANNOTATION_WAKE, "")

    async def _write(self, phase: str, **pod: str) -> None:
        ready = phase == "Running"
        item = sandbox(
            self.name,
            phase=phase,
            ready=ready,
            pod_ip=pod.get("pod_ip", ""),
            pod_uid=pod.get("pod_uid", ""),
            wake=self._wanted(),
            wake_observed=self._observed,
        )
        await self._harness.api.put(item)


@contextlib.asynccontextmanager
async def small_operator(
    harness: Harness, *, name: str, network: str, workspace: Path
) -> AsyncGenerator[SmallOperator]:
    operator = SmallOperator(harness, name=name, network=network, workspace=workspace)
    tasks = [asyncio.create_task(operator.make_spares()), asyncio.create_task(operator.run())]
    try:
        yield operator
        for task in tasks:
            if task.done():
                await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await operator.close()
