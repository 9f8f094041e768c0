"""Finds out whether the cluster enforces NetworkPolicies, which Kubernetes itself does not tell.

The operator listens on a port of its own that a policy of the chart closes to everybody, and the gateway
knocks there, and on the open port beside it. Same source, same destination, same moment: only the policy
makes a difference. Both ends are ours; code in a sandbox has no say in it.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import aiohttp
from sandpod_crds import paths
from sandpod_crds.errors import ApiError
from sandpod_crds.names import COMPONENT_GATEWAY, COMPONENT_OPERATOR, LABEL_COMPONENT
from yarl import URL

from .cluster import Cluster
from .isolation import Enforcement
from .objects import Json, entries, section
from .settings import Settings

# The open port is health's; what listens at the other one says so, because proxies of a mesh accept anything.
CANARY_PORT: Final = 9091
GREETING: Final = b"sandpod\n"
GATEWAY_PORT: Final = 9090

# At first the operator itself is not ready for a moment, and nobody reaches it.
FIRST, OFTEN = 5.0, 60.0
SELDOM: Final = 3600.0
# A fresh pod's policies take a moment to reach its node: one knock that was heard proves nothing yet.
KNOCKS: Final = 3
BETWEEN_KNOCKS: Final = 10.0
# As long as nobody could tell, what the conditions said before goes on; then they say that it is not known.
UNTOLD_FOR: Final = 600.0
STALE: Final = 3 * SELDOM
MOST_GATEWAYS: Final = 5
LONGEST_ANSWER: Final = 1024
PATIENCE: Final = aiohttp.ClientTimeout(total=10.0, sock_connect=3.0)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What one gateway has reached of the operator."""

    open: bool
    closed: bool


def judge(reports: Iterable[Report]) -> Enforcement:
    found = list(reports)
    if any(report.closed for report in found):
        return Enforcement.NOT_ENFORCED
    # Who does not even get through the open door says nothing about the closed one.
    return Enforcement.ENFORCED if any(report.open for report in found) else Enforcement.UNKNOWN


def obstacle(policies: Iterable[Json], *, name: str, labels: Mapping[str, str]) -> str | None:
    """Why nothing could be concluded from a knock at the pod with these labels: our policy is not there, or
    somebody else's opens what it closes. NetworkPolicies only ever add to each other.
    """
    mine = None
    for policy in policies:
        if policy["metadata"]["name"] == name:
            mine = policy
        elif section(policy, "spec").get("ingress") and _may_select(section(policy, "spec"), labels):
            return f"the NetworkPolicy {policy['metadata']['name']} may open the port as well"
    if mine is None:
        return f"there is no NetworkPolicy {name}: the chart brings it with network.detectEnforcement"
    ports = [
        port for rule in entries(section(mine, "spec"), "ingress") for port in entries(rule, "ports") or [{}]
    ]
    if any(port.get("port") in (None, CANARY_PORT) or "endPort" in port for port in ports):
        return f"somebody has changed the NetworkPolicy {name}"
    return None


def _may_select(spec: Json, labels: Mapping[str, str]) -> bool:
    """Also when it is not clear: expressions are not looked into."""
    return section(section(spec, "podSelector"), "matchLabels").items() <= labels.items()


class _Inconclusive(Exception):
    pass


