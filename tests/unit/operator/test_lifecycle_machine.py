"""Random histories of one sandbox, in a cluster where everything can go wrong at any time. What must never
be, is looked for after every step; what must be in the end, when nothing goes wrong any more.

HYPOTHESIS_PROFILE=long tries many more and longer ones.
"""

import asyncio
import os
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sandpod_crds.errors import ApiError, Conflict, Throttled, Unavailable
from sandpod_crds.names import ANNOTATION_WAKE
from sandpod_operator.objects import Json, controller, section, uid_of

from tests.support.operator_api import Killed
from tests.support.operator_scenarios import children
from tests.support.operator_world import (
    CLAIMS_PATH,
    SANDBOX_PATH,
    World,
    crash_it,
    hold_it,
    new_sandbox,
    run_it,
    run_it_deaf,
)

# In steady failure: a start each few seconds at first, then each five minutes.
MOST_CALLS_A_MINUTE = 6
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

SPECS: list[Json] = [
    {},
    {"workspace": {"size": "1Gi"}},
    {"workspace": {"size": "1Gi", "reclaim": "Retain"}, "setup": ["make"]},
    {"keepAlive": True},
    {"paused": True},
    {"sleepAfter": "5m", "network": {"egress": "None"}},
]
CHANGES: list[Json] = [
    {"paused": True},
    {"paused": False},
    {"keepAlive": True},
    {"keepAlive": False},
    {"sleepAfter": "1m"},
    {"image": "other:1"},
    {"network": {"egress": "None"}},
    {"workspace": {"size": "2Gi"}},
]
ERRORS: list[ApiError] = [
    Unavailable(500, "InternalError", "no leader"),
    Unavailable(0, "Timeout", "no answer"),
    Throttled(429, "TooManyRequests", "slowly", retry_after=1.0),
    Conflict(409, "Conflict", "the object has been modified"),
]
KUBELETS = [run_it, run_it, crash_it, hold_it, run_it_deaf]


