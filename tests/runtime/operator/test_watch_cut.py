"""Watches of the whole operator, kopf included, that break off and come back to a history that is forgotten:
whatever others have changed meanwhile, the end is the same as if no watch had ever been cut.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio
from sandpod_crds.errors import ApiError, Throttled, Unavailable
from sandpod_operator.kinds import KINDS, POD, POLICY, TEMPLATE
from sandpod_operator.objects import Json

from tests.support.watched_cluster import WatchedCluster, watched_cluster

PLURALS = {kind.plural for kind in KINDS}

# Of one kind: what a watch may ask for while it gets no answer, and how often all may be listed before the
# operator knows what it was not told.
MOST_ATTEMPTS = 12
MOST_LISTS = 8


class End(NamedTuple):
    picture: Json
    made: Counter[str]
    writes: int


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> End:
    """How it ends when no watch is cut."""

    async def live(patch: pytest.MonkeyPatch) -> End:
        async with watched_cluster(tmp_path_factory.mktemp("undisturbed"), patch) as cluster:
            await begin(cluster)
            told, called = len(cluster.api.log), len(cluster.api.calls)
            change(cluster)
            await cluster.until(cluster.all_run)
            await cluster.quiet()
            return End(cluster.picture(), cluster.made(since=told), len(cluster.writes(since=called)))

    with pytest.MonkeyPatch.context() as patch:
        end = asyncio.run(live(patch))
    # Nothing belongs to what is gone.
    assert "nobody" not in json.dumps(end.picture)
    return end


@pytest_asyncio.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WatchedCluster]:
    async with watched_cluster(tmp_path, monkeypatch) as cluster:
        await begin(cluster)
        yield cluster


async def begin(cluster: WatchedCluster) -> None:
    """All sandboxes run, and `forbidden` waits."""
    cluster.create("shape", {"env": [{"name": "A", "value": "before"}]}, kind=TEMPLATE)
    cluster.create("only-ours", {"allowedImages": ["sandpod/*"]}, kind=POLICY)
    for name in ("closed", "gone", "replaced", "started-anew", "unchanged"):
        cluster.create(name)
    cluster.create("shaped", {"templateRef": {"name": "shape"}})
    cluster.create("forbidden", {"image": "elsewhere/tool:1"})
    await cluster.until(lambda: cluster.all_run(but="forbidden") and cluster.phase("forbidden") == "Pending")
    # What protects them from drains comes a moment later.
    await cluster.until(lambda: cluster.made()["PodDisruptionBudget sandpod-sandboxes"] == 1)


def change(cluster: WatchedCluster) -> None:
    """What others do meanwhile."""
    cluster.delete("gone")
    cluster.delete("started-anew", kind=POD)
    cluster.change("closed", {"network": {"egress": "None"}})
    cluster.create("new")
    cluster.delete("replaced")
    cluster.create("replaced")
    cluster.change("shape", {"env": [{"name": "A", "value": "after"}]}, kind=TEMPLATE)
    # The last of its kind: the next list of them says nothing at all. Now `forbidden` may start.
    cluster.delete("only-ours", kind=POLICY)


async def miss_it(cluster: WatchedCluster) -> None:
    """All that changes happens while nothing is watched; then history is forgotten."""
    server = cluster.server
    asked = len(server.watches)
    server.cut()
    # Each has noticed that it is cut, and has not begun anew.
    await cluster.until(lambda: {kind for kind, _ in server.watches[asked:]} == PLURALS)
    change(cluster)
    server.forget()
    assert len(server.watches) - asked <= MOST_ATTEMPTS * len(KINDS)
    server.mend()


def but_for_a_wall(made: Counter[str]) -> Counter[str]:
    """That of an earlier sandbox is the next one's, or goes before that comes."""
    wall = "NetworkPolicy replaced-sandbox"
    assert made[wall] <= 1
    return Counter({name: number for name, number in made.items() if name != wall})


async def assert_it_ends_well(cluster: WatchedCluster, undisturbed: End, *, told: int, called: int) -> None:
    await cluster.until(lambda: cluster.picture() == undisturbed.picture)
    await cluster.quiet()
    assert cluster.picture() == undisturbed.picture
    assert but_for_a_wall(cluster.made(since=told)) == but_for_a_wall(undisturbed.made)
    writes = cluster.writes(since=called)
    assert len(writes) <= 2 * undisturbed.writes, writes
    assert not [call for call in writes if "unchanged" in call]
    assert {len(binds) for binds in cluster.node.bound.values()} == {1}


