"""Which port of which sandbox a preview's host name opens. The token in it is compared, in constant time,
before anything else is done; what is not there looks like what has another token.
"""

import hmac
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from sandpod_crds import keys
from sandpod_crds.previews import Site

from .errors import NotFound
from .routes import ExposedPort, Key, Route, RouteTable

_DERIVED: Final = 8192


@dataclass(frozen=True, slots=True)
class Target:
    key: Key
    route: Route
    port: ExposedPort


class Targets:
    def __init__(self, *, site: Site, key: bytes, table: RouteTable) -> None:
        self._site = site
        self._table = table
        # Kept, because deriving them costs more than anything else that is done for a request.
        self._token = lru_cache(maxsize=_DERIVED)(partial(_token, key))

    def find(self, host: str) -> Target:
        """By a host in lower case and without its port."""
        address = self._site.address_in(host)
        if address is not None:
            for key, route in self._table.exposing(address.name):
                for port in route.ports:
                    if port.port != address.port or route.deleting:
                        continue
                    expected = self._token(route.uid, port.port, port.token_version)
                    if hmac.compare_digest(expected, address.token):
                        return Target(key=key, route=route, port=port)
        raise NotFound("no port of a sandbox has this address")

    def still_opens(self, host: str, target: Target) -> bool:
        """Not when the port was taken back, rotated or made private, or its sandbox is another one."""
        try:
            now = self.find(host)
        except NotFound:
            return False
        return now.port == target.port and now.route.uid == target.route.uid


def _token(key: bytes, uid: str, port: int, version: int) -> str:
    return keys.preview_token(key=key, sandbox_uid=uid, port=port, version=version)
