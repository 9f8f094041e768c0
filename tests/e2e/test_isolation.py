"""What code inside a sandbox can get hold of: code that is hostile by assumption."""

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from tests.support.cluster import Json, apply, kubectl
from tests.support.sandboxes import Sandbox, Sandboxes

PTRACE_ATTACH = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
failed = libc.ptrace(16, 1, None, None) == -1
print(os.strerror(ctypes.get_errno()) if failed else "attached")
"""


def test_no_kubernetes_credential_is_in_the_pod(box: Sandbox) -> None:
    assert box.pod()["spec"]["automountServiceAccountToken"] is False
    assert box.exec("ls", "/var/run/secrets/kubernetes.io", check=False).returncode != 0
    assert box.output("env | grep -c KUBERNETES_ || true") == "0"


def test_the_container_is_confined_as_pod_security_restricted_demands(box: Sandbox) -> None:
    container = box.pod()["spec"]["containers"][0]
    context: Json = {**box.pod()["spec"].get("securityContext", {}), **container["securityContext"]}
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 1000
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"]["drop"] == ["ALL"]
    assert context["seccompProfile"]["type"] == "RuntimeDefault"
    assert box.output("id -u; grep CapEff /proc/self/status | tr -d '\\t'") == "1000\nCapEff:0000000000000000"
    assert box.output("grep NoNewPrivs /proc/self/status | tr -d '\\t'") == "NoNewPrivs:1"


def test_a_runtime_class_is_the_pods(sandbox: Sandboxes, namespace: str) -> None:
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    apply({**kind, "metadata": {"name": namespace}, "handler": "runc"})
    try:
        box = sandbox(runtimeClassName=namespace).wait()
        assert box.pod()["spec"]["runtimeClassName"] == namespace
    finally:
        kubectl("delete", "runtimeclass", namespace)


def test_limits_bound_what_a_sandbox_can_take(box: Sandbox) -> None:
    limits = box.pod()["spec"]["containers"][0]["resources"]["limits"]
    assert set(limits) >= {"cpu", "memory", "ephemeral-storage"}


def test_a_namespace_that_enforces_pod_security_restricted_takes_sandboxes(
    sandbox: Sandboxes, namespace: str, kubectl: Callable[..., CompletedProcess[str]]
) -> None:
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    box = sandbox().wait()
    assert box.output("echo works") == "works"


@pytest.mark.parametrize("path", ["environ", "mem", "maps", "fd/0", "root/etc/hostname", "cwd/."])
def test_the_runtimes_own_process_is_closed_to_user_code(box: Sandbox, path: str) -> None:
    done = box.exec("sh", "-c", f"head -c 1 /proc/1/{path}", check=False)
    assert done.returncode != 0
    assert "ermission denied" in done.stderr


def test_the_runtime_cannot_be_traced(box: Sandbox) -> None:
    assert box.exec("python3", "-c", PTRACE_ATTACH).stdout == "Operation not permitted\n"


def test_commands_see_nothing_of_the_runtimes_environment(box: Sandbox) -> None:
    names = {line.split("=")[0] for line in box.exec("env").stdout.splitlines()}
    assert not {name for name in names if name.startswith(("SANDPOD", "PYTHON", "LD_"))}
    assert "/opt/sandpod" not in box.output("echo $PATH")


def test_the_runtimes_own_port_wants_a_credential(box: Sandbox) -> None:
    script = (
        "curl -s -o /dev/null -w '%{http_code}' -d '{\"command\":\"id\"}' http://127.0.0.1:3000/api/execute"
    )
    assert box.output(script) == "401"
    assert box.output("curl -s -o /dev/null -w '%{http_code}' -X POST http://127.0.0.1:3000/api/bind") in {
        "401",
        "409",
    }


def test_one_sandbox_cannot_use_anothers_runtime(box: Sandbox, sandbox: Sandboxes) -> None:
    other = sandbox("other").wait().status()["podIP"]
    body = json.dumps({"command": "id"})
    script = f"curl -s -o /dev/null -w '%{{http_code}}' -d '{body}' http://{other}:3000/api/execute"
    assert box.output(script) == "401"


def test_what_others_may_read_of_the_pod_holds_no_secret(box: Sandbox) -> None:
    env: list[Json] = box.pod()["spec"]["containers"][0].get("env", [])
    assert [entry["name"] for entry in env] == ["SANDPOD_BIND_SHA256"]
