"""Sandboxes as the tests handle them: apply one, wait for it, run commands in it, look at what it became."""

import json
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from tests.support.cluster import Json, apply, get, kubectl, run
from tests.support.waiting import eventually


def manifest(*, name: str, namespace: str, spec: Json) -> Json:
    """The object that a user would write."""
    return {
        "apiVersion": "sandpod.dev/v1alpha1",
        "kind": "Sandbox",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


@dataclass(frozen=True)
class Sandbox:
    """One Sandbox in the cluster."""

    name: str
    namespace: str

    def apply(self, **spec: Any) -> "Sandbox":
        """Creates it, or changes it to this spec."""
        apply(manifest(name=self.name, namespace=self.namespace, spec=spec))
        return self

    def get(self) -> Json:
        """The object."""
        return get("sandbox", self.name, "-n", self.namespace)

    def status(self) -> Json:
        """Its status, empty as long as nobody has written one."""
        return self.get().get("status", {})

    def condition(self, kind: str = "Ready") -> Json:
        """A condition of it, empty when it has none of that type."""
        conditions: list[Json] = self.status().get("conditions", [])
        for condition in conditions:
            if condition["type"] == kind:
                return condition
        return {}

    def wait(self, *, timeout: int = 60, condition: str = "Ready") -> "Sandbox":
        """Returns when the condition is True."""
        waiting = ("wait", f"sandbox/{self.name}", "-n", self.namespace)
        done = kubectl(
            *waiting,
            f"--for=condition={condition}",
            f"--timeout={timeout}s",
            check=False,
            timeout=timeout + 30,
        )
        assert done.returncode == 0, f"{done.stderr}{json.dumps(self.status(), indent=1)}"
        return self

    def reaches(self, phase: str, *, timeout: float = 60) -> Json:
        """The status, once it has this phase."""

        def reached() -> Json:
            status = self.status()
            assert status.get("phase") == phase, status
            return status

        return eventually(reached, timeout=timeout, every=0.1)

    def falls_asleep(self, *, timeout: float = 60) -> Json:
        """The status, once it sleeps and its pod is gone."""
        status = self.reaches("Asleep", timeout=timeout)
        eventually(lambda: not kubectl("get", "pod", self.name, "-n", self.namespace, check=False).stdout)
        return status

    def wake(self) -> "Sandbox":
        """Asks for it as the gateway does, and waits until it is there."""
        now = f"sandpod.dev/wake-requested-at={time.time_ns()}"
        kubectl("annotate", "sandbox", self.name, "-n", self.namespace, "--overwrite", now)
        observed = now.split("=")[1]
        # The gateway may ask at the same moment, and the last request is the one that is answered.
        eventually(lambda: self.status().get("wakeObserved") in (observed, self._asked()), timeout=60)
        return self.wait()

    def _asked(self) -> str | None:
        return self.get()["metadata"]["annotations"].get("sandpod.dev/wake-requested-at")

    def fails_with(self, reason: str, *, timeout: float = 60) -> Json:
        """The Ready condition, once it is False for that reason."""

        def failed() -> Json:
            ready = self.condition()
            assert (ready.get("status"), ready.get("reason")) == ("False", reason), ready
            return ready

        return eventually(failed, timeout=timeout, every=0.3)

    def pod(self) -> Json:
        """Its pod, by whatever name a pool has made it."""
        return get("pod", self.status().get("podName") or self.name, "-n", self.namespace)

    def holds_up_drains(self) -> bool:
        """Its namespace's budget counts its pod, which takes a moment after the sandbox is Ready."""
        budgets = get("poddisruptionbudgets", "-n", self.namespace)["items"]
        return any(each.get("status", {}).get("currentHealthy") for each in budgets)

    def events(self) -> list[Json]:
        """Kubernetes events about it, the oldest first."""
        selector = f"involvedObject.kind=Sandbox,involvedObject.name={self.name}"
        found: list[Json] = get("events", "-n", self.namespace, f"--field-selector={selector}")["items"]
        return sorted(found, key=lambda event: event["metadata"]["resourceVersion"])

    def told(self, *reasons: str, timeout: float = 60) -> str:
        """The message of an event of such a reason, once there is one: it outlives the condition."""

        def message() -> str | None:
            return next((event["message"] for event in self.events() if event["reason"] in reasons), None)

        return eventually(message, timeout=timeout, every=0.3)

    def command(self, *command: str) -> list[str]:
        """The command line by which a user runs a command in it."""
        return ["sandpod", "exec", "-n", self.namespace, self.name, "--", *command]

    def exec(
        self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in it by the CLI."""
        line = self.command(*command)
        if stdin is not None:
            line.insert(2, "--stdin")
        return run(*line, stdin=stdin, check=check, timeout=timeout)

    def output(self, script: str) -> str:
        """What a shell command in it prints, without the white space at the end."""
        return self.exec("sh", "-c", script).stdout.rstrip()

    def delete(self, *options: str) -> None:
        """Deletes it and waits until it is gone."""
        kubectl("delete", "sandbox", self.name, "-n", self.namespace, "--timeout=60s", *options)


@dataclass(frozen=True)
class Sandboxes:
    """The sandboxes of a namespace: `sandbox(image="…")` applies one."""

    namespace: str

    def __call__(self, name: str = "box", **spec: Any) -> Sandbox:
        return Sandbox(name, self.namespace).apply(**spec)
