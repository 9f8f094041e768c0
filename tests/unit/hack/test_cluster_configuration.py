"""What hack/cluster tells kind and tells other programs: scripts that only print."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

CLUSTER = Path(__file__).parents[3] / "hack" / "cluster"


def kind_config(source: str = "built", workers: int = 0, **env: str) -> dict[str, Any]:
    printed = subprocess.run(
        [CLUSTER / "kind-config.sh", source, str(workers), "/cache/policy.yaml", "/cache/shared"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )
    return yaml.safe_load(printed.stdout)


def environment(home: Path, **env: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SANDPOD", "XDG"))}
    printed = subprocess.run(
        [CLUSTER / "env.sh", "--print"],
        check=True,
        capture_output=True,
        text=True,
        env={**inherited, "HOME": str(home), **env},
    )
    return dict(line.split("=", 1) for line in printed.stdout.splitlines())


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_there_is_one_control_plane_and_as_many_workers_as_asked_for(workers: int) -> None:
    roles = [node["role"] for node in kind_config(workers=workers)["nodes"]]
    assert roles == ["control-plane", *["worker"] * workers]


def test_several_nodes_share_a_directory_and_one_alone_has_none() -> None:
    def shared(workers: int) -> list[bool]:
        nodes = kind_config(workers=workers)["nodes"]
        mounts = [node.get("extraMounts", []) for node in nodes]
        return [{"hostPath": "/cache/shared", "containerPath": "/kind/shared"} in each for each in mounts]

    assert shared(0) == [False]
    assert shared(1) == [True, True]


def test_a_published_node_brings_its_own_pod_network_and_a_built_one_does_not() -> None:
    assert "disableDefaultCNI" not in kind_config("published")["networking"]
    assert kind_config("built")["networking"]["disableDefaultCNI"] is True


def test_the_node_ports_for_previews_are_on_loopback_only() -> None:
    mappings = kind_config(SANDPOD_CLUSTER="sandpod")["nodes"][0]["extraPortMappings"]
    assert [(port["hostPort"], port["containerPort"]) for port in mappings] == [(8080, 30080), (8443, 30443)]
    assert {port["listenAddress"] for port in mappings} == {"127.0.0.1"}


def host_ports(**env: str) -> list[int]:
    return [port["hostPort"] for port in kind_config("built", 0, **env)["nodes"][0]["extraPortMappings"]]


def test_a_second_cluster_gets_ports_that_are_free() -> None:
    assert host_ports(SANDPOD_CLUSTER="second") == [0, 0]


def test_the_ports_can_be_chosen() -> None:
    assert host_ports(SANDPOD_HTTP_PORT="18080", SANDPOD_HTTPS_PORT="18443") == [18080, 18443]


def test_the_audit_arguments_are_added_to_those_that_kind_gives() -> None:
    (patch,) = kind_config()["kubeadmConfigPatchesJSON6902"]
    operations = yaml.safe_load(patch["patch"])
    arguments = {op["value"]["name"] for op in operations if op["path"] == "/apiServer/extraArgs/-"}
    assert {"audit-policy-file", "audit-log-path"} <= arguments
    assert {op["op"] for op in operations} == {"add"}


def test_the_audit_policy_leaves_out_reads_and_the_clusters_own_heartbeat() -> None:
    policy = yaml.safe_load((CLUSTER / "audit-policy.yaml").read_text())
    silent = [rule for rule in policy["rules"] if rule["level"] == "None"]
    assert {"verbs": ["get", "list", "watch"], "level": "None"} in silent
    assert policy["rules"][-1] == {"level": "Metadata"}


def test_the_users_own_kubeconfig_is_never_used(tmp_path: Path) -> None:
    found = environment(tmp_path, KUBECONFIG="/home/me/production")
    assert found["KUBECONFIG"] == f"{tmp_path}/.cache/sandpod/kubeconfig"


def test_a_cluster_of_another_name_has_a_kubeconfig_of_its_own(tmp_path: Path) -> None:
    found = environment(tmp_path, SANDPOD_CLUSTER="second", SANDPOD_CACHE="/elsewhere")
    assert found["KUBECONFIG"] == "/elsewhere/kubeconfig-second"


def test_the_tools_that_were_built_are_found_first(tmp_path: Path) -> None:
    assert environment(tmp_path)["PATH"].startswith(f"{tmp_path}/.cache/sandpod/bin:")
