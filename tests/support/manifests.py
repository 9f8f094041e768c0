"""Manifests as people write them: mistakes, each with the sentence that the API server answers, and none."""

from typing import Any, NamedTuple

Json = dict[str, Any]


class Bad(NamedTuple):
    spec: Json
    field: str
    sentence: str
    kind: str = "Sandbox"


DURATION = "write a duration such as 45s, 10m or 1h30m, or whole seconds such as 600"
POLICY = "SandboxPolicy"
WALLED = {"egress": "Restricted"}


def allowing(**target: Any) -> Json:
    return {"network": {**WALLED, "allow": [{"cidr": "203.0.113.0/24", **target}]}}


BAD: dict[str, Bad] = {
    # When it sleeps
    "days": Bad({"sleepAfter": "1d"}, "spec.sleepAfter", DURATION),
    "words": Bad({"sleepAfter": "10 minutes"}, "spec.sleepAfter", DURATION),
    "upper-case units": Bad({"sleepAfter": "10M"}, "spec.sleepAfter", DURATION),
    "empty": Bad({"sleepAfter": ""}, "spec.sleepAfter", DURATION),
    "too short": Bad({"sleepAfter": "500ms"}, "spec.sleepAfter", "from 1s to 8760h"),
    "zero": Bad({"sleepAfter": 0}, "spec.sleepAfter", "keepAlive: true"),
    "negative": Bad({"sleepAfter": -1}, "spec.sleepAfter", "keepAlive: true"),
    "never": Bad({"sleepAfter": "never"}, "spec.sleepAfter", "keepAlive: true"),
    "too long": Bad({"sleepAfter": "9000h"}, "spec.sleepAfter", "from 1s to 8760h"),
    "so long that it overflows": Bad({"sleepAfter": "99999h9999999m"}, "spec.sleepAfter", "to 8760h"),
    "true": Bad({"sleepAfter": True}, "spec.sleepAfter", "must be of type integer,string"),
    "a life of days": Bad({"lifetime": {"maxAge": "7d"}}, "spec.lifetime.maxAge", "a day is 24h"),
    "deleted at once": Bad(
        {"lifetime": {"deleteAfterAsleep": "0s"}}, "spec.lifetime.deleteAfterAsleep", "from 1s to 87600h"
    ),
    # What it runs
    "image with a scheme": Bad({"image": "https://registry.example.com/tools"}, "spec.image", "no https://"),
    "image in upper case": Bad({"image": "Ubuntu:24.04"}, "spec.image", "the path in lower case"),
    "image with a space": Bad({"image": "ubuntu 24.04"}, "spec.image", "no spaces"),
    "empty image": Bad({"image": ""}, "spec.image", "write an image as registry/path:tag"),
    "pull policy": Bad(
        {"imagePullPolicy": "always"}, "spec.imagePullPolicy", '"Always", "IfNotPresent", "Never"'
    ),
    "root by number": Bad({"user": 0}, "spec.user", "or the word root (not 0)"),
    "user by name": Bad({"user": "ubuntu"}, "spec.user", "write a numeric UID from 1"),
    "quoted user": Bad({"user": "1000"}, "spec.user", "without quotes"),
    "root without Strict": Bad({"user": "root"}, "spec.user", "possible with isolation: Strict only"),
    "isolation": Bad({"isolation": "strict"}, "spec.isolation", 'supported values: "Standard", "Strict"'),
    # Environment
    "variable with a hyphen": Bad({"env": [{"name": "my-var"}]}, "spec.env[0].name", "such as MY_VAR"),
    "variable with a digit": Bad({"env": [{"name": "1ST"}]}, "spec.env[0].name", "not starting with a digit"),
    "our variables": Bad(
        {"env": [{"name": "SANDPOD_X"}]},
        "spec.env[0].name",
        "names that start with SANDPOD_ belong to Sandpod",
    ),
    "number as value": Bad(
        {"env": [{"name": "PORT", "value": 80}]}, "spec.env[0].value", 'must be of type string: "integer"'
    ),
    "variable twice": Bad({"env": [{"name": "A"}, {"name": "A"}]}, "spec.env[1]", "Duplicate value"),
    "value and valueFrom": Bad(
        {"env": [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
        "spec.env[0]",
        "a value or a valueFrom, not both; remove one",
    ),
    "valueFrom nothing": Bad(
        {"env": [{"name": "A", "valueFrom": {}}]}, "spec.env[0].valueFrom", "set exactly one of secretKeyRef"
    ),
    "secret without key": Bad(
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]},
        "spec.env[0].valueFrom.secretKeyRef.key",
        "Required value",
    ),
    "envFrom nothing": Bad(
        {"envFrom": [{"prefix": "A_"}]}, "spec.envFrom[0]", "set exactly one of configMapRef and secretRef"
    ),
    # Resources and placing
    "GB": Bad({"resources": {"limits": {"memory": "4GB"}}}, "spec.resources.limits[memory]", "512Mi or 4Gi"),
    "milli-bytes": Bad(
        {"resources": {"limits": {"memory": "512m"}}},
        "spec.resources",
        "a small m thousandths of a byte",
    ),
    "memory in bytes": Bad(
        {"resources": {"limits": {"memory": 512}}}, "spec.resources", "a plain number means bytes"
    ),
    "half a CPU": Bad(
        {"resources": {"limits": {"cpu": 0.5}}}, "spec.resources.limits.cpu", "must be of type integer,string"
    ),
    "gpu": Bad({"resources": {"limits": {"gpu": 1}}}, "spec.resources.limits", "such as nvidia.com/gpu"),
    "negative cpu": Bad(
        {"resources": {"requests": {"cpu": -1}}}, "spec.resources.requests[cpu]", "write an amount"
    ),
    "request over limit": Bad(
        {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "500m"}}},
        "spec.resources",
        "raise the limit or lower the request",
    ),
    "toleration of all": Bad(
        {"tolerations": [{"effect": "NoSchedule"}]},
        "spec.tolerations[0]",
        "must say so with operator: Exists",
    ),
    "toleration with a value too many": Bad(
        {"tolerations": [{"key": "gpu", "operator": "Exists", "value": "a"}]},
        "spec.tolerations[0]",
        "remove value, or use operator Equal",
    ),
    "service account": Bad({"serviceAccountName": "My_SA"}, "spec.serviceAccountName", "lower-case letters"),
    # Workspace
    "workspace of no size": Bad({"workspace": {}}, "spec.workspace", "workspace needs a size, such as 10Gi"),
    "size in GB": Bad({"workspace": {"size": "10GB"}}, "spec.workspace.size", "GB and MB are not understood"),
    "size in thousandths": Bad({"workspace": {"size": "10m"}}, "spec.workspace.size", "at least 1Mi"),
    "claim with a size": Bad(
        {"workspace": {"size": "1Gi", "claimName": "old"}}, "spec.workspace", "remove size, storageClassName"
    ),
    "reclaim": Bad({"workspace": {"size": "1Gi", "reclaim": "Keep"}}, "spec.workspace.reclaim", '"Retain"'),
    # Ports and processes
    "low port": Bad({"ports": [{"port": 80}]}, "spec.ports[0].port", "choose a port from 1024 to 65535"),
    "high port": Bad({"ports": [{"port": 70000}]}, "spec.ports[0].port", "choose a port from 1024 to 65535"),
    "control port": Bad({"ports": [{"port": 3000}]}, "spec.ports[0].port", "port 3000 is taken by Sandpod"),
    "port as text": Bad({"ports": [{"port": "8080"}]}, "spec.ports[0].port", "must be of type integer"),
    "port twice": Bad({"ports": [{"port": 8080}, {"port": 8080}]}, "spec.ports[1]", "Duplicate value"),
    "port name twice": Bad(
        {"ports": [{"port": 8080, "name": "web"}, {"port": 8081, "name": "web"}]},
        "spec.ports",
        "each port needs a name of its own",
    ),
    "port name": Bad(
        {"ports": [{"port": 8080, "name": "My Web"}]}, "spec.ports[0].name", "such as dev-server"
    ),
    "access": Bad(
        {"ports": [{"port": 8080, "access": "Public"}]}, "spec.ports[0].access", '"Token", "Private"'
    ),
    "token version": Bad(
        {"ports": [{"port": 8080, "tokenVersion": 0}]}, "spec.ports[0].tokenVersion", "a whole number from 1"
    ),
    "process without a name": Bad(
        {"processes": [{"command": "make"}]}, "spec.processes[0].name", "Required value"
    ),
    "process twice": Bad(
        {"processes": [{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]},
        "spec.processes[1]",
        "Duplicate value",
    ),
    "command as a list": Bad(
        {"processes": [{"name": "a", "command": ["make", "run"]}]},
        "spec.processes[0].command",
        "must be of type string",
    ),
    "empty command": Bad(
        {"processes": [{"name": "a", "command": " "}]}, "spec.processes[0].command", "such as npm run dev"
    ),
    "relative directory": Bad(
        {"processes": [{"name": "a", "command": "x", "cwd": "app"}]},
        "spec.processes[0].cwd",
        "such as /workspace/app",
    ),
    "empty setup": Bad({"setup": [""]}, "spec.setup[0]", "write the shell command to run"),
    # Network
    "host name": Bad(
        allowing(cidr="packages.example.com"), "spec.network.allow[0].cidr", "host names are not possible"
    ),
    "bare address": Bad(allowing(cidr="203.0.113.7"), "spec.network.allow[0].cidr", "as 203.0.113.7/32"),
    "loose address": Bad(
        allowing(cidr="203.0.113.7/24"), "spec.network.allow[0].cidr", "write the first address of the range"
    ),
    "port range": Bad(
        allowing(ports=[{"port": 90, "endPort": 80}]), "spec.network.allow[0].ports[0]", "swap them"
    ),
    "port zero": Bad(allowing(ports=[{"port": 0}]), "spec.network.allow[0].ports[0].port", "from 1 to 65535"),
    "allow without Restricted": Bad(
        {"network": {"allow": [{"cidr": "203.0.113.0/24"}]}},
        "spec.network.allow",
        "works with network.egress: Restricted only",
    ),
    "egress": Bad({"network": {"egress": "All"}}, "spec.network.egress", '"None", "Internet", "Restricted"'),
    # Templates, pools and pods
    "two origins": Bad(
        {"templateRef": {"name": "a"}, "poolRef": {"name": "b"}},
        "spec",
        "set templateRef or poolRef, not both",
    ),
    "name of a template": Bad({"templateRef": {"name": "My Template"}}, "spec.templateRef.name", "my-object"),
    "our labels": Bad(
        {"podTemplate": {"metadata": {"labels": {"app.kubernetes.io/name": "mine"}}}},
        "spec.podTemplate.metadata.labels",
        "choose other keys",
    ),
    "labels of our own group": Bad(
        {"podTemplate": {"metadata": {"labels": {"team": "red", "sandpod.dev/protected": "true"}}}},
        "spec.podTemplate.metadata.labels",
        "choose other keys",
    ),
    "our annotations": Bad(
        {"podTemplate": {"metadata": {"annotations": {"a": "b", "sandpod.dev/pod-hash": "mine"}}}},
        "spec.podTemplate.metadata.annotations",
        "Sandpod sets all annotations of sandpod.dev/ itself; choose other keys",
    ),
    "our annotations in a template": Bad(
        {"podTemplate": {"metadata": {"annotations": {"sandpod.dev/template": "{}"}}}},
        "spec.podTemplate.metadata.annotations",
        "Sandpod sets all annotations of sandpod.dev/ itself; choose other keys",
        "SandboxTemplate",
    ),
    "a template's one claim": Bad(
        {"workspace": {"claimName": "shared"}},
        "spec.workspace.claimName",
        "each gets its own",
        "SandboxTemplate",
    ),
    "a template's root": Bad({"user": "root"}, "spec.user", "isolation: Strict only", "SandboxTemplate"),
    "a template of a template": Bad(
        {"templateRef": {"name": "a"}}, "spec.templateRef", "unknown field", "SandboxTemplate"
    ),
    "a pool of nothing": Bad({"replicas": 2}, "spec.templateRef", "Required value", "SandboxPool"),
    "a negative pool": Bad(
        {"replicas": -1, "templateRef": {"name": "a"}}, "spec.replicas", "from 0 to 1000", "SandboxPool"
    ),
    "a pool that waits for days": Bad(
        {"minReadyAge": "2d", "templateRef": {"name": "a"}},
        "spec.minReadyAge",
        "from 0s to 24h",
        "SandboxPool",
    ),
    # What the platform team allows
    "fewer than no sandboxes": Bad({"maxSandboxes": -1}, "spec.maxSandboxes", "from 0 to 100000", POLICY),
    "a resource of no name": Bad(
        {"maxResources": {"cores": 2}}, "spec.maxResources", "the resources are cpu, memory", POLICY
    ),
    "a workspace in GB": Bad(
        {"maxWorkspaceSize": "10GB"}, "spec.maxWorkspaceSize", "write a size of at least 1Mi", POLICY
    ),
    "a pattern with a scheme": Bad(
        {"allowedImages": ["https://registry.example.com/*"]},
        "spec.allowedImages[0]",
        "without spaces and without https://",
        POLICY,
    ),
    "no image at all": Bad({"allowedImages": []}, "spec.allowedImages", "at least 1 items", POLICY),
    "asleep at once": Bad({"maxSleepAfter": 0}, "spec.maxSleepAfter", "leave it out for no limit", POLICY),
    "an unknown egress": Bad(
        {"allowedEgress": ["Some"]}, "spec.allowedEgress[0]", "supported values", POLICY
    ),
    "a range beyond its prefix": Bad(
        {"allowedDestinations": ["10.1.0.0/8"]},
        "spec.allowedDestinations[0]",
        "write the first address of the range",
        POLICY,
    ),
    "a selector without values": Bad(
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In"}]}},
        "spec.namespaceSelector.matchExpressions[0]",
        "In and NotIn need values",
        POLICY,
    ),
    "a selector with too many values": Bad(
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists", "values": ["a"]}]}},
        "spec.namespaceSelector.matchExpressions[0]",
        "Exists and DoesNotExist have none",
        POLICY,
    ),
    # Misspelt
    "misspelt field": Bad({"sleepafter": "10m"}, "spec.sleepafter", "unknown field"),
    "misplaced field": Bad(
        {"podTemplate": {"containers": []}}, "spec.podTemplate.containers", "unknown field"
    ),
}