class Lifecycle(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = World()
        self.wakes = 0

    def teardown(self) -> None:
        try:
            self._in_the_end()
        finally:
            self.loop.close()

    # What people do

    @precondition(lambda self: not self.exists)
    @rule(spec=st.sampled_from(SPECS))
    def create(self, spec: Json) -> None:
        self.world.api.put(SANDBOX_PATH, new_sandbox(spec))

    @precondition(lambda self: self.exists)
    @rule(change=st.sampled_from(CHANGES))
    def edit(self, change: Json) -> None:
        # A workspace cannot be taken away, nor its reclaim forgotten.
        self.world.api.change(SANDBOX_PATH, {"spec": change})

    @precondition(lambda self: self.exists)
    @rule()
    def delete(self) -> None:
        self.world.api.vanish(SANDBOX_PATH)

    @precondition(lambda self: self.exists)
    @rule()
    def ask_awake(self) -> None:
        self.wakes += 1
        self.world.ask_awake(f"request {self.wakes}")

    @precondition(lambda self: self.pods)
    @rule(pick=st.integers(0, 3), force=st.booleans())
    def delete_the_pod(self, pick: int, force: bool) -> None:
        path = self.pods[pick % len(self.pods)]
        if force:
            self.world.api.vanish(path)
        else:
            self.world.api.change(path, {"metadata": {"deletionTimestamp": "2026-11-18T12:10:00Z"}})

    @rule(what=st.sampled_from(["networkpolicies", "persistentvolumeclaims"]))
    def delete_a_child(self, what: str) -> None:
        used = {claim["metadata"]["name"] for claim in self._claims_in_use()}
        for path in [p for p in self.world.api.objects if p.split("/")[-2] == what]:
            if path.split("/")[-1] not in used:
                self.world.api.vanish(path)

    # What the cluster does

    @precondition(lambda self: self.world.runtimes)
    @rule(reason=st.sampled_from(["idle", "requested"]))
    def fall_asleep(self, reason: str) -> None:
        for uid in self._bound_runtimes():
            self.world.fall_asleep(uid, reason=reason)

    @precondition(lambda self: self.world.runtimes)
    @rule()
    def decide_to_sleep(self) -> None:
        for uid in self._bound_runtimes():
            self.world.runtimes[uid].draining = True

    @precondition(lambda self: self.pods)
    @rule(pick=st.integers(0, 3))
    def crash(self, pick: int) -> None:
        pod = self.world.api.objects[self.pods[pick % len(self.pods)]]
        self.world.runtimes.pop(uid_of(pod), None)
        crash_it(self.world, pod)

    @precondition(lambda self: self.pods)
    @rule(pick=st.integers(0, 3))
    def evict(self, pick: int) -> None:
        path = self.pods[pick % len(self.pods)]
        self.world.runtimes.pop(uid_of(self.world.api.objects[path]), None)
        evicted = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
        self.world.api.change(path, {"status": {**evicted, "containerStatuses": []}})

    @rule(kubelet=st.sampled_from(KUBELETS))
    def treat_pods_so(self, kubelet: Any) -> None:
        self.world.kubelet = kubelet

    @rule(there=st.booleans())
    def have_volumes(self, there: bool) -> None:
        self.world.has_volumes = there

    # What happens to the operator

    @rule()
    def kill(self) -> None:
        self.world.boot()

    @rule(after=st.booleans(), later=st.integers(0, 4))
    def kill_in_the_middle(self, after: bool, later: int) -> None:
        self._at("after" if after else "before", later, Killed("now"), times=1)

    @rule(
        after=st.booleans(), later=st.integers(0, 4), error=st.sampled_from(ERRORS), times=st.integers(1, 4)
    )
    def fail(self, after: bool, later: int, error: ApiError, times: int) -> None:
        self._at("after" if after else "before", later, error, times=times)

    @rule()
    def go_blind(self) -> None:
        self.world.blind = True

    @rule()
    def see_again(self) -> None:
        self.world.list_again()

    @rule(hours=st.sampled_from([-1, 1]))
    def put_the_clock(self, hours: int) -> None:
        self.world.put_clock(hours * 3600)

    @rule(seconds=st.sampled_from([0, 1, 5, 30, 70, 400]))
    def go_on(self, seconds: float) -> None:
        self._wait(seconds)

    # What must never be

    @invariant()
    def one_pod_at_most(self) -> None:
        live = [
            controller(pod["metadata"])["uid"]
            for pod in map(self.world.api.objects.__getitem__, self.pods)
            if "deletionTimestamp" not in pod["metadata"]
        ]
        assert len(live) == len(set(live))

    def _in_the_end(self) -> None:
        world = self.world
        world.api.before = world.api.after = lambda number, call: None
        world.kubelet, world.has_volumes = run_it, True
        for uid in self._bound_runtimes():
            if world.runtimes[uid].draining:
                # Whoever has decided to sleep, does.
                world.fall_asleep(uid)
        world.list_again()
        # The longest pause, and an hour that a clock may have been put back.
        self._wait(3600 + 700)
        world.api.calls.clear()
        self._wait(3600)
        assert world.api.calls == []
        world.boot()
        self._wait(60)
        assert world.api.calls == []
        self._check_rest()

    def _check_rest(self) -> None:
        world = self.world
        if not self.exists:
            # What is to outlive its sandbox, belongs to nobody.
            left = [p for p in world.api.objects if "/events/" not in p]
            assert all(p.startswith(CLAIMS_PATH) and not self._owned(p) for p in left), children(world)
            return
        spec, status = section(world.sandbox, "spec"), world.status
        request = section(world.sandbox["metadata"], "annotations").get(ANNOTATION_WAKE)
        if spec.get("paused"):
            assert (status["phase"], status["sleepReason"], self.pods) == ("Asleep", "Paused", [])
        elif status["phase"] == "Asleep":
            assert status.get("wakeObserved") == request
            assert self.pods == []
        else:
            assert world.ready() == ("Running", "True", "RuntimeAnswers")
            assert status.get("wakeObserved") == request
            assert [uid_of(world.api.objects[p]) for p in self.pods] == [status["podUID"]]
            wanted = (
                None
                if spec.get("keepAlive")
                else {"5m": 300.0, "1m": 60.0}.get(spec.get("sleepAfter", ""), 600.0)
            )
            assert world.runtimes[status["podUID"]].sleep_after == wanted

    @property
    def exists(self) -> bool:
        return SANDBOX_PATH in self.world.api.objects

    @property
    def pods(self) -> list[str]:
        return [path for path, obj in self.world.api.objects.items() if obj["kind"] == "Pod"]

    def _owned(self, path: str) -> bool:
        return bool(controller(self.world.api.objects[path]["metadata"]))

    def _bound_runtimes(self) -> list[str]:
        there = {uid_of(self.world.api.objects[path]) for path in self.pods}
        return [uid for uid, runtime in self.world.runtimes.items() if runtime.bound and uid in there]

    def _claims_in_use(self) -> list[Json]:
        names = {
            section(volume, "persistentVolumeClaim").get("claimName")
            for path in self.pods
            for volume in self.world.api.objects[path]["spec"].get("volumes", [])
        }
        found = [self.world.api.objects.get(f"{CLAIMS_PATH}/{name}") for name in names]
        return [claim for claim in found if claim is not None]

    def _at(self, moment: str, later: int, error: BaseException, *, times: int) -> None:
        first = len(self.world.api.calls) + later + 1

        def spring(number: int, call: str) -> None:
            if first <= number < first + times:
                raise error

        setattr(self.world.api, moment, spring)

    def _wait(self, seconds: float) -> None:
        before = len(self.world.api.calls)
        self.loop.run_until_complete(self.world.wait(seconds))
        made = len(self.world.api.calls) - before
        # What had gathered before, and what goes on all the time.
        assert made <= 60 + MOST_CALLS_A_MINUTE * seconds / 60, self.world.api.calls[-made:]


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(
    deadline=None,
    derandomize=not LONG,
    max_examples=1000 if LONG else 120,
    stateful_step_count=40 if LONG else 20,
)
