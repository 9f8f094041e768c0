"""Random histories of a pool and its sandboxes, with an operator that dies and an API server that fails: what
must never be, and how it ends when everybody is left in peace.

HYPOTHESIS_PROFILE=long tries many more.
"""

import asyncio
import os
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandpod_crds.errors import Forbidden, Throttled, Unavailable
from sandpod_crds.names import ANNOTATION_WAKE
from sandpod_operator.objects import Json, controller, section, uid_of
from sandpod_operator.pods import workspace_claim
from sandpod_operator.pool import take

from tests.support.operator_api import Killed
from tests.support.operator_faults import CUT_OFF_FOR, HOUR
from tests.support.operator_node import crash_it
from tests.support.operator_world import CLAIMS_PATH, World
from tests.support.pool_world import (
    OURS,
    PODS_PATH,
    POOL_PATH,
    TEMPLATE_PATH,
    condition,
    pods,
    put_pool,
    put_pool_alone,
    put_sandbox,
    ready,
    waiting,
)

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SANDBOXES = ("a", "b", "c", "d")
IMAGES = ("one:1", "two:2")
# What one thing that happens may cost in calls: all pods of the pool made anew, and a claim of each sandbox.
MOST_CALLS = 80

ACTION = st.one_of(
    st.tuples(st.just("create"), st.sampled_from(SANDBOXES)),
    st.tuples(st.just("delete"), st.sampled_from(SANDBOXES)),
    st.tuples(st.just("sleep"), st.sampled_from(SANDBOXES)),
    st.tuples(st.just("wake"), st.sampled_from(SANDBOXES)),
    st.tuples(st.just("delete the pool"), st.just(0)),
    st.tuples(st.just("make the pool again"), st.just(0)),
    st.tuples(st.just("scale"), st.integers(0, 5)),
    st.tuples(st.just("template"), st.sampled_from(IMAGES)),
    st.tuples(st.just("files"), st.sampled_from(["kept", "scratch"])),
    st.tuples(st.just("webhook"), st.sampled_from(["yes", "no"])),
    st.tuples(st.just("kill a pod"), st.integers(0, 9)),
    st.tuples(st.just("delete a pod"), st.integers(0, 9)),
    st.tuples(st.just("restart"), st.just(0)),
    st.tuples(st.just("fail"), st.integers(1, 6)),
    st.tuples(st.just("die"), st.integers(1, 6)),
    st.tuples(st.just("cut the watch off"), st.just(0)),
    st.tuples(st.just("put the clock"), st.sampled_from([-1, 1])),
    st.tuples(st.just("wait"), st.sampled_from([0, 1, 20])),
)

USERS = ("create", "delete", "sleep", "wake")
PLATFORM_TEAM = ("delete the pool", "make the pool again", "scale", "template", "files", "webhook")
WORKSPACES: dict[str | int, Json | None] = {"kept": {"size": "1Gi"}, "scratch": None}


