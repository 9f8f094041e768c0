"""The operator of this checkout as a process of this machine, so that it can be measured, and ended, by its
id.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import yaml

from tests.bench.cluster import ENV, ROOT, SYSTEM, kubectl
from tests.bench.numbers import Numbers
from tests.bench.scale.processes import Program, fetch, wait_for

NAMESPACE = "sandpod-scale"
ADDRESS = "http://127.0.0.1:9090"
DEPLOYED = ("-n", SYSTEM, "deployment/sandpod-operator")


class Operator:
    def __init__(self, directory: Path) -> None:
        self._log = directory / "operator.log"
        self._program: Program | None = None

    @property
    def program(self) -> Program:
        assert self._program is not None
        return self._program

    def start(self) -> None:
        env = {**ENV, "SANDPOD_SETTINGS": json.dumps(_settings())}
        # Another program in its place, for a profile.
        module = os.environ.get("SANDPOD_BENCH_OPERATOR", "sandpod_operator")
        self._program = Program(sys.executable, "-m", module, log=self._log, env=env, cwd=ROOT)

    def stop(self) -> None:
        if self._program is not None:
            self._program.stop()

    def numbers(self) -> Numbers:
        self.program.check()
        return Numbers(fetch(f"{ADDRESS}/metrics") or "")

    def converged(self) -> bool:
        return self.numbers().converged

    def settled(self) -> bool:
        return self.numbers().settled

    def restart(self) -> float:
        """Returns how many seconds it took from the start to converged."""
        self.stop()
        begun = time.monotonic()
        self.start()
        # Seldom enough that to be asked is not most of what it has to do.
        wait_for("the operator has converged", self.converged, within=300, every=0.25)
        return time.monotonic() - begun


@contextlib.contextmanager
def alone() -> Generator[None]:
    """Without the operator that is installed in the cluster, and with the CRDs of this checkout."""
    if fetch(f"{ADDRESS}/healthz") is not None:
        raise SystemExit("something on this machine listens on port 9090 already: end it, and try again")
    replicas = kubectl("get", "--ignore-not-found", *DEPLOYED, "-o", "jsonpath={.spec.replicas}")
    crds = ROOT / "charts/sandpod/files/crds"
    ours = kubectl("get", "crd", "--ignore-not-found", "sandboxes.sandpod.dev", "-o", "name") == ""
    if replicas:
        kubectl("scale", *DEPLOYED, "--replicas=0")
        kubectl("rollout", "status", *DEPLOYED, "--timeout=60s")
    try:
        if ours:
            kubectl("apply", "--server-side", "-f", str(crds))
            kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(crds))
        yield
    finally:
        if ours:
            kubectl("delete", "--ignore-not-found", "--timeout=60s", "-f", str(crds))
        if replicas:
            kubectl("scale", *DEPLOYED, f"--replicas={replicas}")


def _settings() -> Mapping[str, object]:
    values = yaml.safe_load((ROOT / "charts/sandpod/values.yaml").read_text())
    return {
        "systemNamespace": NAMESPACE,
        # Never pulled: the nodes are simulated.
        "sandboxImage": "simulated/sandbox:0",
        "runtimeImage": "simulated/runtime:0",
        "runtimeMount": "ImageVolume",
        "defaults": values["sandboxes"]["defaults"],
        # The gateway's certificate is not this run's to change.
        "certificates": "External",
    }
