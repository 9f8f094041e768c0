"""When a sandbox may sleep, decided with a clock that the test moves; what its runtime says at the end."""

import asyncio
import contextlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sandpod_runtime.activity import LONGEST_LEASE, MOST_HOLDERS, Activity
from sandpod_runtime.errors import Fault
from sandpod_runtime.lifecycle import last_words
from sandpod_runtime.lifecycle.idleness import CpuUse, Idleness, Settings
from sandpod_runtime.lifecycle.last_words import LastWords, SessionLeft
from sandpod_runtime.lifecycle.life import Life
from sandpod_runtime.lifecycle.sleeper import Sleeper
from sandpod_runtime.lifecycle.steps import all_within

SLEEP_AFTER = 60


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class SleepMachine(RuleBasedStateMachine):
    """Whatever happens in whatever order. Times are whole seconds, so that sums are exact."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.activity = Activity(clock=self.clock)
        self.idleness = Idleness(self.activity, Settings(sleep_after=SLEEP_AFTER))
        self.working: list[contextlib.AbstractContextManager[None]] = []
        self.quiet_since = self.clock.now
        self.leased_until = 0.0

    @rule()
    def begin_work(self) -> None:
        work = self.activity.work()
        work.__enter__()
        self.working.append(work)
        self.quiet_since = self.clock.now

    @precondition(lambda self: self.working)
    @rule()
    def end_work(self) -> None:
        self.working.pop().__exit__(None, None, None)
        self.quiet_since = self.clock.now

    @rule()
    def touch(self) -> None:
        self.activity.touch()
        self.quiet_since = self.clock.now

    @rule(holder=st.sampled_from("abc"), seconds=st.integers(1, 200))
    def lease(self, holder: str, seconds: int) -> None:
        self.activity.lease(holder, seconds)
        self.quiet_since = self.clock.now
        self.leased_until = max(self.leased_until, self.clock.now + seconds)

    @rule(seconds=st.integers(0, 2 * SLEEP_AFTER))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule(keep_alive=st.booleans(), sleep_after=st.sampled_from([None, 0, 1, SLEEP_AFTER]))
    def change(self, keep_alive: bool, sleep_after: int | None) -> None:
        self.idleness.settings = Settings(sleep_after=sleep_after, keep_alive=keep_alive)

    @invariant()
    def it_never_sleeps_while_somebody_works(self) -> None:
        if self.working:
            assert self.idleness.left() is None
            assert "requests" in self.idleness.awake_because() or not self.idleness.ever

    @invariant()
    def it_never_sleeps_unless_it_is_to(self) -> None:
        if self.idleness.settings.keep_alive or not self.idleness.settings.sleep_after:
            assert self.idleness.left() is None

    @invariant()
    def it_sleeps_exactly_when_all_has_been_quiet_for_long_enough(self) -> None:
        left = self.idleness.left()
        if left is not None:
            due = max(
                self.quiet_since + (self.idleness.settings.sleep_after or 0),
                self.leased_until,
                self.clock.now,
            )
            assert self.clock.now + left == due

    @invariant()
    def what_keeps_it_awake_is_said(self) -> None:
        assert bool(self.idleness.awake_because()) == (self.idleness.left() != 0)


TestSleep = SleepMachine.TestCase
TestSleep.settings = settings(max_examples=60, stateful_step_count=30)


def activity() -> tuple[Clock, Activity]:
    clock = Clock()
    return clock, Activity(clock=clock)


def test_a_lease_only_grows_until_it_is_given_back() -> None:
    clock, found = activity()
    found.lease("gateway", 100)
    found.lease("gateway", 10)
    assert found.leases == {"gateway": clock.now + 100}
    found.lease("gateway", 0)
    assert found.leases == {}


def test_a_lease_has_a_longest_time() -> None:
    clock, found = activity()
    found.lease("gateway", 10 * LONGEST_LEASE)
    assert found.leases == {"gateway": clock.now + LONGEST_LEASE}


def test_holders_of_leases_are_bounded_and_those_that_ran_out_do_not_count() -> None:
    clock, found = activity()
    for number in range(MOST_HOLDERS):
        found.lease(f"holder-{number}", 10)
    with pytest.raises(Fault, match=str(MOST_HOLDERS)):
        found.lease("one more", 10)
    found.lease("holder-0", 20)
    clock.now += 10
    found.lease("one more", 10)
    assert set(found.leases) == {"holder-0", "one more"}


def test_somebody_who_is_expected_is_waited_for_and_whoever_comes_ends_that() -> None:
    clock = Clock()
    activity = Activity(clock=clock)
    idleness = Idleness(activity, Settings(sleep_after=1))
    activity.expect(10)
    clock.now += 9
    assert idleness.left() == 1
    with activity.work():
        assert idleness.left() is None
    assert idleness.left() == 1

    activity.expect(10)
    activity.lease("gateway", 2)
    assert idleness.left() == 2


def test_nobody_is_waited_for_longer_than_was_said() -> None:
    clock = Clock()
    activity = Activity(clock=clock)
    idleness = Idleness(activity, Settings(sleep_after=1))
    activity.expect(10)
    clock.now += 10
    assert idleness.left() == 0


def test_giving_a_lease_back_is_no_activity() -> None:
    clock, found = activity()
    before = found.last_active
    clock.now += 5
    found.lease("gateway", 0)
    assert found.last_active == before


def test_cpu_use_is_the_average_over_the_window() -> None:
    use = CpuUse()
    assert use.cores(now=0, used=10, window=60) == 0
    assert use.cores(now=10, used=15, window=60) == 0.5
    assert use.cores(now=20, used=15, window=60) == 0.25
    assert use.cores(now=80, used=15, window=60) == 0  # the burst is longer ago than the window


def test_cpu_time_that_seems_to_run_backwards_is_no_use() -> None:
    use = CpuUse()
    use.cores(now=0, used=10, window=60)
    assert use.cores(now=5, used=3, window=60) == 0


@given(readings=st.lists(st.tuples(st.floats(0, 100), st.floats(-10, 100)), max_size=30))
def test_cpu_use_is_never_negative_and_keeps_only_the_window(readings: list[tuple[float, float]]) -> None:
    use = CpuUse()
    now = used = 0.0
    for passed, more in readings:
        now, used = now + passed, used + more
        assert use.cores(now=now, used=used, window=60) >= 0


@pytest.mark.parametrize("before", [Settings(), Settings(sleep_after=600), Settings(keep_alive=True)])
async def test_other_settings_work_at_once_and_not_after_the_next_look(before: Settings) -> None:
    async def no_cpu() -> float:
        return 0.0

    found = Activity()
    idleness = Idleness(found, before)
    sleeping = asyncio.ensure_future(Sleeper(activity=found, idleness=idleness, cpu_seconds=no_cpu).idle())
    await asyncio.sleep(0)
    idleness.settings = Settings(sleep_after=0.01)
    # Looks are five seconds apart.
    async with asyncio.timeout(3):
        await sleeping


async def test_what_ends_a_life_first_is_its_reason() -> None:
    life = Life()
    life.refuse_when_over()
    life.end("requested", detail="for the night")
    life.end("terminated")
    assert (life.phase, await life.over(), life.detail) == ("draining", "requested", "for the night")
    with pytest.raises(Fault) as refused:
        life.refuse_when_over()
    assert refused.value.code == "CONTAINER_UNAVAILABLE"


async def test_a_step_that_fails_or_hangs_does_not_keep_the_others_from_theirs() -> None:
    done: list[str] = []

    async def good() -> None:
        done.append("good")

    async def bad() -> None:
        raise OSError("no disk")

    async def hanging() -> None:
        await asyncio.Event().wait()

    assert await all_within(5, {"good": good})
    assert not await all_within(0.05, {"bad": bad, "hanging": hanging, "good": good})
    assert done == ["good", "good"]


def words(sessions: list[SessionLeft], *, detail: str = "") -> LastWords:
    return LastWords(
        reason="idle",
        detail=detail,
        last_active_at="2031-04-05T06:07:08.009Z",
        ended_at="2031-04-05T06:07:08.009Z",
        saved=True,
        running={"commands": 0, "processes": 2},
        sessions=sessions,
    )


def repeated(text: str, times: int) -> str:
    return text * times


def first_256(text: str) -> str:
    return text[:256]


TEXTS = st.builds(repeated, st.text(max_size=20), st.integers(0, 200))


@given(
    sessions=st.lists(st.builds(SessionLeft, id=TEXTS.map(first_256), cwd=TEXTS), max_size=20),
    detail=TEXTS,
)
def test_the_last_words_fit_whatever_they_tell(sessions: list[SessionLeft], detail: str) -> None:
    message = last_words.encoded(words(sessions, detail=detail))
    assert len(message) <= last_words.LONGEST
    told = json.loads(message)
    assert told["reason"] == "idle"
    assert len(told["sessions"]) + told.get("sessionsOmitted", 0) == len(sessions)
    assert [each["id"] for each in told["sessions"]] == [
        each.id for each in sessions[: len(told["sessions"])]
    ]


def test_what_fits_is_told_whole() -> None:
    sessions = [SessionLeft(id=f"session-{number}", cwd=f"/workspace/{number}") for number in range(30)]
    told = json.loads(last_words.encoded(words(sessions)))
    assert told["sessions"] == [{"id": each.id, "cwd": each.cwd} for each in sessions]
    assert "sessionsOmitted" not in told
    assert "detail" not in told


def test_the_last_words_go_into_a_file_of_ones_own(tmp_path: Path) -> None:
    place = tmp_path / "message"
    place.write_text("older and longer")
    last_words.write(str(place), b"{}")
    assert place.read_text() == "{}"


def test_the_last_words_do_not_wait_for_a_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "message")
    with pytest.raises(OSError, match="No such device"):
        last_words.write(str(tmp_path / "message"), b"{}")
