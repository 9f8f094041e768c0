"""The cluster under test, reached with the tools and the kubeconfig of `make cluster`."""

import base64
import json
import os
import subprocess
from pathlib import Path

from tests.bench.api import Json

ROOT = Path(__file__).parents[2]
SYSTEM = "sandpod-system"


def environment() -> dict[str, str]:
    """The environment in which kubectl and docker find this cluster."""
    printed = subprocess.run(
        [ROOT / "hack/cluster/env.sh", "--print"], check=True, capture_output=True, text=True
    ).stdout
    pairs = (line.split("=", 1) for line in printed.splitlines() if "=" in line)
    return {**os.environ, **{name: value.strip("'\"") for name, value in pairs}}


ENV = environment()
KUBECONFIG = Path(ENV["KUBECONFIG"])


def kubectl(*args: str, stdin: str | None = None) -> str:
    """Runs kubectl and returns what it printed."""
    return subprocess.run(
        ["kubectl", *args], check=True, capture_output=True, text=True, input=stdin, env=ENV
    ).stdout


def python_in(deployment: str, script: str, *args: str) -> Json:
    """Runs a script by the Python of a deployment's own image, which prints one JSON object."""
    command = ["exec", "-i", "-n", SYSTEM, f"deploy/{deployment}", "--", "python3", "-", *args]
    return json.loads(kubectl(*command, stdin=script))


def installation_key() -> bytes:
    """The key that credentials are derived from; a benchmark reads it as a cluster's administrator may."""
    secret: Json = json.loads(kubectl("get", "secret", "-n", SYSTEM, "sandpod-key", "-o", "json"))
    return base64.b64decode(secret["data"]["key"])
