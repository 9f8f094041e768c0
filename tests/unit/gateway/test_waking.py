"""What the state of a sandbox means for a request, when a wake is asked for, and what bounds all of it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from sandpod_crds.errors import NotFound, Unavailable
from sandpod_crds.kube import Kube
from sandpod_gateway.errors import PodLeaving
from sandpod_gateway.leases import Leases
from sandpod_gateway.metrics import Metrics
from sandpod_gateway.routes import Route
from sandpod_gateway.waiting import (
    CERTAIN_SECONDS,
    UNCERTAIN_SECONDS,
    Full,
    LeavingPods,
    Patience,
    Room,
)
from sandpod_gateway.waking import AGAIN_SECONDS, SEEN_SECONDS, Step, Waker, fresh_value, step_for

KEY = ("default", "hello")
ASLEEP = Route(uid="u", phase="Asleep")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeKube:
    """Takes the patches; fails with what it is told to, one after the other."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.failures: list[Exception] = []

    async def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert path == "/apis/sandpod.dev/v1alpha1/namespaces/default/sandboxes/hello"
        assert body["metadata"]["uid"] == "u"
        if self.failures:
            raise self.failures.pop(0)
        self.values.append(body["metadata"]["annotations"]["sandpod.dev/wake-requested-at"])
        return {}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def waker(kube: FakeKube, clock: Clock) -> Waker:
    return Waker(kube=cast("Kube", kube), metrics=Metrics(gauges={}), clock=clock)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("route", "leaving", "step"),
    [
        (Route(uid="u", phase="Running", ready=True), False, Step.GO),
        (Route(uid="u", phase="Running", ready=True), True, Step.WAKE),
        (Route(uid="u", phase="Running", ready=True, paused=True), False, Step.GO),
        (Route(uid="u", phase="Running", ready=True, paused=True), True, Step.REFUSE),
        (Route(uid="u", phase="Running"), True, Step.WAKE),
        (Route(uid="u", phase="Running"), False, Step.REFUSE),
        (Route(uid="u", phase="Running", wake="2", wake_observed="1"), False, Step.WAIT),
        (Route(uid="u", phase="Asleep"), False, Step.WAKE),
        (Route(uid="u", phase="Asleep", wake="2", wake_observed="1"), False, Step.WAKE),
        (Route(uid="u", phase="Asleep", paused=True), False, Step.REFUSE),
        (Route(uid="u", phase="Draining"), False, Step.WAKE),
        (Route(uid="u", phase="Draining", paused=True), False, Step.REFUSE),
        (Route(uid="u", phase="Starting"), False, Step.WAIT_BRIEFLY),
        (Route(uid="u", phase="Starting", wake="1", wake_observed="1"), False, Step.WAIT),
        (Route(uid="u", phase="Pending"), False, Step.WAIT_BRIEFLY),
        (Route(uid="u"), False, Step.WAIT_BRIEFLY),
        (Route(uid="u", phase="Failed", wake="2"), True, Step.REFUSE),
        (Route(uid="u", phase="Asleep", deleting=True), True, Step.REFUSE),
    ],
)
def test_what_a_request_does_follows_from_the_sandboxs_state(route: Route, leaving: bool, step: Step) -> None:
    assert step_for(route, leaving=leaving) is step


SETTING_UP = Route(uid="u", phase="Starting", reason="SettingUp", pod_ip="10.1.0.7", pod_uid="p")


@pytest.mark.parametrize(
    ("route", "leaving", "step"),
    [
        (SETTING_UP, False, Step.GO),
        (SETTING_UP, True, Step.WAIT_BRIEFLY),
        (replace(SETTING_UP, pod_ip=""), False, Step.WAIT_BRIEFLY),
        (replace(SETTING_UP, reason="Starting"), False, Step.WAIT_BRIEFLY),
        (replace(SETTING_UP, deleting=True), False, Step.REFUSE),
        (replace(SETTING_UP, phase="Running", ready=True), False, Step.GO),
    ],
)
def test_what_the_setup_writes_can_be_read_while_it_runs(route: Route, leaving: bool, step: Step) -> None:
    assert step_for(route, leaving=leaving, in_setup=True) is step
    assert step_for(SETTING_UP, leaving=False) is Step.WAIT_BRIEFLY


def test_no_two_wakes_have_one_value() -> None:
    moment = datetime(2031, 4, 5, 6, 7, 8, 9, UTC)

    values = [fresh_value(moment) for _ in range(20)]

    assert all(value.startswith("2031-04-05T06:07:08.000009") and value.endswith("Z") for value in values)
    assert all(len(value) == len("2031-04-05T06:07:08.000009123Z") for value in values)
    assert len(set(values)) > 1


