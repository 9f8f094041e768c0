"""Which port of which sandbox a preview's host name opens. The token in it is compared, in constant time,
before anything else is done; what is not there looks like what has another token.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final

from sandpod_crds import keys
from sandpod_crds.previews import PreviewAddress, Site

from .errors import NotFound
from .routes import ExposedPort, Key, Route, RouteTable

_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Target:
    key: Key
    route: Route
    port: ExposedPort


@dataclass(frozen=True, slots=True)
class _Open:
    key: Key
    port: ExposedPort
    token: str


class Targets:
    """Tokens are derived when a port is exposed: whoever guesses costs a look into a dict, however many
    sandboxes share a name.
    """

    def __init__(self, *, site: Site, key: bytes, table: RouteTable) -> None:
        self._site = site
        self._key = key
        self._table = table
        # By digests that nobody can foresee: for how long a dict looks says something about what is in it.
        self._salt = secrets.token_bytes(hashlib.blake2b.MAX_KEY_SIZE)
        self._open: dict[bytes, _Open] = {}
        table.followed_by(self._follow)

    def find(self, host: str) -> Target:
        """By a host in lower case and without its port."""
        address = self._site.address_in(host)
        opened = None if address is None else self._open.get(self._digest(address))
        if address is not None and opened is not None and hmac.compare_digest(opened.token, address.token):
            route = self._table.get(opened.key)
            if route is not None:
                return Target(key=opened.key, route=route, port=opened.port)
        raise NotFound("no port of a sandbox has this address")

    def still_opens(self, host: str, target: Target) -> bool:
        """Not when the port was taken back, rotated or made private, or its sandbox is another one."""
        try:
            now = self.find(host)
        except NotFound:
            return False
        return now.port == target.port and now.route.uid == target.route.uid

    def _follow(self, key: Key, before: Route | None, after: Route | None) -> None:
        old, new = _opened(before), _opened(after)
        for uid, port in old - new:
            self._open.pop(self._digest(self._address(key, uid, port)), None)
        for uid, port in new - old:
            address = self._address(key, uid, port)
            self._open[self._digest(address)] = _Open(key, port, address.token)

    def _address(self, key: Key, uid: str, port: ExposedPort) -> PreviewAddress:
        token = keys.preview_token(key=self._key, sandbox_uid=uid, port=port.port, version=port.token_version)
        return PreviewAddress.of(port=port.port, sandbox=key[1], token=token)

    def _digest(self, address: PreviewAddress) -> bytes:
        return hashlib.blake2b(address.label.encode(), digest_size=_DIGEST_BYTES, key=self._salt).digest()


def _opened(route: Route | None) -> frozenset[tuple[str, ExposedPort]]:
    if route is None or route.deleting:
        return frozenset()
    return frozenset((route.uid, port) for port in route.ports)
