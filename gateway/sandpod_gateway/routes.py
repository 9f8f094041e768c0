"""The route table: of every Sandbox only what a request needs to know. One writer, the reflector; requests
read it and may wait a moment for a sandbox that is about to be ready.
"""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from sandpod_crds.names import ANNOTATION_WAKE, REASON_SETTING_UP, ConditionType, Phase
from sandpod_crds.previews import may_be_exposed

Json = dict[str, Any]
Key = tuple[str, str]

# The operator has it in hand; nothing needs to be done but to wait. No phase yet: it has not even seen it.
_STARTING: Final = ("", Phase.PENDING, Phase.STARTING)


@dataclass(frozen=True, slots=True)
class ExposedPort:
    port: int
    private: bool
    token_version: int


@dataclass(frozen=True, slots=True)
class Route:
    uid: str
    phase: str = ""
    ready: bool = False
    pod_ip: str = ""
    pod_uid: str = ""
    # Of the condition Ready, for the answer to a request that comes too early.
    reason: str = ""
    message: str = ""
    deleting: bool = False
    # Asleep by decree: no request changes that.
    paused: bool = False
    # The last wake that anybody asked for, and the last one that the operator has acted on
    wake: str = ""
    wake_observed: str = ""
    ports: tuple[ExposedPort, ...] = ()

    @classmethod
    def from_object(cls, sandbox: Json) -> Self:
        metadata = _object(sandbox, "metadata")
        status = _object(sandbox, "status")
        ready = next(
            (
                c
                for c in cast("list[Json]", status.get("conditions") or [])
                if c.get("type") == ConditionType.READY
            ),
            cast("Json", {}),
        )
        pod_ip, pod_uid = str(status.get("podIP") or ""), str(status.get("podUID") or "")
        deleting = "deletionTimestamp" in metadata
        return cls(
            uid=str(metadata.get("uid") or ""),
            phase=str(status.get("phase") or ""),
            # Ready without a pod to go to would be a request to nowhere.
            ready=ready.get("status") == "True" and bool(pod_ip and pod_uid) and not deleting,
            pod_ip=pod_ip,
            pod_uid=pod_uid,
            reason=str(ready.get("reason") or ""),
            message=str(ready.get("message") or ""),
            deleting=deleting,
            paused=_object(sandbox, "spec").get("paused") is True,
            wake=str(_object(metadata, "annotations").get(ANNOTATION_WAKE) or ""),
            wake_observed=str(status.get("wakeObserved") or ""),
            ports=_exposed(_object(sandbox, "spec"), status),
        )

    @property
    def setting_up(self) -> bool:
        """Its runtime runs the setup, and takes nothing but questions about it."""
        there = bool(self.pod_ip and self.pod_uid) and not self.deleting
        return there and self.phase == Phase.STARTING and self.reason == REASON_SETTING_UP

    @property
    def starting(self) -> bool:
        return not self.ready and not self.deleting and self.phase in _STARTING

    @property
    def wake_pending(self) -> bool:
        """The operator will start it, now or when the pod that is on its way out has ended."""
        return bool(self.wake) and self.wake != self.wake_observed


Follower = Callable[[Key, Route | None, Route | None], None]


def key_of(sandbox: Json) -> Key:
    metadata = _object(sandbox, "metadata")
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


class RouteTable:
    """What the gateway believes the cluster to be."""

    def __init__(self) -> None:
        self._routes: dict[Key, Route] = {}
        self._follower: Follower | None = None
        self._waiting: dict[Key, set[asyncio.Event]] = {}

    def __len__(self) -> int:
        return len(self._routes)

    def get(self, key: Key) -> Route | None:
        return self._routes.get(key)

    def replace(self, routes: Mapping[Key, Route]) -> None:
        """The whole table at once: whatever is not in `routes` is gone, also what no event ever told of."""
        before, self._routes = self._routes, dict(routes)
        for key in before.keys() | routes.keys():
            self._follow(key, before.get(key))
        for key in list(self._waiting):
            self._tell(key)

    def put(self, key: Key, route: Route) -> None:
        before, self._routes[key] = self._routes.get(key), route
        self._follow(key, before)
        self._tell(key)

    def remove(self, key: Key) -> None:
        before = self._routes.pop(key, None)
        self._follow(key, before)
        self._tell(key)

    def followed_by(self, follower: Follower) -> None:
        """It hears of all that is there and, before anybody else, of each change: key, before and after."""
        self._follower = follower
        for key in self._routes:
            self._follow(key, None)

    @contextlib.contextmanager
    def changes(self, key: Key) -> Generator[asyncio.Event]:
        """An event that is set whenever something about this sandbox changes; its reader clears it."""
        changed = asyncio.Event()
        # Per key: with one condition for the table, every change would wake every request that waits.
        self._waiting.setdefault(key, set()).add(changed)
        try:
            yield changed
        finally:
            self._waiting[key].discard(changed)
            if not self._waiting[key]:
                del self._waiting[key]

    def _follow(self, key: Key, before: Route | None) -> None:
        if self._follower is not None:
            self._follower(key, before, self._routes.get(key))

    def _tell(self, key: Key) -> None:
        for event in self._waiting.get(key, ()):
            event.set()


def _exposed(spec: Json, status: Json) -> tuple[ExposedPort, ...]:
    return tuple(
        ExposedPort(
            port=port,
            private=each.get("access") == "Private",
            token_version=token_version(each),
        )
        for port, each in exposed_ports(spec, status).items()
    )


def exposed_ports(spec: Json, status: Json) -> dict[int, Json]:
    """The sandbox's own ports are what its spec says, from the moment that it is written: what is taken back
    there does not stay open until the operator has seen it. What its template adds only the operator knows.
    """
    own = {_port(each): each for each in _list(spec, "ports")}
    inherited = {_port(each): each for each in _list(status, "ports") if each.get("inherited") is True}
    merged = {port: inherited.get(port, {}) | own.get(port, {}) for port in (*own, *inherited)}
    return {port: each for port, each in merged.items() if may_be_exposed(port)}


def token_version(entry: Json) -> int:
    return _number(entry.get("tokenVersion"), default=1)


def _port(entry: Json) -> int:
    return _number(entry.get("port"), default=0)


def _number(value: object, *, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _list(parent: Json, entry: str) -> list[Json]:
    """Checked by the CRD's schema: a list of objects, or nothing."""
    return cast("list[Json]", parent.get(entry) or [])


def _object(parent: Json, entry: str) -> Json:
    value = parent.get(entry)
    return cast("Json", value) if isinstance(value, dict) else {}