async def test_a_wake_is_asked_for_once_however_many_wait(waker: Waker, kube: FakeKube) -> None:
    for _ in range(100):
        assert waker.ask(KEY, ASLEEP) > 0
    await settle()
    for _ in range(100):
        waker.ask(KEY, ASLEEP)
    await settle()

    assert len(kube.values) == 1


async def test_a_wake_that_somebody_else_has_asked_for_will_do(
    waker: Waker, kube: FakeKube, clock: Clock
) -> None:
    pending = Route(uid="u", phase="Asleep", wake="theirs", wake_observed="older")

    assert waker.ask(KEY, pending) == AGAIN_SECONDS
    await settle()
    assert kube.values == []

    clock.now += AGAIN_SECONDS
    waker.ask(KEY, pending)
    await settle()
    assert len(kube.values) == 1


async def test_it_is_asked_for_again_when_it_sleeps_again_and_ever_more_slowly(
    waker: Waker, kube: FakeKube, clock: Clock
) -> None:
    waker.ask(KEY, ASLEEP)
    await settle()
    pauses: list[float] = []
    for _ in range(9):
        last = kube.values[-1]
        seen_again = Route(uid="u", phase="Asleep", wake=last, wake_observed=last)
        pauses.append(waker.ask(KEY, seen_again))
        clock.now += pauses[-1]
        waker.ask(KEY, seen_again)
        await settle()

    assert len(kube.values) == 10
    assert pauses == sorted(pauses)
    assert pauses[0] == pytest.approx(0.1)
    assert pauses[-1] == 10


async def test_for_a_pod_that_is_only_slow_requests_one_after_the_other_ask_no_more_often(
    waker: Waker, kube: FakeKube, clock: Clock
) -> None:
    for _ in range(10):
        last = kube.values[-1] if kube.values else ""
        slow = Route(uid="u", phase="Running", ready=True, pod_uid="p", wake=last, wake_observed=last)
        waker.ask(KEY, slow)
        await settle()
        waker.forget(KEY)
        clock.now += UNCERTAIN_SECONDS
    assert len(kube.values) == 2

    # Another pod of the sandbox is another matter, and so is one that has gone to sleep.
    waker.ask(KEY, Route(uid="u", phase="Running", ready=True, pod_uid="next"))
    await settle()
    waker.forget(KEY)
    waker.ask(KEY, ASLEEP)
    await settle()
    assert len(kube.values) == 4


async def test_what_was_not_yet_written_when_nobody_waited_any_more_holds_nobody_up(
    waker: Waker, kube: FakeKube
) -> None:
    leaving = Route(uid="u", phase="Running", ready=True, pod_uid="p")
    waker.ask(KEY, leaving)
    waker.forget(KEY)
    waker.ask(KEY, leaving)
    await settle()

    assert len(kube.values) == 1


async def test_it_is_asked_for_again_when_it_had_no_effect(
    waker: Waker, kube: FakeKube, clock: Clock
) -> None:
    waker.ask(KEY, ASLEEP)
    await settle()
    pending = Route(uid="u", phase="Asleep", wake=kube.values[0])

    # The table does not have it yet; then it has, and nothing happens.
    assert waker.ask(KEY, ASLEEP) == SEEN_SECONDS
    assert waker.ask(KEY, pending) == AGAIN_SECONDS
    clock.now += AGAIN_SECONDS
    waker.ask(KEY, pending)
    await settle()

    assert len(set(kube.values)) == 2


async def test_a_write_that_fails_is_tried_again_until_nobody_waits(waker: Waker, kube: FakeKube) -> None:
    kube.failures = [Unavailable(503, "ServiceUnavailable", "not now")]
    waker.ask(KEY, ASLEEP)
    async with asyncio.timeout(5):
        while not kube.values:  # noqa: ASYNC110 - a retry has no event
            await asyncio.sleep(0.01)

    kube.failures = [Unavailable(503, "ServiceUnavailable", "not now")] * 1000
    waker.forget(KEY)
    waker.ask(KEY, ASLEEP)
    await settle()
    waker.forget(KEY)
    left = len(kube.failures)
    await settle()
    assert len(kube.failures) == left


async def test_a_sandbox_that_is_gone_is_not_asked_for_again(waker: Waker, kube: FakeKube) -> None:
    kube.failures = [NotFound(404, "NotFound", "gone")]
    waker.ask(KEY, ASLEEP)
    await settle()

    assert (kube.values, kube.failures) == ([], [])


