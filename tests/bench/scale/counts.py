"""What the API server had done until a moment, by its own metrics: the yardstick for the operator's counter,
and for how much of a storm's time is the API server's own.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tests.bench.api import Api

COUNTER = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.MULTILINE)
CPU = re.compile(r"^process_cpu_seconds_total (?P<value>\S+)$", re.MULTILINE)
WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE"}
# The status of sandboxes is the operator's alone here; of the others it is the only creator, but kwok and
# the garbage collector may delete.
OURS = {
    ("sandboxes", "status"): WRITES,
    ("pods", ""): {"POST", "PATCH", "APPLY"},
    ("persistentvolumeclaims", ""): {"POST", "PATCH", "APPLY"},
    ("networkpolicies", ""): {"POST", "PATCH", "APPLY"},
    ("poddisruptionbudgets", ""): {"POST", "PATCH", "APPLY"},
}
# Heartbeats, which go on at any time, and questions that are asked by a POST.
OTHERWISE = {"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}


@dataclass(frozen=True, kw_only=True)
class Served:
    """Until a moment, or between two."""

    # Of the kinds that only the operator writes in a run, as "PATCH sandboxes/status"
    ours: Counter[str]
    # By whomever: clients, operator, scheduler, kwok, controllers
    writes: int
    cpu_seconds: float

    def __sub__(self, before: Self) -> "Served":
        return Served(
            ours=self.ours - before.ours,
            writes=self.writes - before.writes,
            cpu_seconds=self.cpu_seconds - before.cpu_seconds,
        )


def served(api: Api) -> Served:
    text = api.raw("GET", "/metrics").decode()
    ours: Counter[str] = Counter()
    writes = 0
    for labels, count in _requests(text):
        about = (labels["resource"], labels["subresource"])
        if labels["verb"] in OURS.get(about, set()):
            ours[f"{labels['verb']} {'/'.join(filter(None, about))}"] += count
        if labels["verb"] in WRITES and labels["code"].startswith("2") and about[0] not in OTHERWISE:
            writes += count
    cpu = CPU.search(text)
    assert cpu is not None, "the API server does not say how much CPU it has used"
    return Served(ours=ours, writes=writes, cpu_seconds=float(cpu["value"]))


def _requests(text: str) -> Iterator[tuple[dict[str, str], int]]:
    for match in COUNTER.finditer(text):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', match["labels"]))
        if not labels.get("dry_run"):
            yield labels, int(float(match["value"]))
