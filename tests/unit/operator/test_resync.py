"""The comparison with a fresh list: phantoms go, debts of the watch are remembered."""

import asyncio
from collections.abc import Callable

import pytest
from sandpod_crds import paths
from sandpod_crds.errors import Unavailable
from sandpod_operator.health import LONGEST_BEHIND, Health
from sandpod_operator.kinds import KINDS
from sandpod_operator.metrics import Metrics
from sandpod_operator.objects import uid_of
from sandpod_operator.observations import Key
from sandpod_operator.resync import GRACE, Resync
from sandpod_operator.store import Store
from sandpod_operator.workqueue import WorkQueue

from tests.support.fake_clock import FakeClock
from tests.support.operator_api import Api
from tests.support.operator_objects import KEY, NOW, pod
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, new_sandbox


class Office:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.api = Api(now=lambda: NOW)
        self.store = Store()
        self.queue: WorkQueue[Key] = WorkQueue(clock=self.clock)
        self.pool_queue: WorkQueue[Key] = WorkQueue(clock=self.clock)
        self.metrics = Metrics()
        self.resync = Resync(
            cluster=self.api,
            store=self.store,
            queue=self.queue,
            pool_queue=self.pool_queue,
            metrics=self.metrics,
            clock=self.clock.time,
        )
        self.health = Health(
            queue=self.queue, pool_queue=self.pool_queue, resync=self.resync, clock=self.clock.time
        )


