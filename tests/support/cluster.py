"""The cluster that `make install` brought up: its tools, its API, what the control plane in it is called."""

import base64
import functools
import json
import os
import ssl
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import httpx

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
SYSTEM = "sandpod-system"
RELEASE = "sandpod"
API_SERVICE = "v1alpha1.run.sandpod.dev"


@functools.cache
def environment() -> dict[str, str]:
    """The environment in which kubectl, helm and docker are those of `make cluster`."""
    printed = subprocess.run(
        [ROOT / "hack/cluster/env.sh", "--print"], check=True, capture_output=True, text=True
    )
    found = dict(line.split("=", 1) for line in printed.stdout.splitlines())
    return {**os.environ, **found, "PATH": f"{ROOT / '.venv/bin'}:{found['PATH']}"}


def run(
    *command: str | Path,
    stdin: str | None = None,
    env: dict[str, str] | None = None,
    check: bool = True,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Runs a program in that environment; a failure shows what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        input=stdin,
        capture_output=True,
        text=True,
        env={**environment(), **(env or {})},
        cwd=ROOT,
        timeout=timeout,
    )
    shown = " ".join(str(part) for part in command)
    assert not check or done.returncode == 0, f"{shown}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def kubectl(
    *args: str,
    input: str | None = None,  # noqa: A002 - as subprocess.run calls it
    check: bool = True,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """kubectl, with the administrator's rights."""
    return run("kubectl", *args, stdin=input, check=check, timeout=timeout)


def sandpod(
    *args: str,
    input: str | None = None,  # noqa: A002 - as subprocess.run calls it
    check: bool = True,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """The CLI, of this checkout."""
    return run("sandpod", *args, stdin=input, check=check, timeout=timeout)


def get(*args: str) -> Json:
    """One object, or a list of them, as `kubectl get -o json` shows it."""
    return json.loads(kubectl("get", *args, "-o", "json").stdout)


def apply(*manifests: Json, check: bool = True) -> subprocess.CompletedProcess[str]:
    """`kubectl apply` of these objects."""
    objects = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    return kubectl("apply", "-f", "-", input=json.dumps(objects), check=check)


def kill_the_operator() -> None:
    """With no time to end well. Its Deployment starts another one."""
    component = "app.kubernetes.io/component=operator"
    kubectl("delete", "pod", "-n", SYSTEM, "-l", component, "--grace-period=0", "--force")


def api_server() -> tuple[str, ssl.SSLContext]:
    """Where the API server is, and how the administrator of the kubeconfig reaches it."""
    config: Json = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json").stdout)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    trust = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
    )
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(base64.b64decode(user["client-certificate-data"]))
        pair.write(base64.b64decode(user["client-key-data"]))
        pair.flush()
        trust.load_cert_chain(pair.name)
    return cluster["server"], trust


def api_client(**headers: str) -> httpx.Client:
    """A plain HTTP client of the API server, for what kubectl does not show: status codes, headers, streams.

    As the administrator of the kubeconfig, or as somebody else with `Impersonate-User`.
    """
    server, trust = api_server()
    return httpx.Client(base_url=server, verify=trust, headers=headers, timeout=60, trust_env=False)


def proxy_path(*, namespace: str, name: str, path: str) -> str:
    """Where the Kubernetes API passes requests on to a sandbox's runtime."""
    return f"/apis/run.sandpod.dev/v1alpha1/namespaces/{namespace}/sandboxes/{name}/proxy/{path}"


def control_plane_is_ready() -> None:
    """Returns when operator, gateway and the aggregated API are there."""
    for part in ("operator", "gateway"):
        kubectl("-n", SYSTEM, "rollout", "status", f"deployment/sandpod-{part}", "--timeout=60s")
    kubectl("wait", f"apiservice/{API_SERVICE}", "--for=condition=Available", "--timeout=60s")


def upgrade(*args: str) -> None:
    """`make install` again, as a platform team changes a value: with more options for Helm."""
    run(ROOT / "hack/install.sh", *args, timeout=240)
