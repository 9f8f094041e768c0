"""Whether the cluster enforces NetworkPolicies: what follows from what the gateways report, what is believed
for how long, and what the condition Isolated says.
"""

from datetime import UTC, datetime
from typing import Any

import pytest
from sandpod_crds.errors import Unavailable
from sandpod_crds.models import Condition
from sandpod_crds.names import ConditionType
from sandpod_operator import enforcement
from sandpod_operator.conditions import Verdict
from sandpod_operator.enforcement import Detector, Report, judge, obstacle
from sandpod_operator.isolation import Enforcement, isolation_verdict
from sandpod_operator.objects import Json
from sandpod_operator.reasons import SENTENCES, Reason
from sandpod_operator.settings import Settings

from tests.support.fake_clock import FakeClock
from tests.support.operator_api import Api

NOTHING = Report(open=False, closed=False)
OPEN_ONLY = Report(open=True, closed=False)
BOTH = Report(open=True, closed=True)
CLOSED_ONLY = Report(open=False, closed=True)
RELEASE = {"app.kubernetes.io/name": "sandpod", "app.kubernetes.io/instance": "sandpod"}
LABELS = {**RELEASE, "app.kubernetes.io/component": "operator"}


def policy(name: str = "sandpod-operator", *, selects: Json | None = None, **spec: Any) -> Json:
    selector = {"matchLabels": LABELS if selects is None else selects}
    ingress = [{"ports": [{"protocol": "TCP", "port": 9090}]}]
    return {
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": "sandpod-system"},
        "spec": {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress, **spec},
    }


@pytest.mark.parametrize(
    ("reports", "found"),
    [
        ([], Enforcement.UNKNOWN),
        ([NOTHING], Enforcement.UNKNOWN),
        ([OPEN_ONLY], Enforcement.ENFORCED),
        ([NOTHING, OPEN_ONLY], Enforcement.ENFORCED),
        ([BOTH], Enforcement.NOT_ENFORCED),
        ([OPEN_ONLY, BOTH], Enforcement.NOT_ENFORCED),
        ([CLOSED_ONLY], Enforcement.NOT_ENFORCED),
    ],
)
def test_who_gets_through_the_closed_door_proves_that_nothing_is_enforced(
    reports: list[Report], found: Enforcement
) -> None:
    assert judge(reports) is found


def seen(*policies: Json) -> str | None:
    return obstacle(policies, name="sandpod-operator", labels=LABELS)


def test_with_our_policy_alone_a_knock_is_conclusive() -> None:
    assert seen(policy()) is None


def test_without_our_policy_an_open_door_proves_nothing() -> None:
    assert "there is no NetworkPolicy sandpod-operator" in (seen() or "")


OPENED: list[list[Json]] = [
    [{}],
    [{"ports": []}],
    [{"ports": [{"protocol": "TCP"}]}],
    [{"ports": [{"port": 9091}]}],
    [{"ports": [{"port": 9090, "endPort": 9100}]}],
    [{"ports": [{"port": 9090}]}, {"from": [{"podSelector": {}}]}],
]


@pytest.mark.parametrize("ingress", OPENED)
def test_nor_does_it_when_our_policy_was_opened(ingress: list[Json]) -> None:
    assert "somebody has changed" in (seen(policy(ingress=ingress)) or "")


@pytest.mark.parametrize("selects", [{}, {"app.kubernetes.io/instance": "sandpod"}])
def test_nor_when_another_policy_may_open_the_port_too(selects: Json) -> None:
    assert "NetworkPolicy allow-all may open" in (seen(policy(), policy("allow-all", selects=selects)) or "")


def test_policies_that_have_nothing_to_do_with_it_do_not_count() -> None:
    gateways = policy("gateway", selects={"app.kubernetes.io/component": "gateway"})
    others = policy("database", selects={"app": "database"})
    deny_all = policy("deny-all", selects={}, ingress=[])
    assert seen(policy(), gateways, others, deny_all) is None