@dataclass
class History:
    world: World = field(default_factory=World)
    luck: Random = field(default_factory=lambda: Random(1))
    # For so many hours in all, the clock was put back.
    put_back: int = 0
    # After so many calls the API server fails, or the operator dies.
    faults: dict[int, type[BaseException]] = field(default_factory=dict[int, type[BaseException]])
    # The volumes that each sandbox has worked in, by its UID.
    worked_in: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    # Somebody's webhook lets no volume be changed.
    strict: bool = False
    # By the UID of their pod: the sandboxes whose status has named it.
    served: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def __post_init__(self) -> None:
        self.world.api.before = lambda number, call: self.strike(number, call)
        self.world.api.after = lambda number, call: self.strike(-number, call)
        put_pool(self.world, template={"image": IMAGES[0], "workspace": {"size": "1Gi"}})

    def strike(self, number: int, call: str) -> None:
        self.check()
        if number > 0:
            self.check_files(call)
            if self.strict and call.startswith("PATCH") and "/persistentvolumeclaims/" in call:
                raise Forbidden(403, "Forbidden", "a webhook says no")
        fault = self.faults.pop(number, None)
        if fault is Killed:
            raise Killed(call)
        if fault is not None:
            raise fault(503, "Fault", call)

    def check(self) -> None:
        """At every moment."""
        api = self.world.api
        owners = Counter(controller(pod["metadata"]).get("uid") for pod in pods(self.world) if alive(pod))
        sandboxes = {uid_of(obj) for path, obj in api.objects.items() if "/sandboxes/" in path}
        twice = {uid: number for uid, number in owners.items() if number > 1 and uid in sandboxes}
        assert not twice, f"sandboxes with several pods: {twice}"
        for sandbox in self.sandboxes():
            status = section(sandbox, "status")
            if "podUID" in status:
                served = self.served.setdefault(status["podUID"], set())
                served.add(uid_of(sandbox))
                assert len(served) == 1, f"{status['podUID']} was given to {served}"
            pod = next((each for each in pods(self.world) if uid_of(each) == status.get("podUID")), None)
            claim = workspace_claim(pod) if pod is not None else None
            if status.get("phase") == "Running" and claim is not None:
                self.worked_in.setdefault(uid_of(sandbox), set()).add(claim)
        bound = [ask.pod_uid for ask in self.world.asker.wanted.values()]
        assert len(bound) == len(set(bound)), "two sandboxes ask for one pod"

    def check_files(self, call: str) -> None:
        """Nobody's are taken away: not from under a pod, and not while there is the sandbox that has them."""
        verb, _, path = call.partition(" ")
        if verb == "DELETE" and "/persistentvolumeclaims/" in path:
            name = path.rpartition("/")[2]
            kept = {claim for obj in self.sandboxes() for claim in self.worked_in.get(uid_of(obj), ())}
            assert name not in kept | mounted(self.world), f"files are lost: {call}"

    def sandboxes(self) -> list[Json]:
        return [obj for path, obj in self.world.api.objects.items() if "/sandboxes/" in path]

    async def take(self, action: str, value: str | int) -> None:
        before = len(self.world.api.calls)
        if action == "wait":
            await self.world.wait(int(value))
        elif action in USERS:
            self.users(action, str(value))
        elif action in PLATFORM_TEAM:
            self.platform_team(action, value)
        else:
            self.go_wrong(action, int(value))
        await self.world.settle()
        made = self.world.api.calls[before:]
        assert len(made) <= MOST_CALLS, f"{action}: {made}"

    def users(self, action: str, name: str) -> None:
        api, path = self.world.api, f"{OURS}/sandboxes/{name}"
        match action:
            case "create" if path not in api.objects:
                put_sandbox(self.world, name)
            case "delete" if path in api.objects:
                api.vanish(path)
            case "sleep" if path in api.objects:
                uid = section(api.objects[path], "status").get("podUID")
                if uid in self.world.runtimes:
                    self.world.fall_asleep(uid)
            case "wake" if path in api.objects:
                self.ask_awake(path)
            case _:
                pass

    def platform_team(self, action: str, value: str | int) -> None:
        api = self.world.api
        match action:
            case "delete the pool" if POOL_PATH in api.objects:
                api.vanish(POOL_PATH)
            case "make the pool again" if POOL_PATH not in api.objects:
                put_pool_alone(self.world, replicas=2)
            case "scale" if POOL_PATH in api.objects:
                api.change(POOL_PATH, {"spec": {"replicas": value}})
            case "template":
                api.change(TEMPLATE_PATH, {"spec": {"image": value}})
            case "files":
                api.change(TEMPLATE_PATH, {"spec": {"workspace": WORKSPACES[value]}})
            case "webhook":
                self.strict = value == "no"
            case _:
                pass

    def ask_awake(self, path: str) -> None:
        request = f"{len(self.world.api.calls)}"
        self.world.api.change(path, {"metadata": {"annotations": {ANNOTATION_WAKE: request}}})

    def go_wrong(self, action: str, value: int) -> None:
        world, api, there = self.world, self.world.api, pods(self.world)
        match action:
            case "kill a pod" if there:
                crash_it(world, there[value % len(there)])
                world.runtimes.pop(uid_of(there[value % len(there)]), None)
            case "delete a pod" if there:
                api.vanish(f"{PODS_PATH}/{there[value % len(there)]['metadata']['name']}")
            case "restart":
                world.boot()
            case "fail" | "die":
                number = len(api.calls) + value
                fault = Killed if action == "die" else self.luck.choice([Unavailable, Throttled])
                # A call that is throttled was not carried out; any other may have been.
                lost = fault is not Throttled and self.luck.random() < 0.5
                self.faults[-number if lost else number] = fault
            case "cut the watch off":
                world.blind = True
                world.clock.call_at(world.clock.time() + CUT_OFF_FOR, world.list_again)
            case "put the clock":
                self.put_back += max(-value, 0)
                world.put_clock(value * HOUR)
            case _:
                pass

    async def end_well(self) -> None:
        """Nobody does anything any more."""
        self.faults.clear()
        world = self.world
        self.platform_team("make the pool again", 0)
        self.platform_team("webhook", "yes")
        await world.wait(100)
        for path in [path for path in world.api.objects if "/sandboxes/" in path]:
            self.ask_awake(path)
        await world.wait(100)
        self.collect_garbage()
        # What is to happen at a time of day waits for that time.
        await world.wait(1000 + HOUR * self.put_back)
        wanted = world.api.objects[POOL_PATH]["spec"]["replicas"]
        image = world.api.objects[TEMPLATE_PATH]["spec"]["image"]
        assert condition(world, "Ready") == ("True", "AllReady")
        assert "lending" not in world.api.objects[POOL_PATH]["status"]
        assert [pod["spec"]["containers"][0]["image"] for pod in waiting(world)] == [image] * wanted
        names = [path.rpartition("/")[2] for path in world.api.objects if "/sandboxes/" in path]
        assert [ready(world, name) for name in names] == [("Running", "RuntimeAnswers")] * len(names)
        self.check_nothing_is_left_over(names, wanted)
        world.api.calls.clear()
        world.boot()
        await world.wait(100)
        assert world.api.calls == [], "converged means no writes"

    def collect_garbage(self) -> None:
        """The operator removes the pods of a sandbox that is gone sooner, unless it dies in that moment."""
        there = {uid_of(obj) for obj in self.world.api.objects.values()}
        for pod in pods(self.world):
            if controller(pod["metadata"]).get("uid") not in there:
                self.world.api.vanish(f"{PODS_PATH}/{pod['metadata']['name']}")

    def check_nothing_is_left_over(self, names: list[str], wanted: int) -> None:
        api = self.world.api
        volumes = {path.rpartition("/")[2] for path in api.objects if "persistentvolumeclaims" in path}
        assert len(pods(self.world)) == len(names) + wanted
        assert mounted(self.world) <= volumes
        there = {uid_of(obj) for obj in self.sandboxes()}
        for name in volumes - mounted(self.world):
            # Of a sandbox that has its files elsewhere now.
            owner = controller(api.objects[f"{CLAIMS_PATH}/{name}"]["metadata"])
            assert owner.get("uid") in there, f"{name} is nobody's"
        held = [
            section(api.objects[f"{OURS}/sandboxes/{name}"], "status").get("workspaceClaim") for name in names
        ]
        claims = [claim for claim in held if claim is not None]
        assert len(claims) == len(set(claims)), "two sandboxes have one volume"