async def test_after_410_everything_is_as_if_the_watch_had_not_been_cut(
    cluster: WatchedCluster, undisturbed: End
) -> None:
    server = cluster.server
    told, called, lists = len(cluster.api.log), len(cluster.api.calls), len(server.lists)

    await miss_it(cluster)
    asked = len(server.watches)
    await assert_it_ends_well(cluster, undisturbed, told=told, called=called)

    # Each has asked once too late, and once more after a list.
    assert Counter(kind for kind, _ in server.expired) == Counter(PLURALS)
    assert Counter(kind for kind, _ in server.watches[asked:]) == Counter([*PLURALS, *PLURALS])
    assert max(Counter(server.lists[lists:]).values()) <= MOST_LISTS


@pytest.mark.parametrize(
    "refusal",
    [Throttled(429, "TooManyRequests", "too many requests"), Unavailable(500, "InternalError", "etcd")],
    ids=["429", "500"],
)
async def test_lists_that_are_refused_after_the_410_are_asked_for_again_and_not_in_a_hot_loop(
    cluster: WatchedCluster, undisturbed: End, refusal: ApiError
) -> None:
    server = cluster.server
    told, called, lists = len(cluster.api.log), len(cluster.api.calls), len(server.lists)
    left = iter(range(2 * len(KINDS)))

    def refuse(_: int, call: str) -> None:
        if call.startswith("LIST") and server.expired and next(left, None) is not None:
            raise refusal

    cluster.api.before = refuse
    await miss_it(cluster)
    await assert_it_ends_well(cluster, undisturbed, told=told, called=called)

    assert next(left, None) is None
    assert len(server.expired) == len(KINDS)
    assert len(server.lists) - lists <= (MOST_LISTS + 2) * len(KINDS)


async def test_a_sandbox_of_which_only_the_end_of_its_pod_is_told_is_not_started_again(
    cluster: WatchedCluster, undisturbed: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its pod is so old that nobody asks whether somebody takes away what is made.
    monkeypatch.setattr("sandpod_operator.undone.SOON", timedelta(0))
    told = len(cluster.api.log)
    cluster.node.collector_rests = True

    await miss_it(cluster)
    asked = len(cluster.server.watches)
    await cluster.until(lambda: len(cluster.server.watches) >= asked + 2 * len(KINDS))
    cluster.node.collector_rests = False
    cluster.node.collect()

    await cluster.until(lambda: cluster.picture() == undisturbed.picture)
    await cluster.quiet()
    assert cluster.picture() == undisturbed.picture
    assert not (but_for_a_wall(cluster.made(since=told)) - undisturbed.made)


async def test_the_end_of_the_last_of_a_kind_is_found_when_only_its_watch_was_cut(
    cluster: WatchedCluster,
) -> None:
    server = cluster.server
    asked, lists = len(server.watches), len(server.lists)
    server.cut(POLICY)
    await cluster.until(lambda: len(server.watches) > asked)
    cluster.delete("only-ours", kind=POLICY)
    server.forget()
    server.mend()

    await cluster.until(cluster.all_run)
    await cluster.quiet()

    assert [kind for kind, _ in server.expired] == [POLICY.plural]
    assert max(Counter(server.lists[lists:]).values()) <= MOST_LISTS


async def test_a_watch_that_has_ended_in_time_goes_on_where_its_last_bookmark_was_and_lists_nothing(
    cluster: WatchedCluster, undisturbed: End
) -> None:
    server = cluster.server
    told, called = len(cluster.api.log), len(cluster.api.calls)
    asked = len(server.watches)

    # Most have heard of nothing since they began.
    server.forget()
    server.end_watches()
    await cluster.until(lambda: len(server.watches) == asked + len(KINDS))
    change(cluster)

    await assert_it_ends_well(cluster, undisturbed, told=told, called=called)
    assert server.expired == []
    # After a list there would be one more.
    assert len(server.watches) == asked + len(KINDS)
