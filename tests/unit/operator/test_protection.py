"""The budgets that keep drains waiting: there with the first sandbox of a namespace, gone with the last."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandpod_crds.errors import ApiError, Forbidden, Unavailable
from sandpod_operator import protection
from sandpod_operator.metrics import Metrics
from sandpod_operator.objects import Json
from sandpod_operator.observations import Key
from sandpod_operator.protection import Found, Protection, Step, step
from sandpod_operator.store import Store

from tests.support.operator_api import Api

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)


class Cluster:
    """The API server, and the operator as far as it protects."""

    def __init__(self) -> None:
        self.api = Api(now=lambda: NOW)
        self.store = Store()
        self.synced = True
        self.metrics = Metrics()
        self.restart()

    def restart(self, *, enabled: bool = True) -> None:
        self.protection = Protection(
            cluster=self.api,
            store=self.store,
            enabled=enabled,
            synced=lambda: self.synced,
            metrics=self.metrics,
            clock=asyncio.get_running_loop().time,
        )

    def come(self, namespace: str, name: str) -> None:
        path = f"/apis/sandpod.dev/v1alpha1/namespaces/{namespace}/sandboxes/{name}"
        made = self.api.put(path, {"kind": "Sandbox", "metadata": {"name": name, "namespace": namespace}})
        self.store.sandboxes.observe(made)
        self.protection.touch(namespace)

    def go(self, namespace: str, name: str) -> None:
        key = Key(namespace, name)
        known = self.store.sandboxes.get(key)
        assert known is not None
        self.store.sandbox_deleted(key, uid=known["metadata"]["uid"])
        self.protection.touch(namespace, gone=True)

    async def look(self) -> None:
        await self.protection.look()
        assert await self.protection.settle() is None

    def writes(self) -> list[str]:
        """Since the last time that somebody asked."""
        found = [call for call in self.api.calls if not call.startswith(("GET", "LIST"))]
        self.api.calls.clear()
        return found

    @property
    def protected(self) -> list[str]:
        return [path.split("/")[5] for path in self.api.objects if "/poddisruptionbudgets/" in path]


@pytest.fixture
async def cluster() -> Cluster:
    made = Cluster()
    await made.look()
    return made


def budget(namespace: str) -> str:
    return f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/sandpod-sandboxes"


THERE = Found(uid="1", version="1", ours=True, as_wanted=True)
CHANGED = Found(uid="1", version="1", ours=True, as_wanted=False)
FOREIGN = Found(uid="1", version="1", ours=False, as_wanted=False)


@pytest.mark.parametrize(
    ("found", "wanted", "todo"),
    [
        (None, False, None),
        (None, True, Step.CREATE),
        (THERE, True, None),
        (THERE, False, Step.DELETE),
        (CHANGED, True, Step.CORRECT),
        (CHANGED, False, Step.DELETE),
        (FOREIGN, True, None),
        (FOREIGN, False, None),
    ],
)
def test_what_is_done_about_a_namespace(found: Found | None, wanted: bool, todo: Step | None) -> None:
    assert step(found, wanted=wanted) is todo


async def test_the_first_sandbox_of_a_namespace_brings_a_budget_that_grants_no_eviction(
    cluster: Cluster,
) -> None:
    cluster.come("team", "one")
    assert await cluster.protection.settle() is None

    made = cluster.api.objects[budget("team")]
    assert made["spec"] == {
        "minAvailable": 1_000_000,
        "selector": {"matchLabels": {"sandpod.dev/protected": "true"}},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    assert cluster.protected == ["team"]


async def test_more_sandboxes_are_no_more_writes(cluster: Cluster) -> None:
    cluster.come("team", "one")
    await cluster.protection.settle()
    cluster.writes()

    cluster.come("team", "two")
    await cluster.protection.settle()
    cluster.go("team", "one")
    await cluster.protection.settle()
    await cluster.look()

    assert cluster.writes() == []
    assert cluster.protected == ["team"]


async def test_the_last_sandbox_takes_the_budget_along(cluster: Cluster) -> None:
    for namespace in ("team", "shop"):
        cluster.come(namespace, "one")
    await cluster.protection.settle()

    cluster.go("team", "one")
    await cluster.protection.settle()

    assert cluster.protected == ["shop"]


async def test_a_sandbox_that_comes_while_the_budget_goes_is_protected(cluster: Cluster) -> None:
    def come(_: int, call: str) -> None:
        if call.startswith("DELETE"):
            cluster.come("team", "two")

    cluster.come("team", "one")
    await cluster.protection.settle()
    cluster.api.before = come
    cluster.go("team", "one")
    await cluster.protection.settle()
    assert cluster.protected == []

    await cluster.protection.settle()
    assert cluster.protected == ["team"]


async def test_an_operator_that_starts_finds_everything_again(cluster: Cluster) -> None:
    for namespace in ("team", "shop"):
        cluster.come(namespace, "one")
    await cluster.protection.settle()
    cluster.writes()

    cluster.restart()
    await cluster.look()

    assert cluster.writes() == []


async def test_what_happened_while_the_operator_was_away_is_caught_up(cluster: Cluster) -> None:
    cluster.come("team", "one")
    await cluster.protection.settle()
    cluster.go("team", "one")
    cluster.come("shop", "one")

    cluster.restart()
    await cluster.look()

    assert cluster.protected == ["shop"]


async def test_switched_off_in_the_chart_the_budgets_go(cluster: Cluster) -> None:
    cluster.come("team", "one")
    await cluster.protection.settle()

    cluster.restart(enabled=False)
    cluster.come("shop", "one")
    await cluster.look()

    assert cluster.protected == []


CHANGES: dict[str, Callable[[Api, str], object]] = {
    "deleted": lambda api, namespace: api.vanish(budget(namespace)),
    "changed": lambda api, namespace: api.change(budget(namespace), {"spec": {"minAvailable": 0}}),
    "turned round": lambda api, namespace: api.change(
        budget(namespace), {"spec": {"minAvailable": None, "maxUnavailable": 1}}
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_somebody_has_done_to_a_budget_is_put_right_at_the_next_look(
    cluster: Cluster, change: str
) -> None:
    cluster.come("team", "one")
    await cluster.protection.settle()
    wanted = cluster.api.objects[budget("team")]["spec"]

    CHANGES[change](cluster.api, "team")
    await cluster.look()

    assert cluster.api.objects[budget("team")]["spec"] == wanted


async def test_the_disruption_controllers_own_writes_are_in_nobodys_way(cluster: Cluster) -> None:
    cluster.come("team", "one")
    await cluster.protection.settle()
    cluster.api.change(budget("team"), {"spec": {"minAvailable": 0}})
    await cluster.protection.look()
    cluster.api.change(budget("team"), {"status": {"currentHealthy": 1}})

    # The first attempt is for a version that is not there any more.
    assert await cluster.protection.settle() is None
    assert await cluster.protection.settle() is None

    assert cluster.api.objects[budget("team")]["spec"]["minAvailable"] == 1_000_000


async def test_a_budget_of_that_name_that_is_somebody_elses_is_left_alone(cluster: Cluster) -> None:
    theirs: Json = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "sandpod-sandboxes", "namespace": "team"},
        "spec": {"maxUnavailable": 1},
    }
    cluster.api.put(budget("team"), theirs)

    cluster.come("team", "one")
    await cluster.protection.settle()
    cluster.go("team", "one")
    await cluster.protection.settle()

    assert cluster.api.objects[budget("team")]["spec"] == {"maxUnavailable": 1}


async def test_a_budget_whose_creation_was_not_answered_is_found(cluster: Cluster) -> None:
    def lose(_: int, call: str) -> None:
        if call.startswith("POST"):
            raise Unavailable(0, "Unreachable", "no answer")

    cluster.api.after = lose
    cluster.come("team", "one")
    assert isinstance(await cluster.protection.settle(), Unavailable)
    cluster.writes()

    assert await cluster.protection.settle() is None
    assert await cluster.protection.settle() is None

    assert cluster.protected == ["team"]
    # Tried, and then recognized.
    assert len(cluster.writes()) == 1


async def test_a_namespace_that_refuses_keeps_no_other_waiting(cluster: Cluster) -> None:
    def refuse(_: int, call: str) -> None:
        if call.startswith("POST") and "/crowded/" in call:
            raise Forbidden(403, "Forbidden", "exceeded quota: count/poddisruptionbudgets.policy=0")

    cluster.api.before = refuse
    cluster.come("crowded", "one")
    cluster.come("team", "one")
    assert isinstance(await cluster.protection.settle(), Forbidden)
    assert cluster.protected == ["team"]
    assert cluster.metrics.errors.value(part="drain protection", reason="Forbidden") == 1

    cluster.api.before = lambda number, call: None
    assert await cluster.protection.settle() is None
    assert cluster.protected == ["team", "crowded"]


async def test_what_one_namespace_refuses_makes_a_new_one_wait_for_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protection, "SETTLING", 0.0)
    # Longer than the test may take
    monkeypatch.setattr(protection, "FIRST_RETRY", 3600.0)

    def refuse(_: int, call: str) -> None:
        if call.startswith("POST") and "/crowded/" in call:
            raise Forbidden(403, "Forbidden", "exceeded quota: count/poddisruptionbudgets.policy=0")

    cluster.api.before = refuse
    cluster.come("crowded", "one")
    running = asyncio.create_task(cluster.protection.run())
    for _ in range(50):
        await asyncio.sleep(0)
    assert cluster.metrics.errors.value(part="drain protection", reason="Forbidden") == 1
    cluster.come("crowded", "two")
    cluster.come("team", "one")
    for _ in range(50):
        await asyncio.sleep(0)
    running.cancel()

    assert cluster.protected == ["team"]
    assert cluster.metrics.errors.value(part="drain protection", reason="Forbidden") == 1


async def test_in_a_namespace_that_is_going_nothing_is_protected_any_more(cluster: Cluster) -> None:
    def refuse(_: int, call: str) -> None:
        causes = {"causes": [{"reason": "NamespaceTerminating"}]}
        raise Forbidden(403, "Forbidden", "namespace team is being terminated", causes)

    cluster.api.before = refuse
    cluster.come("team", "one")

    assert await cluster.protection.settle() is None


async def test_nothing_is_taken_away_before_all_sandboxes_are_known(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protection, "SETTLING", 0.0)
    cluster.come("team", "one")
    await cluster.protection.settle()
    key = Key("team", "one")
    known = cluster.store.sandboxes.get(key)
    assert known is not None
    cluster.store, cluster.synced = Store(), False
    cluster.restart()
    cluster.api.calls.clear()

    running = asyncio.create_task(cluster.protection.run())
    for _ in range(50):
        await asyncio.sleep(0)
    assert cluster.api.calls == []

    cluster.store.sandboxes.observe({**known, "metadata": {**known["metadata"], "resourceVersion": "999"}})
    cluster.synced = True
    for _ in range(50):
        await asyncio.sleep(0)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert cluster.protected == ["team"]
    assert cluster.writes() == []


NAMESPACES = st.sampled_from(["team", "shop"])
ACTIONS = st.one_of(
    st.tuples(st.just("come"), NAMESPACES),
    st.tuples(st.just("go"), NAMESPACES),
    st.tuples(st.just("settle"), st.just("")),
    st.tuples(st.just("look"), st.just("")),
    st.tuples(st.just("restart"), st.just("")),
    st.tuples(st.sampled_from(["deleted", "changed", "turned round"]), NAMESPACES),
    # The next call is not carried out, or its answer is lost.
    st.tuples(st.sampled_from(["refuse", "lose"]), st.just("")),
)


class History:
    """Everything that can happen to budgets, in any order."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.there: dict[str, list[str]] = {}
        self.names = 0

    async def happen(self, action: str, namespace: str) -> None:
        cluster = self.cluster
        if action == "come":
            self.names += 1
            self.there.setdefault(namespace, []).append(f"box-{self.names}")
            cluster.come(namespace, f"box-{self.names}")
        elif action == "go" and self.there.get(namespace):
            cluster.go(namespace, self.there[namespace].pop())
        elif action in ("settle", "look"):
            with contextlib.suppress(ApiError):
                await (cluster.protection.look() if action == "look" else cluster.protection.settle())
        elif action == "restart":
            cluster.restart()
            with contextlib.suppress(ApiError):
                await cluster.protection.look()
        elif action in CHANGES and budget(namespace) in cluster.api.objects:
            CHANGES[action](cluster.api, namespace)
        elif action == "refuse":
            cluster.api.before = self.fail
        elif action == "lose":
            cluster.api.after = self.fail

    def fail(self, number: int, call: str) -> None:
        self.heal()
        raise Unavailable(0, "Unreachable", "no answer")

    def heal(self) -> None:
        self.cluster.api.before = self.cluster.api.after = lambda number, call: None

    async def come_to_rest(self) -> None:
        self.heal()
        for _ in range(3):
            await self.cluster.protection.look()
            assert await self.cluster.protection.settle() is None


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=25))
def test_whatever_has_happened_there_is_a_budget_where_there_are_sandboxes(
    actions: list[tuple[str, str]],
) -> None:
    async def play() -> None:
        history = History()
        await history.cluster.look()
        for action, namespace in actions:
            await history.happen(action, namespace)
        await history.come_to_rest()
        cluster = history.cluster
        assert sorted(cluster.protected) == sorted(ns for ns, names in history.there.items() if names)
        assert all(cluster.api.objects[budget(ns)]["spec"] == protection.SPEC for ns in cluster.protected)
        cluster.writes()
        await cluster.look()
        assert cluster.writes() == []

    asyncio.run(play())
