"""Where a runtime may be reached. The only address that is ever dialled is the one of the watched pod, and
even that is checked: whoever could write a status must not turn the gateway into a way to its own loopback or
to the node's metadata service.
"""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sandpod_crds.names import CONTROL_PORT
from sandpod_crds.previews import may_be_exposed

from .errors import BrokenOff

Address = tuple[str, int]

_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")


def control_address(pod_ip: str) -> Address:
    if not may_dial(pod_ip):
        raise BrokenOff(
            f"the sandbox's pod has the address {pod_ip!r}, which the gateway does not connect to"
        )
    return pod_ip, CONTROL_PORT


def app_address(pod_ip: str, port: int) -> Address:
    """Of a program's own port. The control port is nobody's but the runtime's."""
    if not may_be_exposed(port):
        raise BrokenOff(f"port {port} is never exposed")
    return control_address(pod_ip)[0], port


@dataclass(frozen=True, slots=True)
class Addressing:
    """How a pod's IP becomes what is connected to; only tests need another than PODS."""

    control: Callable[[str], Address]
    app: Callable[[str, int], Address]


PODS: Final = Addressing(control=control_address, app=app_address)


def may_dial(text: str) -> bool:
    """An address of another machine, and no name: a name would be resolved, and could change its mind."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return False
        # An IPv4 address in disguise is judged as what the kernel will connect to.
        address = address.ipv4_mapped or address.sixtofour or address
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address == _BROADCAST
    )


def host_header(address: Address) -> bytes:
    host, port = address
    return f"[{host}]:{port}".encode() if ":" in host else f"{host}:{port}".encode()
