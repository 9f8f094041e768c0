"""A small exec through the gateway, with and without the API server before it, beside the same exec at the
runtime itself.

Those to runtime and gateway are made from the gateway's pod: the same network path, with and without it.
"""

import time

from sandpod_crds import keys
from sandpod_crds.names import CREDENTIAL_HEADER

from tests.bench.api import Api, Json
from tests.bench.cluster import installation_key, python_in
from tests.bench.pods import NAMESPACE, RUN, SANDBOXES
from tests.bench.stats import Row, Section, ms, p50, pair

IN_THE_POD = """
import http.client, json, sys, time
host, port, path, header, value, rounds = sys.argv[1:]
connection = http.client.HTTPConnection(host, int(port))
headers = {"Content-Type": "application/json", header: value}
took = []
for _ in range(int(rounds)):
    began = time.perf_counter()
    connection.request("POST", path, '{"command": "true"}', headers)
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
    to_runtime = (status["podIP"], "3000", "/api/execute", CREDENTIAL_HEADER, credential)
    path = f"/v1/namespaces/{NAMESPACE}/sandboxes/{name}/proxy/api/execute"
    to_gateway = ("127.0.0.1", "8080", path, "Authorization", f"Bearer {_token(api)}")
    direct = _in_the_pod(*to_runtime, rounds=rounds)
    by_gateway = _in_the_pod(*to_gateway, rounds=rounds)
    api.request("DELETE", f"{SANDBOXES}/{name}")
    return Section(
        title=f"exec of `true` ({rounds} in a row)",
        rows=[
            Row(
                what="at the runtime",
                figure=pair(direct),
                how="p50 / p90; from the gateway's pod, one connection",
            ),
            Row(
                what="through the gateway",
                figure=pair(by_gateway),
                how="p50 / p90; the same, with a bearer token at the gateway's own port",
            ),
            Row(
                what="added by the gateway",
                figure=ms(p50(by_gateway) - p50(direct)),
                goal="1 ms",
                how="difference of the p50",
            ),
            Row(what="through API server and gateway", figure=pair(through), how="p50 / p90; one connection"),
            Row(
                what="added by API server and gateway",
                figure=ms(p50(through) - p50(direct)),
                how="difference of the p50",
            ),
        ],
    )


def _in_the_pod(*request: str, rounds: int) -> list[float]:
    return python_in("sandpod-gateway", IN_THE_POD, *request, str(rounds))["took"]


def _token(api: Api) -> str:
    """Of a service account that may edit in the benchmark's namespace; both go with it."""
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    api.request(
        "POST", account, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "editor"}}
    )
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "editor"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "editor", "namespace": NAMESPACE}],
    }
    api.request("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings", binding)
    asked: Json = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": []},
    }
    return api.request("POST", f"{account}/editor/token", asked)["status"]["token"]


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