GOOD: dict[str, Json] = {
    "nothing": {},
    "seconds": {"sleepAfter": 45},
    "quoted seconds": {"sleepAfter": "600"},
    "minutes": {"sleepAfter": "10m"},
    "parts": {"sleepAfter": "1h30m5.5s"},
    "milliseconds": {"sleepAfter": "1500ms"},
    "never sleeping": {"sleepAfter": "1s", "keepAlive": True},
    "digest": {"image": "localhost:5000/team/tools:v1.2@sha256:" + "0a" * 32},
    "plain image": {"image": "busybox"},
    "root": {"user": "root", "isolation": "Strict"},
    "root from a template": {"user": "root", "templateRef": {"name": "strict"}},
    "allow from a template": {"network": {"allow": [{"cidr": "::/0"}]}, "poolRef": {"name": "walled"}},
    "reclaim from a template": {"workspace": {"reclaim": "Retain"}, "templateRef": {"name": "big"}},
    "claim": {"workspace": {"claimName": "old-files"}},
    "amounts": {"resources": {"limits": {"cpu": "1.5", "memory": "1.5Gi", "nvidia.com/gpu": 1}}},
    "pod": {
        "podTemplate": {
            "spec": {"priorityClassName": "low", "containers": [{"name": "sandbox", "tty": True}]}
        }
    },
    "labels and annotations": {
        "podTemplate": {
            "metadata": {
                "labels": {"team": "red"},
                "annotations": {"example.com/a": "b", "notsandpod.dev/a": ""},
            }
        }
    },
    "many ports": {"ports": [{"port": 4000 + i, "name": f"p{i}", "access": "Private"} for i in range(32)]},
}

