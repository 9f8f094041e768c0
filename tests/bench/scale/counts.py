"""What the API server counted in `apiserver_request_total`: the yardstick for the operator's own counter."""

import re
from collections import Counter

from tests.bench.api import Api

COUNTER = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<value>\S+)$", re.MULTILINE)
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


def counted(api: Api) -> Counter[str]:
    """Requests of the kinds that only the operator makes in a run, as "PATCH sandboxes/status"."""
    found: Counter[str] = Counter()
    for match in COUNTER.finditer(api.raw("GET", "/metrics").decode()):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', match["labels"]))
        about = (labels["resource"], labels["subresource"])
        if labels["verb"] in OURS.get(about, set()) and not labels.get("dry_run"):
            found[f"{labels['verb']} {'/'.join(filter(None, about))}"] += int(float(match["value"]))
    return found
