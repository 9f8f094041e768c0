"""Rows of the tables that specify the lifecycle: a situation, and the one step that is taken in it."""

from dataclasses import dataclass, field
from typing import Any

from sandpod_operator.decide import decide
from sandpod_operator.observations import Errand
from sandpod_operator.plan import Plan
from sandpod_operator.situation import Situation

from tests.support.operator_objects import INSTALLATION, NOW


@dataclass
class Row:
    situation: Situation
    writes: list[str] = field(default_factory=list[str])
    phase: str | None = None
    ready: tuple[str, str] | None = None
    says: str = ""
    status: dict[str, Any] = field(default_factory=dict[str, Any])
    tells: list[str] = field(default_factory=list[str])
    asks: Errand | None = None
    again_in: float | None = None


def check(row: Row) -> None:
    plan = decide(row.situation, now=NOW, installation=INSTALLATION)

    assert writes(plan) == row.writes
    assert [notice.reason for notice in plan.notices] == row.tells
    assert (plan.ask.errand if plan.ask is not None else None) == row.asks
    due = None if plan.look_again_at is None else (plan.look_again_at - NOW).total_seconds()
    assert due == row.again_in
    if plan.status is not None:
        check_status(plan, row)


def check_status(plan: Plan, row: Row) -> None:
    assert plan.status is not None
    status = plan.status.model_dump(mode="json", by_alias=True)
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert status["phase"] == row.phase
    assert (ready["status"], ready["reason"]) == row.ready
    assert row.says in ready["message"]
    assert {name: status[name] for name in row.status} == row.status


def writes(plan: Plan) -> list[str]:
    found = [f"{write.verb} {write.kind.plural}" for write in plan.writes]
    if plan.create_pod is not None:
        found.append("create pod")
    if plan.status is not None:
        found.append("status")
    if plan.remove_pod is not None:
        found.append("force-delete pod" if plan.remove_pod.force else "delete pod")
    return found
