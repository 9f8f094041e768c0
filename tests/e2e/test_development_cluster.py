"""What `make cluster` brings up stays a cluster for as long as it is there."""

import re

from tests.support.cluster import get, kubectl, run
from tests.support.waiting import eventually

KUBE_PROXY = ("-n", "kube-system", "-l", "k8s-app=kube-proxy")
METRICS = "http://127.0.0.1:10249/metrics"
# The API server as pods know it: the first address of kubeadm's range for Services
API_SERVER = "10.96.0.1/443"
# Where Kubernetes' host-path provisioner puts them, on a node that was built (hack/cluster/storage.sh)
VOLUMES = "/tmp/hostpath_pv"


def test_services_outlive_a_start_of_kube_proxy() -> None:
    """It then compares the rules that are there with its own, as it does each hour."""
    node: str = get("nodes")["items"][0]["metadata"]["name"]

    kubectl("delete", "pods", *KUBE_PROXY)
    kubectl("rollout", "status", "daemonset/kube-proxy", "-n", "kube-system", "--timeout=60s")
    eventually(
        lambda: has_compared_all(run("docker", "exec", node, "curl", "-s", METRICS, check=False).stdout)
    )

    run("docker", "exec", node, "bash", "-c", f"exec 3<>/dev/tcp/{API_SERVER}", timeout=10)


def test_many_volumes_made_one_after_the_other_can_be_written_to_by_everybody() -> None:
    node: str = get("nodes")["items"][0]["metadata"]["name"]
    if run("docker", "exec", node, "test", "-d", VOLUMES, check=False).returncode != 0:
        return  # kind's own nodes, which have another provisioner
    make = f"for i in $(seq 12); do mkdir -m 755 {VOLUMES}/test-$i; sleep 0.1; done"
    try:
        run("docker", "exec", node, "sh", "-c", make)
        look = ("docker", "exec", node, "sh", "-c", f"stat -c %a {VOLUMES}/test-*")
        eventually(lambda: run(*look).stdout.split() == ["777"] * 12)
    finally:
        run("docker", "exec", node, "sh", "-c", f"rmdir {VOLUMES}/test-*")


def has_compared_all(metrics: str) -> bool:
    count = r'(?m)^kubeproxy_sync_full_proxy_rules_duration_seconds_count\{ip_family="IPv4"\} [1-9]'
    return re.search(count, metrics) is not None
