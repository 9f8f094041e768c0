"""Sandboxes that come from a template: when it is missing or does not fit, and when it changes while they
run.
"""

from dataclasses import replace
from typing import Any

import pytest
from sandpod_crds.models import SandboxPolicy
from sandpod_crds.names import ANNOTATION_TEMPLATE, LABEL_PROTECTED
from sandpod_operator.decide import decide
from sandpod_operator.objects import Json, section
from sandpod_operator.observations import Errand
from sandpod_operator.permission import Rules
from sandpod_operator.plan import Plan
from sandpod_operator.situation import Situation

from tests.support.operator_objects import (
    INSTALLATION,
    NOW,
    answer,
    asleep,
    at,
    bound,
    claim,
    ended_asleep,
    pod,
    running,
    sandbox,
    situation,
    starting,
    status_of,
    up,
    wanted_awake,
    written,
)
from tests.support.operator_table import Row, check, writes

REF: Json = {"templateRef": {"name": "python"}}
TEMPLATE: Json = {"image": "python:3", "sleepAfter": "5m", "network": {"egress": "None"}}
KEPT: Json = {"workspace": {"size": "1Gi", "reclaim": "Retain"}}
RUNS = up(since=-90)
GONE = "SandboxTemplate python"


def runs(template: Json, *, own: Json | None = None, claims: tuple[Json, ...] = ()) -> Json:
    """The status of a sandbox that runs and comes from this template."""
    spec = {**REF, **(own or {})}
    first = situation(
        sandbox(spec, starting()),
        pod(spec, up(), template=template),
        answer=bound(subject=template.get("sleepAfter", "10m")),
        template=template,
        claims=claims,
    )
    return written(first, ago=90)


def from_template(template: Json, status: Json | None = None, **metadata: Any) -> Json:
    return pod(REF, status or RUNS, template=template, **metadata)


