"""What a sandbox is asked for beside its runtime's own API: to sleep, and to expose its ports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandpod import _lifecycle, _requests

if TYPE_CHECKING:
    from typing import Self

    from sandpod._client import Client

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExposedPort:
    port: int
    # Empty where the installation has no previews. With access Token, whoever has it can open the port.
    url: str
    name: str
    access: str
    # Whether the sandbox's template exposes it, and so keeps it exposed.
    inherited: bool

    @classmethod
    def from_object(cls, value: Json) -> ExposedPort:
        return cls(
            port=int(value["port"]),
            url=str(value.get("url") or ""),
            name=str(value.get("name") or ""),
            access=str(value.get("access") or "Token"),
            inherited=bool(value.get("inherited")),
        )


class Exposing(ABC):
    _client: Client

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def namespace(self) -> str: ...

    @abstractmethod
    def refresh(self) -> Self: ...

    @abstractmethod
    def _until(self, done: Callable[[Json], bool], wanted: str, timeout: float, on_change: Any) -> Self: ...

    def sleep(self, *, wait: bool = True, timeout: float = 120.0, on_change: Any = None) -> Self:
        """Puts it to sleep now, whatever it is doing. Other than after `pause`, the next request wakes it."""
        self._client.send(_requests.sleep(namespace=self.namespace, name=self.name))
        return self.refresh()._until(_lifecycle.is_asleep, "asleep", timeout, on_change) if wait else self

    def ports(self) -> list[ExposedPort]:
        """Those that are exposed, by number."""
        request = _requests.ports("GET", namespace=self.namespace, name=self.name)
        return [ExposedPort.from_object(item) for item in self._client.send(request)["items"]]

    def expose(self, port: int, *, name: str | None = None, access: str | None = None) -> ExposedPort:
        """Gives the port a URL. Of one that is exposed already, only what is given changes. `access` is
        `Token`, and whoever has the URL may open it, or `Private`, and they have to prove who they are.
        """
        given = {"port": port, "name": name, "access": access}
        wish = {key: value for key, value in given.items() if value is not None}
        request = _requests.ports("POST", namespace=self.namespace, name=self.name, body=wish)
        return ExposedPort.from_object(self._client.send(request))

    def unexpose(self, port: int) -> None:
        """Its URL opens nothing any more."""
        self._client.send(self._about("DELETE", port))

    def rotate(self, port: int) -> ExposedPort:
        """Gives an exposed port another URL; the old one opens nothing any more."""
        return ExposedPort.from_object(self._client.send(self._about("POST", port, action="/rotate")))

    def login_url(self, port: int) -> str:
        """A link that logs a browser in to a port with access Private, as whoever you are. It can be opened
        once, within a minute.
        """
        return str(self._client.send(self._about("POST", port, action="/login"))["url"])

    def _about(self, method: str, port: int, *, action: str = "") -> _requests.Request:
        return _requests.exposed_port(
            method, namespace=self.namespace, name=self.name, port=port, action=action
        )