def mounted(world: World) -> set[str]:
    """The volumes that pods have."""
    return {claim for pod in pods(world) if (claim := workspace_claim(pod)) is not None}


def alive(pod: dict[str, object]) -> bool:
    metadata = pod["metadata"]
    return isinstance(metadata, dict) and "deletionTimestamp" not in metadata


@settings(max_examples=1000 if LONG else 25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTION, max_size=14), st.randoms(use_true_random=False), st.booleans())
def test_whatever_happens_claims_are_exact_and_the_pool_recovers(
    actions: list[tuple[str, str | int]], luck: Random, burst: bool
) -> None:
    async def live() -> None:
        history = History(luck=luck)
        await history.world.settle()
        for action, value in actions:
            await history.take(action, value)
        await history.end_well()

    with patch.object(take, "is_burst", return_value=burst):
        asyncio.run(live())


ACTIONS = (
    *USERS,
    *PLATFORM_TEAM,
    "kill a pod",
    "fail",
    "die",
    "cut the watch off",
    "put the clock",
    "wait",
)


@pytest.mark.parametrize("burst", [False, True], ids=["one by one", "all in a burst"])
@pytest.mark.parametrize("seed", range(3))
def test_a_long_history(seed: int, burst: bool) -> None:
    luck = Random(seed)

    def choose() -> tuple[str, str | int]:
        action = luck.choice(ACTIONS)
        values: dict[str, list[str] | list[int]] = {
            "create": list(SANDBOXES),
            "delete": list(SANDBOXES),
            "sleep": list(SANDBOXES),
            "wake": list(SANDBOXES),
            "template": list(IMAGES),
            "files": ["kept", "scratch"],
            "webhook": ["yes", "no"],
            "put the clock": [-1, 1],
            "wait": [0, 1, 20],
        }
        return action, luck.choice(values.get(action, [1, 2, 3, 4, 5]))

    async def live() -> None:
        history = History(luck=luck)
        for _ in range(60):
            await history.take(*choose())
        await history.end_well()

    with patch.object(take, "is_burst", return_value=burst):
        asyncio.run(live())
