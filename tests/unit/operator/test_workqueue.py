"""The work queue, on a clock of our own."""

import asyncio
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from sandpod_operator.workqueue import FIRST_RETRY, LONGEST_HOLD, LONGEST_RETRY, WorkQueue

from tests.support.fake_clock import FakeClock


def make_queue() -> tuple[WorkQueue[str], FakeClock]:
    clock = FakeClock()
    return WorkQueue(clock=clock, jitter=lambda: 1.0), clock


async def take(queue: WorkQueue[str]) -> str:
    return await asyncio.wait_for(queue.get(), timeout=1)


async def test_a_key_added_twice_is_worked_on_once() -> None:
    queue, _ = make_queue()
    queue.add("a")
    queue.add("b")
    queue.add("a")

    assert [await take(queue), await take(queue)] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_added_while_it_is_worked_on_comes_again_afterwards() -> None:
    queue, _ = make_queue()
    queue.add("a")
    await take(queue)
    queue.add("a")

    assert len(queue) == 0
    queue.done("a")

    assert await take(queue) == "a"


async def test_a_waiting_worker_gets_the_key_that_comes() -> None:
    queue, _ = make_queue()
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")

    assert await asyncio.wait_for(worker, timeout=1) == "a"


async def test_a_delayed_key_comes_at_its_time_and_not_before() -> None:
    queue, clock = make_queue()
    queue.add_after("a", 5)
    clock.advance(4.9)
    assert len(queue) == 0
    clock.advance(0.1)
    assert await take(queue) == "a"


async def test_the_earliest_of_several_delays_counts_and_only_it() -> None:
    queue, clock = make_queue()
    queue.add_after("a", 5)
    queue.add_after("a", 2)
    queue.add_after("a", 9)
    clock.advance(2)
    assert await take(queue) == "a"
    queue.done("a")

    clock.advance(20)

    assert len(queue) == 0


async def test_looking_at_a_key_now_makes_its_delay_needless() -> None:
    queue, clock = make_queue()
    queue.add_after("a", 5)
    queue.add("a")
    await take(queue)
    queue.done("a")

    clock.advance(10)

    assert len(queue) == 0


async def test_a_key_whose_time_comes_while_it_is_worked_on_is_not_given_twice() -> None:
    queue, clock = make_queue()
    queue.add("a")
    await take(queue)
    queue.add_after("a", 1)
    clock.advance(2)
    assert len(queue) == 0

    queue.done("a")

    assert await take(queue) == "a"


async def test_failures_wait_longer_each_time_up_to_a_limit_until_one_succeeds() -> None:
    queue, _ = make_queue()
    delays = [queue.retry("a") for _ in range(20)]

    assert delays[0] == FIRST_RETRY
    assert all(later == min(2 * earlier, LONGEST_RETRY) for earlier, later in pairwise(delays))
    queue.forget("a")
    assert queue.retry("a") == FIRST_RETRY


async def test_the_api_server_may_ask_for_a_longer_pause() -> None:
    queue, _ = make_queue()

    assert queue.retry("a", at_least=7) == 7


async def test_one_key_s_failures_do_not_delay_another() -> None:
    queue, _ = make_queue()
    for _ in range(5):
        queue.retry("a")

    assert queue.retry("b") == FIRST_RETRY


async def fail(queue: WorkQueue[str], *, at_least: float = 0.0) -> float:
    """A worker takes the key and fails; returns after which pause it comes back."""
    key = await take(queue)
    delay = queue.retry(key, at_least=at_least)
    queue.done(key)
    return delay


async def test_events_bring_a_key_that_fails_back_once_a_second_and_not_at_once() -> None:
    queue, clock = make_queue()
    tries = 0
    for _ in range(1000):
        queue.add("a")
        if len(queue):
            tries += 1
            await fail(queue)
        clock.advance(0.01)

    # With the first ones, whose pauses are shorter
    assert tries <= 15
    clock.advance(LONGEST_HOLD)
    assert await take(queue) == "a"


async def test_a_key_that_conflicts_once_is_back_after_a_moment() -> None:
    queue, clock = make_queue()
    queue.add("a")
    await fail(queue)
    queue.add("a")
    assert len(queue) == 0
    clock.advance(FIRST_RETRY)

    assert await take(queue) == "a"


async def test_a_change_does_not_wait_for_the_end_of_a_long_pause() -> None:
    queue, clock = make_queue()
    queue.add("a")
    while await fail(queue) < LONGEST_RETRY:
        clock.advance(LONGEST_RETRY)
    clock.advance(5)
    queue.add("a")

    assert await take(queue) == "a"


