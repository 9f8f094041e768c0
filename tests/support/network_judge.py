"""Asks cyclonus what NetworkPolicies mean: it reads them by Kubernetes' documentation and knows nothing of
ours. hack/tools/cyclonus builds it.
"""

import json
import shutil
import subprocess
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BUILD = Path(__file__).parents[2] / "hack/tools/cyclonus/build.sh"
# Of a first build, which compiles a few hundred packages.
BUILD_SECONDS = 900

Json = dict[str, Any]


def has_go() -> bool:
    return shutil.which("go") is not None


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Somebody who sends or is sent to. Without a namespace: no pod."""

    ip: str
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])

    def to_json(self) -> Json:
        if not self.namespace:
            return {"IP": self.ip}
        pod = {
            "Namespace": self.namespace,
            "NamespaceLabels": {"kubernetes.io/metadata.name": self.namespace},
            "PodLabels": self.labels,
        }
        return {"IP": self.ip, "Internal": pod}


@dataclass(frozen=True, kw_only=True)
class Traffic:
    source: Peer
    destination: Peer
    port: int
    protocol: str = "TCP"

    def to_json(self) -> Json:
        return {
            "Source": self.source.to_json(),
            "Destination": self.destination.to_json(),
            "ResolvedPort": self.port,
            "Protocol": self.protocol,
        }


class Judge:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def passes(self, policies: Iterable[Json], traffic: Iterable[Traffic]) -> list[bool]:
        """Of each, whether its source may send it and its destination may be sent it."""
        question = {"policies": list(policies), "traffic": [each.to_json() for each in traffic]}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "cyclonus has ended"
        return [verdict["leaves"] and verdict["enters"] for verdict in json.loads(answer)]


@contextmanager
def judging() -> Generator[Judge]:
    built = subprocess.run([BUILD], check=True, stdout=subprocess.PIPE, text=True, timeout=BUILD_SECONDS)
    program = built.stdout.strip()
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Judge(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=10)
