"""The documents by which the API server and kubectl learn what this API serves. Only the sub-resources are
there: the group has no objects of its own, and a resource without verbs would make `kubectl get all` stumble.
When they are wrong or missing, `kubectl api-resources` warns and namespaces stop being deleted, so each has
its test.
"""

import hashlib
import json
from typing import Any, Final

from sandpod_crds.names import RUN_API_VERSION, RUN_GROUP, SANDBOXES, VERSION

Json = dict[str, Any]

# By sub-resource: its kind, and the verbs that RBAC and the API server know it by. PUT and PATCH of the
# runtime's API are update and patch to them.
SUBRESOURCES: Final = {
    "proxy": ("SandboxProxy", ["create", "delete", "get", "patch", "update"]),
    "ports": ("SandboxPort", ["create", "delete", "get"]),
    "sleep": ("SandboxSleep", ["create"]),
    "wake": ("SandboxWake", ["create"]),
}

RESOURCES: Final[Json] = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": RUN_API_VERSION,
    "resources": [
        {
            "name": f"{SANDBOXES}/{name}",
            "singularName": "",
            "namespaced": True,
            "kind": kind,
            "verbs": verbs,
        }
        for name, (kind, verbs) in SUBRESOURCES.items()
    ],
}

_GROUP_VERSION: Final[Json] = {"groupVersion": RUN_API_VERSION, "version": VERSION}
GROUP: Final[Json] = {
    "kind": "APIGroup",
    "apiVersion": "v1",
    "name": RUN_GROUP,
    "versions": [_GROUP_VERSION],
    "preferredVersion": _GROUP_VERSION,
}

# The newer form, all of a server in one answer. The aggregator asks for it at /apis with this type first.
AGGREGATED_TYPE: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AGGREGATED: Final = json.dumps(
    {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": RUN_GROUP},
                "versions": [
                    {
                        "version": VERSION,
                        "freshness": "Current",
                        "resources": [
                            {
                                "resource": SANDBOXES,
                                # Empty on purpose: a parent that is there for its sub-resources alone.
                                "responseKind": {"group": "", "version": "", "kind": ""},
                                "scope": "Namespaced",
                                "singularResource": "",
                                "verbs": [],
                                "subresources": [
                                    {
                                        "subresource": name,
                                        "responseKind": {
                                            "group": RUN_GROUP,
                                            "version": VERSION,
                                            "kind": kind,
                                        },
                                        "verbs": verbs,
                                    }
                                    for name, (kind, verbs) in SUBRESOURCES.items()
                                ],
                            }
                        ],
                    }
                ],
            }
        ],
    },
    separators=(",", ":"),
).encode()
AGGREGATED_ETAG: Final = f'"{hashlib.sha256(AGGREGATED).hexdigest().upper()}"'


def wants_aggregated(accept: str) -> bool:
    """Whether one of the accepted types is the aggregated document in its stable version."""
    wanted = {"g=apidiscovery.k8s.io", "v=v2", "as=apigroupdiscoverylist"}
    return any(
        wanted <= {part.strip().lower() for part in accepted.split(";")} for accepted in accept.split(",")
    )
