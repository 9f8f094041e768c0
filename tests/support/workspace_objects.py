"""Sandboxes with a workspace, as the operator finds them."""

from datetime import timedelta
from typing import Any

from sandpod_operator.objects import Json
from sandpod_operator.observations import Refusal
from sandpod_operator.reasons import Reason

from tests.support.operator_objects import (
    NOW,
    UID,
    asleep,
    at,
    bound,
    pod,
    sandbox,
    situation,
    starting,
    up,
    written,
)

VOLUME: Json = {"workspace": {"size": "1Gi"}}
BIGGER: Json = {"workspace": {"size": "2Gi"}}
THEIRS: Json = {"workspace": {"claimName": "data"}}
RUNS = up(since=-90)
SINCE = at(-20)


def unready() -> Json:
    """The kubelet's probe fails."""
    status = up(since=-90, ready="False")
    for condition in status["conditions"]:
        if condition["type"] == "ContainersReady":
            condition |= {"status": "False", "lastTransitionTime": SINCE}
    return status


def runs(spec: Json, *, claims: tuple[Json, ...] = (), ago: float = 90, **fields: Any) -> Json:
    """The status of a sandbox that has run well with this spec."""
    first = situation(sandbox(spec, starting()), pod(spec, up(since=-90)), answer=bound(), claims=claims)
    return {**written(first, ago=ago), **fields}


def sleeps(spec: Json, *, claims: tuple[Json, ...] = ()) -> Json:
    return written(situation(sandbox(spec, asleep()), claims=claims), ago=50)


def refusal(reason: Reason, message: str = "no", *, retry_in: float = 10) -> Refusal:
    retry_at = NOW + timedelta(seconds=retry_in)
    return Refusal(sandbox_uid=UID, generation=1, reason=reason, message=message, retry_at=retry_at)