class Detector:
    """`changed` is called when what is found is news. `ask` gets the address of a gateway's pod,
    and its report; None when there is none.
    """

    def __init__(
        self,
        *,
        cluster: Cluster,
        settings: Settings,
        clock: Callable[[], float],
        changed: Callable[[], None],
        ask: Callable[[str], Awaitable[Report | None]] | None = None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._clock = clock
        self._changed = changed
        self._ask = ask or ask_gateway
        self._begun = clock()
        self._found = Enforcement.UNTOLD
        self._found_at = self._begun

    @property
    def enforcement(self) -> Enforcement:
        if not self._settings.network.detect_enforcement:
            return Enforcement.UNKNOWN
        age = self._clock() - self._found_at
        if self._found is Enforcement.UNTOLD:
            return Enforcement.UNTOLD if age < UNTOLD_FOR else Enforcement.UNKNOWN
        return self._found if age < STALE else Enforcement.UNKNOWN

    async def run(self) -> None:
        async with await listen():
            pause = FIRST
            while True:
                found = await self.look()
                unknown = found is Enforcement.UNKNOWN
                await asyncio.sleep(pause if unknown else SELDOM)
                pause = min(pause * 2, OFTEN) if unknown else FIRST

    async def look(self) -> Enforcement:
        found = await self._try_once()
        for _ in range(KNOCKS - 1):
            if found is not Enforcement.NOT_ENFORCED:
                break
            await asyncio.sleep(BETWEEN_KNOCKS)
            found = await self._try_once()
        if found is not Enforcement.UNKNOWN:
            news = found is not self._found
            self._found, self._found_at = found, self._clock()
            if news:
                self._tell(found)
                self._changed()
        return found

    async def _try_once(self) -> Enforcement:
        try:
            reports = await self._reports()
        except (ApiError, _Inconclusive) as error:
            log.info("cannot tell whether NetworkPolicies are enforced: %s", error)
            return Enforcement.UNKNOWN
        return judge(reports)

    async def _reports(self) -> list[Report]:
        settings = self._settings
        namespace = settings.system_namespace
        selector = ",".join(f"{key}={value}" for key, value in settings.release_labels.items())
        pods = (await self._cluster.list(paths.pods(namespace), query={"labelSelector": selector}))["items"]
        operator = next(_of(pods, COMPONENT_OPERATOR), None)
        if operator is None:
            raise _Inconclusive("the operator's own pod is not there")
        policies = await self._cluster.list(_policies(namespace))
        labels = section(operator["metadata"], "labels")
        why = obstacle(policies["items"], name=settings.canary_policy, labels=labels)
        if why is not None:
            raise _Inconclusive(why)
        addresses = [section(pod, "status").get("podIP") for pod in _of(pods, COMPONENT_GATEWAY)]
        found = [await self._ask(address) for address in addresses[:MOST_GATEWAYS] if address]
        reports = [report for report in found if report is not None]
        if judge(reports) is Enforcement.UNKNOWN:
            raise _Inconclusive("no gateway reaches the operator")
        return reports

    def _tell(self, found: Enforcement) -> None:
        if found is Enforcement.NOT_ENFORCED:
            log.warning("this cluster does not enforce NetworkPolicies: sandboxes are not kept apart by them")
        else:
            log.info("this cluster enforces NetworkPolicies")


async def ask_gateway(address: str, *, port: int = GATEWAY_PORT) -> Report | None:
    url = URL.build(scheme="http", host=address, port=port, path="/reach")
    try:
        async with (
            aiohttp.ClientSession(timeout=PATIENCE, trust_env=False) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            text = await response.content.read(LONGEST_ANSWER)
            said: Any = json.loads(text) if response.status == 200 else None
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, RecursionError):
        return None
    answer = cast("Json", said) if isinstance(said, dict) else Json()
    is_open, is_closed = answer.get("open"), answer.get("closed")
    if not isinstance(is_open, bool) or not isinstance(is_closed, bool):
        return None
    return Report(open=is_open, closed=is_closed)


async def listen(*, port: int = CANARY_PORT) -> asyncio.Server:
    """At the port that nobody should reach."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(GREETING)
        writer.close()

    return await asyncio.start_server(greet, port=port)


def _of(pods: Iterable[Json], component: str) -> Iterator[Json]:
    return (pod for pod in pods if section(pod["metadata"], "labels").get(LABEL_COMPONENT) == component)


def _policies(namespace: str) -> str:
    return paths.build("/apis/networking.k8s.io/v1", "networkpolicies", namespace=namespace)
