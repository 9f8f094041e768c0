"""What the control plane wrote, from the API server's audit log."""

import json

from tests.support.cluster import ROOT, SYSTEM, Json, run

OPERATOR = f"system:serviceaccount:{SYSTEM}:sandpod-operator"


def operator_writes(namespace: str) -> list[str]:
    """Every write of the operator in a namespace, refused ones too, in order: "create pods box"."""
    lines = run(ROOT / "hack/cluster/audit-log.sh").stdout.splitlines()
    entries: list[Json] = [json.loads(line) for line in lines if namespace in line and OPERATOR in line]
    return [_told(entry) for entry in entries if entry["objectRef"].get("namespace") == namespace]


def _told(entry: Json) -> str:
    about: Json = entry["objectRef"]
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    return f"{entry['verb']} {resource} {about.get('name', '')}".rstrip()
