"""The chart's alerts and dashboard: what they read is told, and each alert says what to do."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sandpod_operator.gauges import MOST_POOLS, add_gauges, not_ready, phases, pool_claimed, pool_pods
from sandpod_operator.kinds import POOL, SANDBOX
from sandpod_operator.metrics import Metrics
from sandpod_operator.store import Store

from tests.support.monitoring import (
    ROOT,
    Json,
    alerts,
    dashboard,
    dashboard_queries,
    names_in,
    names_told,
    of_kind,
)

RUNBOOKS = ROOT / "docs/runbooks"
FUNCTIONS = {
    "absent", "and", "by", "histogram_quantile", "increase", "max", "on", "or", "rate", "sum",
}  # fmt: skip


def told_by_the_operator(store: Store | None = None) -> str:
    store, metrics = store or Store(), Metrics()

    add_gauges(
        metrics,
        store=store,
        queue=cast("Any", Idle()),
        pool_queue=cast("Any", Idle()),
        runtimes=cast("Any", {}),
        health=cast("Any", SimpleNamespace(lag=0.0, last_event_age=lambda: 1.5)),
        resync=cast("Any", SimpleNamespace(behind=lambda: 0.0, synced=True)),
    )
    return metrics.text()


class Idle:
    delayed = 0

    def __len__(self) -> int:
        return 0

    def oldest(self) -> float:
        return 0.0


def obj(name: str, **fields: Any) -> Json:
    metadata = {"namespace": "team", "name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {}, **fields}


def test_what_alerts_and_dashboard_read_of_the_operator_is_told() -> None:
    read = names_in([*dashboard_queries(), *(alert["expr"] for alert in alerts())])
    ours = {name for name in read if not name.startswith("sandpod_gateway_")}

    assert len(ours) > 15
    assert ours - names_told(told_by_the_operator()) == set()


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    named = {alert["alert"] for alert in alerts()}

    assert {page.stem for page in RUNBOOKS.glob("Sandpod*.md")} == named


def test_the_runbook_of_stuck_sandboxes_has_the_reasons_that_call_for_it() -> None:
    (alert,) = (alert for alert in alerts() if alert["alert"] == "SandpodSandboxesStuck")
    told = re.search(r'reason=~"([^"]+)"', alert["expr"])
    remedies = re.findall(r"^- (.+?):", (RUNBOOKS / "SandpodSandboxesStuck.md").read_text(), re.MULTILINE)

    assert told is not None
    assert set(told[1].split("|")) == set(re.findall(r"`(\w+)`", " ".join(remedies)))


@pytest.mark.parametrize("section", ["## What it means", "## How to look", "## What to do"])
def test_every_runbook_says_what_it_means_how_to_look_and_what_to_do(section: str) -> None:
    pages = sorted(RUNBOOKS.glob("Sandpod*.md"))

    assert pages
    assert [page.name for page in pages if section not in page.read_text()] == []


def test_an_alert_leads_to_its_runbook_where_the_platform_team_keeps_them() -> None:
    link = alerts("metrics.rules.runbookUrl=https://wiki.example.com/sandpod/")[0]["annotations"][
        "runbook_url"
    ]

    assert link == "https://wiki.example.com/sandpod/SandpodOperatorDown.md"
    assert "runbook_url" not in alerts()[0]["annotations"]


def test_every_alert_says_how_bad_it_is_and_since_when() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in ("warning", "critical")
        assert re.fullmatch(r"[0-9]+m", alert["for"])
        assert alert["annotations"]["summary"].endswith(".")
        assert alert["annotations"]["description"]


def test_the_queries_are_well_formed() -> None:
    queries = [*dashboard_queries(), *(alert["expr"] for alert in alerts())]

    assert [query for query in queries if not _well_formed(query)] == []


def test_prometheus_finds_both_programs() -> None:
    monitor = of_kind("ServiceMonitor", "metrics.serviceMonitor.labels.release=prometheus")[0]
    selector: Json = monitor["spec"]["selector"]["matchLabels"]
    found = [s for s in of_kind("Service") if selector.items() <= s["metadata"]["labels"].items()]
    ports = {s["metadata"]["name"]: [port["name"] for port in s["spec"]["ports"]] for s in found}

    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert {name for name, names in ports.items() if "metrics" in names} == {
        "sandpod-operator",
        "sandpod-gateway",
    }
    assert monitor["spec"]["endpoints"][0]["port"] == "metrics"


def test_grafana_finds_the_dashboard() -> None:
    found = next(each for each in of_kind("ConfigMap") if each["metadata"]["name"] == "sandpod-dashboard")

    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert '"title": "Sandpod"' in found["data"]["sandpod.json"]


def test_no_two_panels_lie_on_each_other() -> None:
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    cells = [
        (x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_sandboxes_are_counted_by_phase_and_by_what_keeps_them() -> None:
    store = Store()
    waits = [{"type": "Ready", "status": "False", "reason": "Unschedulable"}]
    sandboxes = store.cache(SANDBOX)
    sandboxes.observe(obj("a", status={"phase": "Pending", "conditions": waits}))
    sandboxes.observe(obj("b", status={"phase": "Asleep", "conditions": [{**waits[0], "reason": "Idle"}]}))
    sandboxes.observe(obj("c"))

    assert {phase: n for phase, n in phases(sandboxes).items() if n} == {"Pending": 1, "Asleep": 1, "New": 1}
    assert phases(sandboxes)["Running"] == 0
    assert not_ready(sandboxes) == {"Unschedulable": 1}


def test_a_pool_tells_how_full_it_is() -> None:
    store = Store()
    pools = store.cache(POOL)
    pools.observe(
        obj("tools", spec={"replicas": 3}, status={"readyReplicas": 1, "pendingReplicas": 2, "claimed": 7})
    )

    assert pool_pods(pools) == {
        ("team", "tools", "wanted"): 3,
        ("team", "tools", "ready"): 1,
        ("team", "tools", "pending"): 2,
    }
    assert pool_claimed(pools) == {("team", "tools"): 7}
    assert (
        'sandpod_operator_pool_pods{namespace="team",pool="tools",state="ready"} 1'
        in told_by_the_operator(store)
    )


def test_passes_over_pools_are_not_mixed_with_those_over_sandboxes() -> None:
    failing = next(alert["expr"] for alert in alerts() if alert["alert"] == "SandpodOperatorFailing")
    numbers = re.findall(r"sandpod_operator_(\w+)_total", failing)

    assert numbers == [
        "reconcile_failures",
        "reconciles",
        "pool_reconcile_failures",
        "pool_reconciles",
    ]


def test_pools_have_a_bounded_number_of_series() -> None:
    store = Store()
    for number in range(MOST_POOLS + 5):
        store.cache(POOL).observe(obj(f"pool-{number}"))

    assert len(pool_claimed(store.cache(POOL))) == MOST_POOLS


def _well_formed(query: str) -> bool:
    """Brackets in pairs, matchers of labels, ranges, and only functions that there are."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query).replace("$__rate_interval", "5m")
    without_matchers = re.sub(r'\{(?:\w+(?:=~|!~|!=|=)"",?\s*)*\}', "", bare)
    without_ranges = re.sub(r"\[[0-9]+[smhd]\]", "", without_matchers)
    # What a clause names are labels.
    without_clauses = re.sub(r"\b(by|on) \([\w, ]+\)", "", without_ranges)
    words = set(re.findall(r"[a-z_]\w*", without_clauses))
    depth = 0
    for character in without_clauses:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    metrics = {word for word in words if word.startswith(("sandpod_", "process_"))}
    return depth == 0 and not set("{}[]\"'") & set(without_clauses) and words - metrics <= FUNCTIONS
