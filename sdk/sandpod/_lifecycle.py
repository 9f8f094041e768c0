"""Putting a sandbox to sleep and waking it: what is written into the object, and when it has worked. Pure."""

from __future__ import annotations

import secrets
import time
from typing import Any

from sandpod._observation import observe

Json = dict[str, Any]

WAKE = "sandpod.dev/wake-requested-at"


def pausing(*, paused: bool) -> Json:
    """A merge patch."""
    return {"spec": {"paused": paused}}


def waking(value: str) -> Json:
    """A merge patch. Any new value of the annotation is a new request."""
    return {"metadata": {"annotations": {WAKE: value}}}


def fresh_value(now: float | None = None) -> str:
    """The time, for people, down to nanoseconds of which the last are chance: two requests at the same moment
    are two.
    """
    seconds = time.time() if now is None else now
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}{secrets.randbelow(1_000_000):06d}Z"


def is_paused(sandbox: Json) -> bool:
    spec: Json = sandbox.get("spec") or {}
    return bool(spec.get("paused"))


def is_asleep(sandbox: Json) -> bool:
    return observe(sandbox).phase == "Asleep"


def is_awake(sandbox: Json, *, request: str) -> bool:
    """Ready, and not only still so: a sandbox that is just falling asleep was Ready a moment ago."""
    status: Json = sandbox.get("status") or {}
    observed = status.get("wakeObserved")
    # The operator answers the last request only: somebody may have written theirs over this one before.
    return bool(observed) and observed in (request, _asked(sandbox)) and observe(sandbox).ready


def _asked(sandbox: Json) -> Any:
    annotations: Json = sandbox["metadata"].get("annotations") or {}
    return annotations.get(WAKE)


def is_set_up_or_about_to(sandbox: Json) -> bool:
    """Its setup's log can be read."""
    seen = observe(sandbox)
    return seen.ready or seen.reason == "SettingUp"


def is_resumed(sandbox: Json) -> bool:
    """Ready, by a status that is about the spec as it is now."""
    status: Json = sandbox.get("status") or {}
    seen, now = status.get("observedGeneration") or 0, sandbox["metadata"].get("generation") or 0
    return seen >= now and observe(sandbox).ready