TABLE = {
    "without its template nothing starts": Row(
        situation(sandbox(REF), missing=GONE),
        writes=["status"],
        phase="Pending",
        ready=("False", "TemplateMissing"),
        says="There is no SandboxTemplate python in this namespace",
        tells=["TemplateMissing"],
    ),
    "and that is said once": Row(
        situation(sandbox(REF, written(situation(sandbox(REF), missing=GONE))), missing=GONE),
    ),
    "when it comes, the sandbox starts": Row(
        situation(sandbox(REF, written(situation(sandbox(REF), missing=GONE))), template=TEMPLATE),
        writes=["create pod"],
    ),
    "a template that does not go with the sandbox's own fields": Row(
        situation(
            sandbox({**REF, "network": {"allow": [{"cidr": "10.0.0.0/8"}]}}),
            template={"network": {"egress": "Internet"}},
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "InvalidTemplate"),
        tells=["InvalidTemplate"],
    ),
    "a template with a field that cannot be read": Row(
        situation(sandbox(REF), template={"sleepAfter": "soon"}),
        writes=["status"],
        phase="Pending",
        ready=("False", "InvalidTemplate"),
        says="sleepAfter",
        tells=["InvalidTemplate"],
    ),
    "lost while the sandbox starts, the start is given up, and that is no failure": Row(
        situation(sandbox(REF, starting()), from_template(TEMPLATE, up()), missing=GONE),
        writes=["status", "delete pod"],
        phase="Pending",
        ready=("False", "TemplateMissing"),
        status={"podUID": None, "startFailures": None, "restarts": None},
        tells=["TemplateMissing"],
    ),
    "the pod of that start goes, and nothing is said of it": Row(
        situation(
            sandbox(REF, status_of("Pending", "TemplateMissing")),
            from_template(TEMPLATE, up(), deletionTimestamp=at(30)),
            missing=GONE,
        ),
        writes=["status"],
        phase="Pending",
        ready=("False", "TemplateMissing"),
        again_in=60,
    ),
    "lost while the sandbox runs, it goes on with all that the pod knows of it": Row(
        situation(sandbox(REF, runs(TEMPLATE)), from_template(TEMPLATE), missing=GONE),
    ),
    "lost while it sleeps, it sleeps on": Row(
        situation(sandbox(REF, asleep()), missing=GONE),
    ),
    "changed while the sandbox starts, the start is done again": Row(
        situation(
            sandbox(REF, starting()),
            from_template(TEMPLATE, up()),
            template={**TEMPLATE, "image": "python:4"},
        ),
        writes=["status", "delete pod"],
        phase="Starting",
        ready=("False", "Replaced"),
        tells=["Replaced"],
    ),
    "so it is when the change would work on a running one": Row(
        situation(
            sandbox(REF, starting()),
            from_template({"workspace": {"claimName": "dat"}}, up()),
            template={"workspace": {"claimName": "data"}},
        ),
        writes=["status", "delete pod"],
        phase="Starting",
        ready=("False", "Replaced"),
        tells=["Replaced"],
    ),
    "but not while its setup runs, which the change leaves alone": Row(
        situation(
            sandbox({**REF, "setup": ["make"]}, starting(setup={"result": "Running", "message": ""})),
            pod({**REF, "setup": ["make"]}, up(), template=TEMPLATE),
            template={**TEMPLATE, "sleepAfter": "1m"},
        ),
        writes=["status"],
        phase="Starting",
        ready=("False", "Starting"),
        asks=Errand.BIND,
    ),
    "changed in its time to sleep while the sandbox runs, nothing is told or written": Row(
        situation(
            sandbox(REF, runs(TEMPLATE)),
            from_template(TEMPLATE),
            template={**TEMPLATE, "sleepAfter": "1m", "network": {"egress": "Internet"}, "keepAlive": True},
        ),
    ),
    "the sandbox's own time to sleep is told at once": Row(
        situation(
            sandbox({**REF, "sleepAfter": "1m"}, runs(TEMPLATE)),
            from_template(TEMPLATE),
            template=TEMPLATE,
        ),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        asks=Errand.ADJUST,
    ),
    "one that runs without having come from a template gets one with its next start": Row(
        situation(sandbox(REF, running(sleepAfter="5m")), pod(status=RUNS), template={"image": "python:3"}),
        writes=["status"],
        phase="Running",
        ready=("True", "RuntimeAnswers"),
        asks=Errand.ADJUST,
    ),
    "asleep, it starts with the template as it is now": Row(
        situation(sandbox(REF, asleep(), **wanted_awake()), template={"workspace": {"size": "1Gi"}}),
        writes=["create persistentvolumeclaims"],
    ),
    "asleep, its volume follows the template as it is now": Row(
        situation(sandbox(REF, asleep()), template={"workspace": {"size": "2Gi"}}, claims=(claim(),)),
        writes=["patch persistentvolumeclaims"],
    ),
    "asleep, the template says how long it may be": Row(
        situation(sandbox(REF, asleep()), template={"lifetime": {"deleteAfterAsleep": "50s"}}),
        writes=["delete sandboxes"],
        tells=["Expired"],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_step_is_right_when(name: str) -> None:
    check(TABLE[name])


def decided(given: Situation) -> Plan:
    return decide(given, now=NOW, installation=INSTALLATION)


def test_a_changed_template_is_pending_until_the_next_start_takes_it() -> None:
    newer = {**TEMPLATE, "image": "python:4"}
    plan = decided(situation(sandbox(REF, runs(TEMPLATE)), from_template(TEMPLATE), template=newer))
    assert plan.status is not None
    honored = next(c for c in plan.status.conditions if c.type == "SpecHonored")
    assert (honored.status, honored.reason) == ("False", "RestartPending")
    assert plan.status.image == "python:3"
    assert writes(plan) == ["status"]

    asleep_now = sandbox(REF, asleep(), **wanted_awake())
    start = decided(situation(asleep_now, template=newer))
    assert start.create_pod is not None
    assert section(start.create_pod, "spec")["containers"][0]["image"] == "python:4"


def test_without_its_template_a_running_sandbox_keeps_its_wall() -> None:
    # A wall built from its own fields alone would let it into the Internet.
    given = situation(sandbox(REF, runs(TEMPLATE)), from_template(TEMPLATE), missing=GONE, fenced=False)
    body = decided(given).writes[0].body
    assert body["spec"].get("egress", []) == [] or "0.0.0.0/0" not in str(body["spec"]["egress"])


def of_an_earlier_operator() -> Json:
    """Which did not record that there was no template."""
    made = pod(status=RUNS)
    del made["metadata"]["annotations"][ANNOTATION_TEMPLATE]
    return made


def test_without_its_template_a_pod_that_does_not_say_where_it_came_from_keeps_its_wall_too() -> None:
    given = situation(sandbox(REF, running()), of_an_earlier_operator(), missing=GONE, fenced=False)
    assert not [each for each in writes(decided(given)) if "networkpolicies" in each]


def test_without_its_template_the_files_stay_whose_they_are() -> None:
    # Its own fields say a size, and the template that they are to be retained.
    own: Json = {**REF, "workspace": {"size": "1Gi"}}
    status = {**asleep(), "workspaceClaim": "warm-abc-workspace"}
    retained = claim(name="warm-abc-workspace", owner=None)
    plan = decided(situation(sandbox(own, status), missing=GONE, claims=(retained,)))

    assert plan.writes == ()
    assert plan.status is None or plan.status.workspace_claim == "warm-abc-workspace"


def test_without_its_template_the_sessions_of_a_sandbox_that_falls_asleep_are_kept() -> None:
    sessions = [{"id": "main", "cwd": "/workspace"}]
    ended = from_template(KEPT, ended_asleep(sessions=sessions))
    status = runs(KEPT, claims=(claim(owner=None),))
    given = situation(sandbox(REF, status), ended, missing=GONE, claims=(claim(owner=None),))
    found = decided(given).status

    assert found is not None
    assert found.to_json()["sessions"] == sessions
    assert found.workspace_claim == "box-workspace"


def test_what_a_pod_records_of_its_template_may_have_been_changed_by_anybody() -> None:
    made = from_template(TEMPLATE)
    for found in (
        "",
        "{",
        "[]",
        '{"workspace": 7}',
        '{"sleepAfter": "never"}',
        '{"network": {"egress": []}}',
    ):
        made["metadata"]["annotations"][ANNOTATION_TEMPLATE] = found
        for missing, template in ((GONE, None), (None, TEMPLATE)):
            status = runs(TEMPLATE)
            decided(situation(sandbox(REF, status), made, fenced=False, missing=missing, template=template))


def governed(given: Situation, **limits: Any) -> Situation:
    policy = SandboxPolicy.model_validate({"metadata": {"name": "limits"}, "spec": limits})
    return replace(given, rules=Rules(policies=(policy,)))


@pytest.mark.parametrize("made", [pod(status=RUNS), of_an_earlier_operator()], ids=["ours", "earlier"])
def test_no_drain_waits_for_ever_because_of_a_template_that_is_not_there(made: Json) -> None:
    given = replace(situation(sandbox(REF, running()), made, missing=GONE), drain_overdue=True)

    [label] = decided(given).writes
    assert label.body["metadata"]["labels"] == {LABEL_PROTECTED: None}


def test_a_stricter_policy_is_told_though_the_template_is_not_there() -> None:
    given = situation(sandbox(REF, running()), pod(status=RUNS), missing=GONE)
    plan = decided(governed(given, maxSleepAfter="1m"))

    assert plan.ask is not None
    assert (plan.ask.errand, plan.ask.subject) == (Errand.ADJUST, "1m")


def test_a_wall_is_put_up_again_though_the_template_is_not_there() -> None:
    given = situation(sandbox(REF, running()), pod(status=RUNS), missing=GONE, fenced=False)

    assert writes(decided(given)) == ["create networkpolicies"]


def test_a_template_that_is_not_there_opens_no_network_that_a_policy_forbids() -> None:
    opened = {**REF, "network": {"egress": "Internet"}}
    given = situation(sandbox(opened, runs(TEMPLATE)), from_template(TEMPLATE), missing=GONE)
    closed = situation(sandbox(REF, runs(TEMPLATE)), from_template(TEMPLATE), missing=GONE)
    assert closed.network_policy is not None
    stands = {**closed.network_policy, "metadata": {**closed.network_policy["metadata"], "uid": "wall"}}
    given = replace(given, network_policy=stands)
    assert writes(decided(given)) == ["patch networkpolicies"]

    plan = decided(governed(given, allowedEgress=["None"], requireIsolation="Strict"))

    assert plan.writes == ()
    honored = next(c for c in plan.status.conditions if c.type == "SpecHonored") if plan.status else None
    assert honored is None or honored.reason != "PolicyExceeded"


def test_an_answer_about_the_template_s_time_to_sleep_is_taken_up() -> None:
    status = {**runs(TEMPLATE), "sleepAfter": None}
    heard = answer(Errand.ADJUST, subject="5m")
    plan = decided(situation(sandbox(REF, status), from_template(TEMPLATE), template=TEMPLATE, answer=heard))
    assert plan.status is not None
    assert plan.status.sleep_after == "5m"
