"""A small exec through the API server and the gateway, beside the same exec at the runtime itself.

The direct requests are made from the gateway's pod: the same network path, without the gateway.
"""

import time

from sandpod_crds import keys

from tests.bench.api import Api, Json
from tests.bench.cluster import installation_key, python_in
from tests.bench.pods import NAMESPACE, RUN, SANDBOXES
from tests.bench.stats import Row, Section, ms, p50, pair

DIRECT = """
import http.client, json, sys, time
address, credential, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
connection = http.client.HTTPConnection(address, 3000)
headers = {"Content-Type": "application/json", "X-Sandpod-Credential": credential}
took = []
for _ in range(rounds):
    began = time.perf_counter()
    connection.request("POST", "/api/execute", '{"command": "true"}', headers)
    answer = connection.getresponse()
    body = answer.read()
    took.append(time.perf_counter() - began)
    assert answer.status == 200, body
print(json.dumps({"took": took}))
"""


def measure(api: Api, *, rounds: int) -> Section:
    """One sandbox, one connection, one request after the other."""
    name = "latency"
    api.request(
        "POST",
        SANDBOXES,
        {"apiVersion": "sandpod.dev/v1alpha1", "kind": "Sandbox", "metadata": {"name": name}},
    )
    sandbox = _wait_ready(api, name)
    through = [_exec(api, name) for _ in range(rounds)]
    status = sandbox["status"]
    credential = keys.credential(key=installation_key(), namespace=NAMESPACE, pod_uid=status["podUID"])
    direct: list[float] = python_in("sandpod-gateway", DIRECT, status["podIP"], credential, str(rounds))[
        "took"
    ]
    api.request("DELETE", f"{SANDBOXES}/{name}")
    return Section(
        title=f"exec of `true` ({rounds} in a row)",
        rows=[
            Row(
                what="at the runtime",
                figure=pair(direct),
                how="p50 / p90; from the gateway's pod, one connection",
            ),
            Row(what="through API server and gateway", figure=pair(through), how="p50 / p90; one connection"),
            Row(
                what="added by API server and gateway",
                figure=ms(p50(through) - p50(direct)),
                how="difference of the p50",
            ),
        ],
    )


def _exec(api: Api, name: str) -> float:
    began = time.perf_counter()
    answer = api.request("POST", f"{RUN}/{name}/proxy/api/execute", {"command": "true"})
    took = time.perf_counter() - began
    assert answer["exitCode"] == 0, answer
    return took


def _wait_ready(api: Api, name: str) -> Json:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        sandbox = api.request("GET", f"{SANDBOXES}/{name}")
        if sandbox.get("status", {}).get("phase") == "Running":
            return sandbox
        time.sleep(0.05)
    raise TimeoutError(f"sandbox {NAMESPACE}/{name} is not Running after 60 s")
