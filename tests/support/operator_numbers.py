"""What the operator in the cluster counts, from its /metrics."""

import re

from tests.support.cluster import SYSTEM, Json, get, kubectl


def operator_pod() -> Json:
    """The only one that is there to stay."""
    found: list[Json] = get("pods", "-n", SYSTEM, "-l", "app.kubernetes.io/component=operator")["items"]
    (pod,) = (each for each in found if "deletionTimestamp" not in each["metadata"])
    return pod


def counted(series: str) -> float:
    """The sum of a counter over its labels: `counted("sandpod_operator_reconciles_total")`."""
    name: str = operator_pod()["metadata"]["name"]
    text = kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/{name}:9090/proxy/metrics").stdout
    values = re.findall(rf"^{series}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
    assert values, f"{series} is not told"
    return sum(float(value) for value in values)
