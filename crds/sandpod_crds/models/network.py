"""Where a sandbox may connect to."""

from typing import Annotated, ClassVar, Literal

from ..markers import Atomic, Bounds, Model, Rule

_Port = Annotated[int, Rule("self >= 1 && self <= 65535", "write a port from 1 to 65535")]

Cidr = Annotated[
    str,
    Bounds(longest=64),
    Rule(
        "isCIDR(self)",
        "write a range of addresses such as 203.0.113.0/24, or one address as 203.0.113.7/32; host names are "
        "not possible here",
    ),
    Rule(
        "!isCIDR(self) || cidr(self) == cidr(self).masked()",
        "the address reaches beyond the prefix length; write the first address of the range, such as "
        "203.0.113.0/24, or one address as 203.0.113.7/32",
    ),
]


class NetworkPort(Model):
    rules: ClassVar = (
        Rule(
            "!has(self.endPort) || self.endPort >= self.port",
            "endPort is the last port of a range and cannot be below port; swap them",
        ),
    )

    port: _Port
    """The port to allow, or the first of a range, from 1 to 65535. Example: 443."""
    end_port: _Port | None = None
    """The last port of the range. Default: port, so just that one."""
    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    """TCP (the default), UDP or SCTP."""


class AllowedTarget(Model):
    cidr: Cidr
    """The addresses that may be reached, such as 203.0.113.0/24 or 2001:db8::/32."""
    ports: Annotated[tuple[NetworkPort, ...], Atomic(), Bounds(longest=32)] = ()
    """The ports that may be reached there. Default: all ports of all protocols."""


class Network(Model):
    egress: Literal["None", "Internet", "Restricted"] = "Internet"
    """Where the sandbox may connect to. None: nowhere. Internet (the default): everywhere but the cluster's
    own addresses and the cloud's metadata service. Restricted: only what allow lists. DNS always works. Can
    be changed while the sandbox runs."""
    allow: Annotated[tuple[AllowedTarget, ...], Atomic(), Bounds(longest=64)] = ()
    """With egress: Restricted, what may be reached, also inside the cluster."""
