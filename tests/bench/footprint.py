"""Memory and idle CPU of operator, gateway and runtime, read from /proc in their own containers."""

from tests.bench.api import Api
from tests.bench.cluster import kubectl, python_in
from tests.bench.pods import NAMESPACE, RUN, SANDBOXES
from tests.bench.stats import Row, Section

IDLE_SECONDS = 30
PROC = """
import json, os, sys, time
def cpu():
    fields = open("/proc/1/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
before = cpu()
time.sleep(float(sys.argv[1]))
rss = next(int(line.split()[1]) for line in open("/proc/1/status") if line.startswith("VmRSS"))
print(json.dumps({"cpu": (cpu() - before) / float(sys.argv[1]), "rss": rss / 1024}))
"""


def measure(api: Api) -> Section:
    """One sandbox exists and nobody asks anything."""
    name = "footprint"
    api.request(
        "POST",
        SANDBOXES,
        {"apiVersion": "sandpod.dev/v1alpha1", "kind": "Sandbox", "metadata": {"name": name}},
    )
    kubectl("wait", "-n", NAMESPACE, f"sandbox/{name}", "--for=condition=Ready", "--timeout=60s")
    operator = python_in("sandpod-operator", PROC, str(IDLE_SECONDS))
    gateway = python_in("sandpod-gateway", PROC, str(IDLE_SECONDS))
    answer = api.request("POST", f"{RUN}/{name}/proxy/api/execute", {"command": "grep VmRSS /proc/1/status"})
    runtime = int(answer["stdout"].split()[1]) / 1024
    api.request("DELETE", f"{SANDBOXES}/{name}")
    return Section(
        title="Memory and idle CPU",
        rows=[
            Row(what="operator, RSS", figure=f"{operator['rss']:.0f} MB", goal="≤ 90 MB"),
            Row(
                what="operator, idle CPU",
                figure=f"{operator['cpu']:.1%}",
                goal="< 1 % of a core",
                how=f"over {IDLE_SECONDS} s",
            ),
            Row(what="gateway, RSS", figure=f"{gateway['rss']:.0f} MB"),
            Row(what="gateway, idle CPU", figure=f"{gateway['cpu']:.1%}", how=f"over {IDLE_SECONDS} s"),
            Row(
                what="runtime, RSS",
                figure=f"{runtime:.0f} MB",
                goal="≤ 45 MB",
                how="in a sandbox, after its first exec",
            ),
        ],
    )
