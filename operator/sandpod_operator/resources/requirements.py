"""The resources of a sandbox: the user's, completed by the defaults. Every sandbox that the defaults bound
stays bounded, and no default turns a good manifest into one that the API server refuses.
"""

from sandpod_crds.models import ResourceRequirements

from ..objects import Json
from ..quantities import Amount, larger, smaller


def requirements(wanted: ResourceRequirements | None, *, defaults: dict[str, dict[str, Amount]]) -> Json:
    requests = dict((wanted and wanted.requests) or {})
    limits = dict((wanted and wanted.limits) or {})
    # The user's request without a limit raises a default limit that lies below it.
    for name, amount in defaults.get("limits", {}).items():
        if name not in limits:
            limits[name] = larger(amount, requests[name]) if name in requests else amount
    # The user's limit without a request lowers a default request that lies above it.
    for name, amount in defaults.get("requests", {}).items():
        if name not in requests:
            requests[name] = smaller(amount, limits[name]) if name in limits else amount
    return {kind: amounts for kind, amounts in (("requests", requests), ("limits", limits)) if amounts}
