"""Whether a sandbox may sleep, and how long until then. Only decides: no waiting, and the clock is the
activity's.
"""

import asyncio
from collections import deque
from typing import Literal

import msgspec

from sandpod_runtime.activity import Activity

# A build or a training run is never this quiet, and an idle dev server never this busy.
BUSY_CORES = 0.05

AwakeReason = Literal[
    "keepAlive", "noSleepAfter", "setup", "requests", "leases", "expected", "cpu", "recentActivity"
]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    # None and 0 are never.
    sleep_after: float | None = None
    keep_alive: bool = False


class Idleness:
    def __init__(self, activity: Activity, settings: Settings) -> None:
        self._activity = activity
        self._settings = settings
        # Set when the settings are others than before, for whoever waits for the time that they have given.
        self.changed = asyncio.Event()

    @property
    def settings(self) -> Settings:
        return self._settings

    @settings.setter
    def settings(self, wanted: Settings) -> None:
        self._settings = wanted
        self.changed.set()

    @property
    def ever(self) -> bool:
        """Whether it sleeps by itself at all."""
        return bool(self.settings.sleep_after) and not self.settings.keep_alive

    def left(self) -> float | None:
        """Seconds until it sleeps if nothing more happens; None as long as something goes on."""
        if not self.ever or self._activity.in_flight or self._activity.setting_up:
            return None
        now = self._activity.now()
        leases = self._activity.leases.values()
        return max(self._quiet_at(), now, self._activity.expected_until, *leases) - now

    def _quiet_at(self) -> float:
        return self._activity.last_active + (self.settings.sleep_after or 0.0)

    def awake_because(self) -> list[AwakeReason]:
        """Why it does not sleep this moment, for people."""
        activity = self._activity
        reasons: dict[AwakeReason, bool] = {
            "keepAlive": self.settings.keep_alive,
            "noSleepAfter": not self.settings.sleep_after,
            "setup": activity.setting_up,
            "requests": activity.in_flight > 0,
            "leases": bool(activity.leases),
            "expected": activity.now() < activity.expected_until,
            "cpu": activity.cores is not None and activity.cores >= BUSY_CORES,
            "recentActivity": activity.now() < self._quiet_at(),
        }
        return [reason for reason, holds in reasons.items() if holds]


class CpuUse:
    """From what a meter of CPU time shows at some moments to how many cores are in use."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, float]] = deque()

    def cores(self, *, now: float, used: float, window: float) -> float:
        """On average over about the last `window` seconds."""
        while len(self._readings) > 1 and now - self._readings[1][0] >= window:
            self._readings.popleft()
        self._readings.append((now, used))
        begun, before = self._readings[0]
        return max(used - before, 0.0) / (now - begun) if now > begun else 0.0

    def forget(self) -> None:
        self._readings.clear()