BEFORE: Json = {
    # No node takes it, so that nothing runs.
    "nodeSelector": {"nowhere": "true"},
    "workspace": {"size": "2Gi", "storageClassName": "standard"},
    "ports": [{"port": 8080, "tokenVersion": 2}],
}
CHANGES: dict[str, Bad] = {
    "a smaller volume": Bad({"workspace": {"size": "1Gi"}}, "spec.workspace.size", "can grow but not shrink"),
    "another class": Bad(
        {"workspace": {"storageClassName": "fast"}}, "spec.workspace.storageClassName", "cannot be changed"
    ),
    "no class": Bad(
        {"workspace": {"storageClassName": None}}, "spec.workspace.storageClassName", "added or removed later"
    ),
    "a claim instead": Bad(
        {"workspace": {"size": None, "storageClassName": None, "claimName": "old"}},
        "spec.workspace.claimName",
        "create a new sandbox",
    ),
    "no workspace": Bad(
        {"workspace": None}, "spec", "its files would be lost; keep it, or delete the sandbox"
    ),
    "an old URL": Bad(
        {"ports": [{"port": 8080, "tokenVersion": 1}]}, "spec.ports[0]", "bring revoked URLs back to life"
    ),
    "an old URL, silently": Bad(
        {"ports": [{"port": 8080}]}, "spec.ports[0]", "tokenVersion can only be raised"
    ),
}
