"""What the control plane wrote, from the API server's audit log."""

import json
from datetime import datetime, timedelta

from tests.support.cluster import ROOT, SYSTEM, Json, run
from tests.support.sandboxes import Sandbox

OPERATOR = f"system:serviceaccount:{SYSTEM}:sandpod-operator"
MINUTE = timedelta(minutes=1)


def operator_writes(namespace: str) -> list[str]:
    """Every write of the operator in a namespace, refused ones too, in order: "create pods box"."""
    return [_told(entry) for entry in _entries(namespace)]


def writes_about(box: Sandbox) -> int:
    """The operator's, to the sandbox and to what belongs to it."""
    return len(_about(box))


def busiest_minute(box: Sandbox) -> int:
    """The most writes of the operator about it within 60 seconds."""
    moments = sorted(datetime.fromisoformat(each["requestReceivedTimestamp"]) for each in _about(box))
    return max((sum(first <= each < first + MINUTE for each in moments) for first in moments), default=0)


def _about(box: Sandbox) -> list[Json]:
    # All that is made for it begins with its name.
    return [each for each in _entries(box.namespace) if _told(each).split()[-1].startswith(box.name)]


def _entries(namespace: str) -> list[Json]:
    lines = run(ROOT / "hack/cluster/audit-log.sh").stdout.splitlines()
    entries: list[Json] = [json.loads(line) for line in lines if namespace in line and OPERATOR in line]
    return [entry for entry in entries if entry["objectRef"].get("namespace") == namespace]


def _told(entry: Json) -> str:
    about: Json = entry["objectRef"]
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    return f"{entry['verb']} {resource} {about.get('name', '')}".rstrip()
