"""Which HTTP proxy leads to the cluster, decided as Go does it, so that it is the one kubectl takes."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def choose(*, server: str, configured: str, environ: Mapping[str, str]) -> str | None:
    """The proxy's URL, or None for a direct connection.

    The kubeconfig's `proxy-url` beats the environment.
    """
    if configured:
        return configured
    url = urlsplit(server)
    scheme = url.scheme.lower()
    proxy = environ.get(f"{scheme.upper()}_PROXY") or environ.get(f"{scheme}_proxy")
    if not proxy or _direct(host=url.hostname or "", port=url.port, environ=environ):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _direct(*, host: str, port: int | None, environ: Mapping[str, str]) -> bool:
    address = _address(host)
    # A proxy elsewhere cannot reach this machine's own loopback: a local cluster must never go through one.
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    rules = (environ.get("NO_PROXY") or environ.get("no_proxy") or "").split(",")
    return any(_excluded(rule.strip().lower(), host=host, port=port, address=address) for rule in rules)


def _excluded(
    rule: str, *, host: str, port: int | None, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if not rule:
        return False
    if rule == "*":
        return True
    if address is not None:
        try:
            return address in ipaddress.ip_network(rule.strip("[]"), strict=False)
        except ValueError:
            pass
    name, colon, wanted_port = rule.rpartition(":")
    if colon and wanted_port.isdecimal():
        if port != int(wanted_port):
            return False
        rule = name.strip("[]")
    if address is not None:
        return _address(rule) == address
    # ".example.com" and "*.example.com" mean what is below it, "example.com" also itself.
    below = rule.removeprefix("*")
    return host.endswith(below) if below.startswith(".") else host == rule or host.endswith(f".{rule}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