class Knocks:
    """A cluster, and what the gateway reports next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **network: Any) -> None:
        monkeypatch.setattr(enforcement, "BETWEEN_KNOCKS", 0.0)
        self.clock = FakeClock()
        self.api = Api(now=lambda: datetime(2026, 11, 18, tzinfo=UTC))
        self.api.put(
            "/apis/networking.k8s.io/v1/namespaces/sandpod-system/networkpolicies/sandpod-operator", policy()
        )
        self.pod("operator-1", "10.1.0.1", component="operator")
        self.pod("gateway-1", "10.1.0.2")
        self.reports: list[Report | None] = []
        self.asked: list[str] = []
        self.news: list[Enforcement] = []
        said = {"sandboxImage": "s", "runtimeImage": "r", "releaseLabels": RELEASE, "network": network}
        self.detector = Detector(
            cluster=self.api,
            settings=Settings.model_validate(said),
            clock=self.clock.time,
            changed=lambda: self.news.append(self.detector.enforcement),
            ask=self.ask,
        )

    def pod(self, name: str, ip: str | None, *, component: str = "gateway") -> None:
        path = f"/api/v1/namespaces/sandpod-system/pods/{name}"
        labels = {**RELEASE, "app.kubernetes.io/component": component}
        metadata = {"name": name, "namespace": "sandpod-system", "labels": labels}
        self.api.put(path, {"kind": "Pod", "metadata": metadata})
        self.api.change(path, {"status": {"podIP": ip}})

    async def ask(self, address: str) -> Report | None:
        self.asked.append(address)
        return self.reports.pop(0) if self.reports else None

    async def hear(self, *reports: Report | None) -> Enforcement:
        self.reports = list(reports)
        await self.detector.look()
        return self.detector.enforcement


@pytest.fixture
def knocks(monkeypatch: pytest.MonkeyPatch) -> Knocks:
    return Knocks(monkeypatch)


async def test_before_the_first_knock_nothing_is_said(knocks: Knocks) -> None:
    assert knocks.detector.enforcement is Enforcement.UNTOLD


async def test_a_closed_door_that_stays_closed_is_enforcement(knocks: Knocks) -> None:
    assert await knocks.hear(OPEN_ONLY) is Enforcement.ENFORCED
    assert knocks.asked == ["10.1.0.2"]


async def test_an_open_door_has_to_be_open_again_and_again(knocks: Knocks) -> None:
    assert await knocks.hear(BOTH, BOTH, BOTH) is Enforcement.NOT_ENFORCED


async def test_a_policy_that_has_only_just_reached_its_node_is_no_alarm(knocks: Knocks) -> None:
    assert await knocks.hear(BOTH, OPEN_ONLY) is Enforcement.ENFORCED


async def test_every_gateway_is_asked_and_one_without_an_address_is_not(knocks: Knocks) -> None:
    knocks.pod("gateway-2", "10.1.0.3")
    knocks.pod("gateway-3", None)
    assert await knocks.hear(None, OPEN_ONLY) is Enforcement.ENFORCED
    assert knocks.asked == ["10.1.0.2", "10.1.0.3"]


async def test_nobody_is_asked_while_a_knock_would_prove_nothing(knocks: Knocks) -> None:
    other = "/apis/networking.k8s.io/v1/namespaces/sandpod-system/networkpolicies/other"
    knocks.api.put(other, policy("other", selects={}))
    await knocks.hear(BOTH, BOTH, BOTH)
    assert knocks.asked == []
    assert knocks.detector.enforcement is Enforcement.UNTOLD


async def test_an_operator_outside_of_the_cluster_cannot_tell(knocks: Knocks) -> None:
    knocks.api.vanish("/api/v1/namespaces/sandpod-system/pods/operator-1")
    await knocks.hear(BOTH, BOTH, BOTH)
    assert knocks.asked == []


async def test_a_time_without_reports_does_not_take_back_what_is_known(knocks: Knocks) -> None:
    await knocks.hear(OPEN_ONLY)
    knocks.clock.advance(3600)
    assert await knocks.hear(None) is Enforcement.ENFORCED


async def test_but_it_does_when_it_lasts(knocks: Knocks) -> None:
    await knocks.hear(OPEN_ONLY)
    knocks.clock.advance(4 * 3600)
    assert await knocks.hear(None) is Enforcement.UNKNOWN


async def test_a_cluster_that_is_never_told_of_is_unknown_after_ten_minutes(knocks: Knocks) -> None:
    knocks.clock.advance(599)
    assert await knocks.hear(NOTHING) is Enforcement.UNTOLD
    knocks.clock.advance(2)
    assert await knocks.hear(NOTHING) is Enforcement.UNKNOWN


async def test_an_api_server_that_is_away_changes_nothing(knocks: Knocks) -> None:
    await knocks.hear(OPEN_ONLY)

    def away(number: int, call: str) -> None:
        raise Unavailable(0, "Unreachable", "no answer")

    knocks.api.before = away
    assert await knocks.hear(BOTH, BOTH, BOTH) is Enforcement.ENFORCED


async def test_what_the_chart_has_switched_off_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Knocks(monkeypatch, detectEnforcement=False).detector.enforcement is Enforcement.UNKNOWN


# The condition

STANDARD = Verdict(ConditionType.ISOLATED, True, Reason.STANDARD, SENTENCES[Reason.STANDARD])
INCOMPLETE = Verdict(ConditionType.ISOLATED, False, Reason.INCOMPLETE, SENTENCES[Reason.INCOMPLETE])


def condition(verdict: Verdict) -> Condition:
    status = "True" if verdict.holds else "False"
    return Condition(
        type=verdict.type.value, status=status, reason=verdict.reason.value, message=verdict.message
    )


def verdict(state: Enforcement, given: Verdict = STANDARD, *, said: Condition | None = None) -> Verdict:
    return isolation_verdict(given, enforcement=state, said=said)


def test_where_policies_are_enforced_it_says_so() -> None:
    found = verdict(Enforcement.ENFORCED)
    assert (found.holds, found.reason) == (True, Reason.STANDARD)
    assert found.message.endswith("The cluster enforces its NetworkPolicy.")


def test_where_they_are_not_the_sandbox_is_not_isolated() -> None:
    found = verdict(Enforcement.NOT_ENFORCED)
    assert (found.holds, found.reason) == (False, Reason.NOT_ENFORCED)
    assert "does not enforce NetworkPolicies" in found.message
    assert STANDARD.message in found.message


def test_where_nobody_knows_it_claims_nothing() -> None:
    found = verdict(Enforcement.UNKNOWN)
    assert (found.holds, found.reason) == (True, Reason.STANDARD)
    assert found.message.endswith("is not known.")


def test_a_pod_that_is_not_isolated_keeps_its_own_reason_and_tells_both() -> None:
    found = verdict(Enforcement.NOT_ENFORCED, INCOMPLETE)
    assert (found.holds, found.reason) == (False, Reason.INCOMPLETE)
    assert "does not enforce NetworkPolicies" in found.message
    assert INCOMPLETE.message in found.message


@pytest.mark.parametrize("given", [STANDARD, INCOMPLETE])
@pytest.mark.parametrize("state", [Enforcement.ENFORCED, Enforcement.NOT_ENFORCED, Enforcement.UNKNOWN])
def test_an_operator_that_starts_repeats_what_the_one_before_it_said(
    given: Verdict, state: Enforcement
) -> None:
    said = verdict(state, given)
    assert verdict(Enforcement.UNTOLD, given, said=condition(said)) == said


def test_a_changed_pod_takes_over_what_was_said_of_the_network() -> None:
    said = condition(verdict(Enforcement.NOT_ENFORCED, INCOMPLETE))
    assert verdict(Enforcement.UNTOLD, STANDARD, said=said) == verdict(Enforcement.NOT_ENFORCED, STANDARD)


def test_a_new_sandbox_of_an_operator_that_has_just_started_is_told_that_nobody_knows() -> None:
    assert verdict(Enforcement.UNTOLD) == verdict(Enforcement.UNKNOWN)


async def test_whoever_waits_for_it_is_told_once(knocks: Knocks) -> None:
    await knocks.hear(OPEN_ONLY)
    await knocks.hear(OPEN_ONLY)
    await knocks.hear(BOTH, BOTH, BOTH)

    assert knocks.news == [Enforcement.ENFORCED, Enforcement.NOT_ENFORCED]