async def test_what_was_planned_before_a_failure_waits_as_well() -> None:
    queue, clock = make_queue()
    queue.add("a")
    key = await take(queue)
    queue.add("a")
    queue.retry(key)
    queue.done(key)
    queue.add_after("a", FIRST_RETRY / 2)
    clock.advance(FIRST_RETRY * 0.9)
    assert len(queue) == 0
    clock.advance(FIRST_RETRY)

    assert await take(queue) == "a"


async def test_no_event_shortens_the_pause_that_the_api_server_asks_for() -> None:
    queue, clock = make_queue()
    queue.add("a")
    await fail(queue, at_least=7)
    queue.add("a")
    clock.advance(6.9)
    assert len(queue) == 0
    clock.advance(0.1)

    assert await take(queue) == "a"


async def test_a_key_that_succeeds_is_held_no_longer() -> None:
    queue, clock = make_queue()
    queue.add("a")
    await fail(queue)
    clock.advance(FIRST_RETRY)
    assert await take(queue) == "a"
    queue.forget("a")
    queue.done("a")
    queue.add("a")

    assert await take(queue) == "a"


async def test_the_age_of_the_oldest_key_counts_waiting_and_work() -> None:
    queue, clock = make_queue()
    assert queue.oldest() == 0
    queue.add("a")
    clock.advance(3)
    queue.add("b")
    assert queue.oldest() == 3
    await take(queue)
    clock.advance(2)

    assert queue.oldest() == 2
    queue.done("a")
    assert queue.oldest() == 2


@given(st.lists(st.floats(min_value=0.001, max_value=1000), min_size=1, max_size=300))
@settings(max_examples=50, deadline=None)
def test_the_timers_of_a_key_do_not_pile_up(delays: list[float]) -> None:
    queue, _ = make_queue()
    for delay in sorted(delays, reverse=True) * 3:
        queue.add_after("a", delay)

    assert queue.delayed == 1
    assert len(queue._heap) <= 65  # pyright: ignore[reportPrivateUsage] - memory is not to be seen otherwise


async def test_a_key_that_fails_for_ever_keeps_its_longest_pause() -> None:
    queue, _ = make_queue()
    delays = [queue.retry("a") for _ in range(1100)]

    assert delays[-1] == delays[20] <= LONGEST_RETRY


class Queueing(RuleBasedStateMachine):
    """Any history of adds, delays, workers and time."""

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.queue, self.clock = make_queue()
        self.working: set[str] = set()
        self.asked: dict[str, float] = {}
        self.held: dict[str, float] = {}

    @rule(target=keys, name=st.sampled_from("abcde"))
    def name_a_key(self, name: str) -> str:
        return name

    @rule(key=keys)
    def add(self, key: str) -> None:
        self.queue.add(key)
        self.ask(key, self.clock.time())

    @rule(key=keys, quarters=st.integers(min_value=0, max_value=40))
    def add_after(self, key: str, quarters: int) -> None:
        seconds = quarters / 4
        self.queue.add_after(key, seconds)
        self.ask(key, self.clock.time() + seconds)

    def ask(self, key: str, due: float) -> None:
        due = max(due, self.held.get(key, 0.0))
        self.asked[key] = min(self.asked.get(key, due), due)

    @rule(quarters=st.integers(min_value=0, max_value=20))
    def time_passes(self, quarters: int) -> None:
        self.clock.advance(quarters / 4)

    @rule()
    def a_worker_takes_one(self) -> None:
        if len(self.queue):
            key = asyncio.run(take(self.queue))
            assert key not in self.working, "two workers at one key"
            assert self.asked.pop(key) <= self.clock.time(), "before its time"
            self.working.add(key)

    @rule()
    def a_worker_is_done(self) -> None:
        if self.working:
            key = self.working.pop()
            self.queue.forget(key)
            self.held.pop(key, None)
            self.queue.done(key)

    @rule(at_least=st.sampled_from([0.0, 2.5]))
    def a_worker_fails(self, at_least: float) -> None:
        if self.working:
            key = self.working.pop()
            delay = self.queue.retry(key, at_least=at_least)
            self.queue.done(key)
            self.held[key] = self.clock.time() + max(min(delay, LONGEST_HOLD), at_least)
            due = self.clock.time() + delay
            self.asked[key] = max(min(self.asked.get(key, due), due), self.held[key])

    @invariant()
    def nothing_is_forgotten(self) -> None:
        due = {key for key, when in self.asked.items() if when <= self.clock.time()}
        assert len(self.queue) == len(due - self.working)

    def teardown(self) -> None:
        for key in list(self.working):
            self.queue.done(key)
            self.working.discard(key)
        self.clock.advance(100)
        assert len(self.queue) == len(self.asked)


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