@pytest.mark.parametrize("failures", [0, 3])
async def test_after_a_new_list_of_a_watch_what_is_gone_is_found_soon_also_when_lists_fail(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    monkeypatch.setattr("sandpod_operator.resync.RELISTED", 0.0)
    monkeypatch.setattr("sandpod_operator.resync.GRACE", 0.0)
    office = Office()
    office.store.sandboxes.observe(office.api.put(SANDBOX_PATH, new_sandbox()))
    running = asyncio.create_task(office.resync.run())
    await asyncio.wait_for(office.resync.first_lists.wait(), timeout=10)
    office.api.vanish(SANDBOX_PATH)
    fails = iter(range(failures))

    def fail(_: int, call: str) -> None:
        if next(fails, None) is not None:
            raise Unavailable(503, "Unavailable", call)

    office.api.before = fail
    office.resync.relisted()
    while office.store.sandboxes.get(KEY) is not None:
        assert not running.done()
        await asyncio.sleep(0.01)
    running.cancel()

    assert office.metrics.errors.value(part="resync", reason="Unavailable") == failures


async def test_the_last_object_of_its_kind_is_missed_soon_though_no_watch_tells_of_an_empty_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandpod_operator.resync.RELISTED", 0.0)
    monkeypatch.setattr("sandpod_operator.resync.GRACE", 0.0)
    office = Office()
    office.store.sandboxes.observe(office.api.put(SANDBOX_PATH, new_sandbox()))
    office.store.pods.observe(office.api.put(POD_PATH, pod()))
    running = asyncio.create_task(office.resync.run())
    await asyncio.wait_for(office.resync.first_lists.wait(), timeout=10)
    office.api.vanish(POD_PATH)
    while office.store.pods.get(KEY) is not None:
        assert not running.done()
        await asyncio.sleep(0.01)
    running.cancel()

    assert office.store.sandboxes.get(KEY) is not None


async def test_an_api_server_that_is_away_is_no_empty_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandpod_operator.resync.RELISTED", 0.0)
    office = Office()
    office.store.sandboxes.observe(office.api.put(SANDBOX_PATH, new_sandbox()))
    running = asyncio.create_task(office.resync.run())
    await asyncio.wait_for(office.resync.first_lists.wait(), timeout=10)
    listed = len(office.api.calls)

    def fail(_: int, call: str) -> None:
        raise Unavailable(503, "Unavailable", call)

    office.api.before = fail
    while len(office.api.calls) < listed + 10:
        assert not running.done()
        await asyncio.sleep(0.01)
    running.cancel()

    # One question after the other about the only object that there is, and no list: those search all others.
    assert set(office.api.calls[listed:]) == {f"GET {SANDBOX_PATH}"}


async def test_an_object_that_another_of_its_name_has_replaced_unseen_is_missed_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandpod_operator.resync.RELISTED", 0.0)
    monkeypatch.setattr("sandpod_operator.resync.GRACE", 0.0)
    office = Office()
    office.store.sandboxes.observe(office.api.put(SANDBOX_PATH, new_sandbox()))
    running = asyncio.create_task(office.resync.run())
    await asyncio.wait_for(office.resync.first_lists.wait(), timeout=10)
    office.api.vanish(SANDBOX_PATH)
    office.api.put(SANDBOX_PATH, new_sandbox())
    while office.store.sandboxes.get(KEY) is not None:
        assert not running.done()
        await asyncio.sleep(0.01)
    running.cancel()


async def test_an_empty_cluster_is_in_sync_at_once() -> None:
    office = Office()
    assert not office.health.ready

    await office.resync.compare()

    assert office.health.ready
    assert office.health.troubles() == []


async def test_it_is_not_ready_before_the_watch_has_brought_everything() -> None:
    office = Office()
    listed = office.api.put(SANDBOX_PATH, new_sandbox())
    await office.resync.compare()
    assert not office.health.ready

    office.store.sandboxes.observe(listed)
    await office.resync.compare()

    assert office.health.ready


async def test_it_gets_ready_on_a_cluster_that_never_stands_still() -> None:
    office = Office()
    first = office.api.put(SANDBOX_PATH, new_sandbox())
    await office.resync.compare()
    office.store.sandboxes.observe(first)
    # There is always an object that the watch has yet to bring.
    office.api.put(POD_PATH, pod())
    await office.resync.compare()

    assert office.health.ready


async def test_an_object_deleted_before_the_watch_began_does_not_keep_it_from_being_ready() -> None:
    office = Office()
    office.api.put(POD_PATH, pod())
    await office.resync.compare()
    assert not office.health.ready
    office.api.vanish(POD_PATH)
    await office.resync.compare()

    assert office.health.ready


async def test_running_it_gets_ready_when_the_watch_has_brought_the_first_list() -> None:
    office = Office()
    first = office.api.put(SANDBOX_PATH, new_sandbox())
    running = asyncio.create_task(office.resync.run())

    async def until(condition: Callable[[], bool]) -> None:
        for _ in range(1000):
            if condition():
                return
            await asyncio.sleep(0.01)
        raise TimeoutError

    await until(lambda: len(office.api.calls) == len(KINDS))
    office.api.put(POD_PATH, pod())
    office.store.sandboxes.observe(first)
    await until(lambda: office.health.ready)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    # One list of each kind.
    assert len(office.api.calls) == len(KINDS)


async def test_it_lists_again_only_when_the_watch_brings_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandpod_operator.resync.FIRST", 0.0)
    office = Office()
    names = ("a", "b", "c")
    there = [
        office.api.put(
            paths.sandboxes(KEY.namespace, name), {"metadata": {"name": name, "namespace": KEY.namespace}}
        )
        for name in names
    ]
    running = asyncio.create_task(office.resync.run())

    async def rounds() -> int:
        """How often it has listed by now."""
        for _ in range(20):
            await asyncio.sleep(0)
        return len(office.api.calls) // len(KINDS)

    assert await rounds() == 1
    for each in there[:2]:
        office.clock.advance(GRACE - 1)
        office.store.sandboxes.observe(each)
        assert await rounds() == 1
    office.clock.advance(GRACE)
    assert await rounds() == 2
    running.cancel()


async def test_an_object_that_vanished_unseen_is_dropped_and_looked_at() -> None:
    office = Office()
    office.store.pods.observe(pod(resourceVersion="50"))
    office.resync.drop(await office.resync.compare())

    assert office.store.pods.get(KEY) is None
    assert len(office.queue) == 1


async def test_an_object_that_came_back_meanwhile_is_not_dropped() -> None:
    office = Office()
    office.store.pods.observe(pod(resourceVersion="50"))
    phantoms = await office.resync.compare()
    office.store.pods.observe(pod(resourceVersion="60", uid="another"))
    office.resync.drop(phantoms)

    assert office.store.pods.get(KEY) is not None


async def test_an_object_that_was_written_after_the_list_stays() -> None:
    office = Office()
    office.store.pods.observe(pod(resourceVersion="50"))
    phantoms = await office.resync.compare()
    # Somebody has put back the labels without which it was not in the list.
    office.store.pods.learn(pod(resourceVersion="5000"))
    office.resync.drop(phantoms)

    assert office.store.pods.get(KEY) is not None


async def test_an_object_that_was_wrongly_believed_gone_is_taken_back() -> None:
    office = Office()
    office.store.sandboxes.observe(office.api.put(SANDBOX_PATH, new_sandbox()))
    uid = uid_of(office.api.objects[SANDBOX_PATH])
    office.store.sandbox_deleted(KEY, uid=uid)

    await office.resync.compare()

    assert office.store.sandboxes.get(KEY) is not None
    assert await office.queue.get() == KEY


async def test_a_late_word_about_an_object_that_is_gone_does_not_keep_it() -> None:
    office = Office()
    office.store.pods.observe(pod(resourceVersion="50"))
    phantoms = await office.resync.compare()
    office.store.pods.observe(pod(resourceVersion="60"))
    office.resync.drop(phantoms)

    assert office.store.pods.get(KEY) is None


async def test_an_object_newer_than_the_list_stays() -> None:
    office = Office()
    office.store.pods.observe(pod(resourceVersion="5000"))
    office.resync.drop(await office.resync.compare())

    assert office.store.pods.get(KEY) is not None


async def test_a_watch_that_is_deaf_makes_the_operator_unhealthy() -> None:
    office = Office()
    listed = office.api.put(SANDBOX_PATH, new_sandbox())
    await office.resync.compare()
    office.clock.advance(LONGEST_BEHIND)
    assert office.health.troubles() == []
    office.clock.advance(1)
    assert office.health.troubles() == ["the watch has missed something for 181 s"]

    office.store.sandboxes.observe(listed)

    assert office.health.troubles() == []


async def test_an_object_that_came_and_went_is_no_debt() -> None:
    office = Office()
    listed = office.api.put(SANDBOX_PATH, new_sandbox())
    await office.resync.compare()
    office.store.sandboxes.observe(listed)
    office.store.sandbox_deleted(KEY, uid=listed["metadata"]["uid"])

    assert office.resync.behind() == 0


async def test_a_debt_whose_object_is_gone_is_forgiven() -> None:
    office = Office()
    office.api.put(POD_PATH, pod())
    await office.resync.compare()
    office.clock.advance(1000)
    office.api.vanish(POD_PATH)
    await office.resync.compare()

    assert office.resync.behind() == 0


async def test_a_key_that_nobody_gets_to_makes_the_operator_unhealthy() -> None:
    office = Office()
    office.queue.add(KEY)
    office.clock.advance(301)

    assert office.health.troubles() == ["a sandbox has waited for 301 s to be looked at"]


async def test_so_does_a_pool_that_nobody_gets_to() -> None:
    office = Office()
    office.pool_queue.add(KEY)
    office.clock.advance(300)
    assert office.health.troubles() == []
    office.clock.advance(1)

    assert office.health.troubles() == ["a pool has waited for 301 s to be looked at"]
