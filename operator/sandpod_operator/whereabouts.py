"""Whether a pod is still where the watch has said, by the API server's own word: asked before secrets are
sent to an address again that has not answered for a while.
"""

from collections.abc import Awaitable, Callable

from sandpod_crds.errors import ApiError

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
