"""Traffic, and cyclonus' judgement of it: may it pass these NetworkPolicies?"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support import judges

Json = dict[str, Any]


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
    def __init__(self, ask: judges.Ask) -> None:
        self._ask = ask

    def passes(self, policies: Iterable[Json], traffic: Iterable[Traffic]) -> list[bool]:
        """Of each, whether its source may send it and its destination may be sent it."""
        question = {"policies": list(policies), "traffic": [each.to_json() for each in traffic]}
        return [verdict["leaves"] and verdict["enters"] for verdict in self._ask(question)]


@contextmanager
def judging() -> Generator[Judge]:
    with judges.judging("cyclonus") as ask:
        yield Judge(ask)
