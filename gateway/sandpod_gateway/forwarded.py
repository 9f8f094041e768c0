"""From where a request comes and by which scheme, when proxies stand in front of the gateway: what they say
counts as far back as they are ours, and no further, because anybody can send the same headers.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_SCHEMES: Final = ("http", "https")
# Nobody has a longer chain of proxies of his own.
_LONGEST: Final = 32


@dataclass(frozen=True, slots=True)
class Sender:
    source: str
    scheme: str


def sender_of(request: web.BaseRequest, *, peer: str, scheme: str, trusted: Sequence[Network]) -> Sender:
    """`peer` is at the other end of the connection. `scheme` is the one that people use unless a proxy of
    ours knows better.
    """
    if not is_among(peer, trusted):
        return Sender(source=peer, scheme=scheme)
    said = request.headers.get("X-Forwarded-Proto", "").rpartition(",")[2].strip().lower()
    chain = ",".join(request.headers.getall("X-Forwarded-For", [])).split(",")
    return Sender(
        source=_source(chain, peer=peer, trusted=trusted), scheme=said if said in _SCHEMES else scheme
    )


def _source(chain: list[str], *, peer: str, trusted: Sequence[Network]) -> str:
    """The last address in it that is not a proxy's: each of them has appended whom it saw."""
    source = peer
    for entry in reversed(chain[-_LONGEST:]):
        if (address := _address(entry.strip())) is None:
            return source
        source = address
        if not is_among(address, trusted):
            return source
    return source


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


def is_among(text: str, networks: Sequence[Network]) -> bool:
    if not networks:
        return False
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        # A socket for both families shows IPv4 addresses like this.
        address = address.ipv4_mapped or address
    return any(address in network for network in networks)