def test_a_pod_that_did_not_take_a_request_is_left_alone_for_a_while(clock: Clock) -> None:
    pods = LeavingPods(clock=clock)
    pods.mark("said so", certain=True)
    pods.mark("broke off", certain=False)
    # What was certain does not become less so by a broken connection.
    pods.mark("said so", certain=False)

    assert (pods.left("said so"), pods.left("broke off"), pods.left("other")) == (
        CERTAIN_SECONDS,
        UNCERTAIN_SECONDS,
        0,
    )
    clock.now += UNCERTAIN_SECONDS
    assert pods.left("broke off") == 0
    for number in range(5000):
        pods.mark(f"pod {number}", certain=True)
    assert len(vars(pods)["_until"]) == 4096


def test_so_many_may_wait_for_one_sandbox_and_so_many_in_all() -> None:
    room = Room(per_sandbox=2, per_namespace=9, total=3)
    with room.enter(KEY), room.enter(KEY):
        with pytest.raises(Full, match='2 requests wait here for sandbox "hello" already'), room.enter(KEY):
            pass
        with (
            room.enter(("default", "b")),
            pytest.raises(Full, match="3 requests wait here"),
            room.enter(("default", "c")),
        ):
            pass
        assert room.waiting == 2
    assert room.is_empty(KEY)
    assert (room.waiting, vars(room)["_waiting"]) == (0, {})


def test_a_namespace_whose_sandboxes_do_not_wake_leaves_room_for_others() -> None:
    room = Room(per_sandbox=2, per_namespace=3, total=9)
    with room.enter(("mine", "a")), room.enter(("mine", "a")), room.enter(("mine", "b")):
        with pytest.raises(Full, match='of the namespace "mine" already'), room.enter(("mine", "c")):
            pass
        with room.enter(("yours", "a")):
            assert room.waiting == 4
    assert vars(room)["_tenants"] == {}


def test_all_waits_of_a_request_together_take_no_longer_than_one(clock: Clock) -> None:
    patience = Patience(clock=clock)
    assert patience.left(60) == 60
    clock.now += 40
    assert patience.left(60) == 20
    assert patience.left(0.5) < 0


class FakeRuntime:
    """Grants leases, and takes its time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.asked: list[float] = []
        self.takes = 0.0
        self.refuses = False
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def ask(self, *, pod_uid: str, address: tuple[str, int], credential: str, seconds: float) -> None:
        self.asked.append(seconds)
        await self.go_on.wait()
        self.clock.now += self.takes
        if self.refuses:
            raise PodLeaving("going to sleep", certain=True)


def leases(runtime: FakeRuntime) -> Leases:
    return Leases(ask=runtime.ask, seconds=1, metrics=Metrics(gauges={}), clock=runtime.clock)


async def ensure(held: Leases, *, attempt: int = 0) -> None:
    await held.ensure(pod_uid="pod", address=("10.0.0.1", 3000), credential="c", attempt=attempt)


async def test_a_lease_serves_all_requests_of_its_first_half(clock: Clock) -> None:
    runtime = FakeRuntime(clock)
    held = leases(runtime)
    for _ in range(10):
        await ensure(held)
        clock.now += 0.04
    assert runtime.asked == [1]

    clock.now += 0.11
    assert not held.holds("pod")
    await ensure(held)
    assert runtime.asked == [1, 1]


async def test_requests_of_one_moment_share_a_lease_though_the_first_hangs_up(clock: Clock) -> None:
    runtime = FakeRuntime(clock)
    runtime.go_on.clear()
    held = leases(runtime)
    waiting = [asyncio.create_task(ensure(held)) for _ in range(10)]
    await settle()
    waiting[0].cancel()
    runtime.go_on.set()

    await asyncio.gather(*waiting[1:])
    assert runtime.asked == [1]


async def test_a_runtime_that_is_slow_to_answer_is_asked_for_longer(clock: Clock) -> None:
    runtime = FakeRuntime(clock)
    runtime.takes = 0.8
    held = leases(runtime)

    await ensure(held)
    # Half of it is over before anything could be sent.
    assert not held.holds("pod")
    await ensure(held, attempt=1)
    assert held.holds("pod")
    assert runtime.asked == [1, 2]


async def test_a_refusal_is_no_lease_for_anybody(clock: Clock) -> None:
    runtime = FakeRuntime(clock)
    runtime.refuses = True
    held = leases(runtime)

    results = await asyncio.gather(ensure(held), ensure(held), return_exceptions=True)

    assert [type(result) for result in results] == [PodLeaving, PodLeaving]
    assert not held.holds("pod")
    assert len(runtime.asked) == 1
