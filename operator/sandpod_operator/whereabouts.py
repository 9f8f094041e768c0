"""Where runtimes are. Whether a pod is still where the watch has said, by the API server's own word: asked
before secrets are sent to an address again that has not answered for a while.
"""

import ipaddress
from collections.abc import Awaitable, Callable

from sandpod_crds.errors import ApiError
from sandpod_crds.names import CONTROL_PORT

from .cluster import Cluster
from .kinds import POD
from .objects import section, uid_of
from .plan import Ask

IsThere = Callable[[Ask], Awaitable[bool]]


def whereabouts(cluster: Cluster) -> IsThere:
    async def is_there(ask: Ask) -> bool:
        try:
            pod = await cluster.get(POD.path(ask.namespace, ask.pod_name))
        except ApiError:
            # Gone, or nobody knows.
            return False
        return uid_of(pod) == ask.pod_uid and section(pod, "status").get("podIP") == ask.ip

    return is_there


def pod_address(ip: str) -> str | None:
    """For a URL. None for an address that is no pod's: somebody wants us to talk to something else."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return None
    if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return f"{address}:{CONTROL_PORT}"
    return f"[{address}]:{CONTROL_PORT}" if address.ipv4_mapped is None else None
