"""Random histories of sandboxes and a pool that they share, under many workers whose requests take turns and
a watch that is late, with another delay for each kind: what no order of steps may break, and the end.

HYPOTHESIS_PROFILE=long lives through many more of them.
"""

import asyncio
import os
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sandpod_crds.names import ANNOTATION_WAKE as WAKE
from sandpod_operator.objects import Json, controller, section, uid_of
from sandpod_operator.pool import take

from tests.support.operator_world import new_sandbox
from tests.support.parallel_world import ParallelWorld
from tests.support.pool_world import OURS, POOL_PATH, condition, put_pool, waiting

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
STEPS = 20
NAMES = tuple(f"box-{number}" for number in range(6))
VOLUME: Json = {"workspace": {"size": "1Gi"}}
POOLED: Json = {"poolRef": {"name": "python"}}
SPECS: tuple[Json, ...] = (
    POOLED,
    POOLED,
    {**POOLED, "lifetime": {"maxAge": "60s"}},
    {**POOLED, "network": {"egress": "None"}},
    {**VOLUME, "ports": [{"port": 8080}]},
    {"workspace": {**VOLUME["workspace"], "reclaim": "Retain"}},
)


class History:
    def __init__(self, seed: int) -> None:
        self.luck = Random(seed)
        self.world = ParallelWorld(self.luck)
        self.world.api.put("/api/v1/namespaces/team", {"kind": "Namespace", "metadata": {"name": "team"}})
        put_pool(self.world, replicas=3, template={"image": "python:3", **self.luck.choice([{}, VOLUME])})

    async def live(self) -> None:
        world, luck = self.world, self.luck
        await world.wait(5)
        for _ in range(STEPS):
            world.faulty = luck.random() < 0.4
            for _ in range(luck.randrange(1, 5)):
                self.act()
            await world.wait(luck.choice([0, 0, 1, 5, 30]))
        world.faulty = False
        await world.wait(1200)
        self.check_the_end()
        world.api.calls.clear()
        await world.wait(600)
        assert world.api.calls == [], "converged means no writes"

    def act(self) -> None:
        api, luck, name = self.world.api, self.luck, self.luck.choice(NAMES)
        path = f"{OURS}/sandboxes/{name}"
        if path not in api.objects:
            sandbox = new_sandbox(luck.choice(SPECS))
            sandbox["metadata"]["name"] = name
            api.put(path, sandbox)
            return
        acts: list[Any] = [
            lambda: api.vanish(path),
            self.somebody_falls_asleep,
            lambda: api.change(path, {"metadata": {"annotations": {WAKE: str(len(api.log))}}}),
            self.a_pod_vanishes,
            lambda: api.change(POOL_PATH, {"spec": {"replicas": luck.randrange(4)}}),
            lambda: api.change(path, {"spec": {"paused": luck.random() < 0.5}}),
        ]
        luck.choice(acts)()

    def somebody_falls_asleep(self) -> None:
        there = {uid_of(obj) for obj in self.world.api.objects.values()}
        awake = [uid for uid, each in self.world.runtimes.items() if each.bound and uid in there]
        if awake:
            self.world.fall_asleep(self.luck.choice(awake))

    def a_pod_vanishes(self) -> None:
        pods = [path for path, obj in self.world.api.objects.items() if obj["kind"] == "Pod"]
        if pods:
            self.world.api.vanish(self.luck.choice(pods))

    def check_the_end(self) -> None:
        objects = self.world.api.objects
        assert not self.world.wrong
        for obj in [each for each in objects.values() if each["kind"] == "Sandbox"]:
            status, request = section(obj, "status"), section(obj["metadata"], "annotations").get(WAKE)
            sleeps = bool(obj["spec"].get("paused")) or status.get("wakeObserved") == request
            assert status["phase"] == "Running" or (status["phase"] == "Asleep" and sleeps), status
        there = {uid_of(obj) for obj in objects.values()}
        owners = {path: controller(obj["metadata"]).get("uid") for path, obj in objects.items()}
        assert [path for path, owner in owners.items() if owner is not None and owner not in there] == []
        assert condition(self.world, "Ready") == ("True", "AllReady")
        assert len(waiting(self.world)) == objects[POOL_PATH]["spec"]["replicas"]
        assert "lending" not in objects[POOL_PATH]["status"]


@settings(
    deadline=None,
    derandomize=not LONG,
    max_examples=1000 if LONG else 8,
    # There is no smaller seed of the same history.
    phases=[Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("burst", [False, True], ids=["one by one", "all in a burst"])
def test_no_order_of_their_steps_makes_workers_stand_in_each_others_way(burst: bool, seed: int) -> None:
    with patch.object(take, "is_burst", return_value=burst):
        asyncio.run(History(seed).live())
