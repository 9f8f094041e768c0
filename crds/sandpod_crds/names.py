"""Every word that two rooms must spell alike: API groups, kinds, labels, annotations, headers, ports, phases
and conditions. Pure constants, and the function that puts the labels together.
"""

from enum import StrEnum
from typing import Final

GROUP: Final = "sandpod.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

# The aggregated API that the gateway serves. A group of its own: the API server routes a whole group-version
# either to CRDs or to an aggregated server, never to both.
RUN_GROUP: Final = f"run.{GROUP}"
RUN_API_VERSION: Final = f"{RUN_GROUP}/{VERSION}"
RUN_API_SERVICE: Final = f"{VERSION}.{RUN_GROUP}"

SANDBOX_KIND: Final = "Sandbox"
TEMPLATE_KIND: Final = "SandboxTemplate"
POOL_KIND: Final = "SandboxPool"
POLICY_KIND: Final = "SandboxPolicy"
SANDBOXES: Final = "sandboxes"
TEMPLATES: Final = "sandboxtemplates"
POOLS: Final = "sandboxpools"
POLICIES: Final = "sandboxpolicies"

# One field manager for all that we write by server-side apply: with two, fields that one stops writing would
# stay.
FIELD_MANAGER: Final = "sandpod"

# Objects
SYSTEM_NAMESPACE: Final = "sandpod-system"
KEY_SECRET: Final = "sandpod-key"  # noqa: S105 - a name, not a secret
KEY_SECRET_ENTRY: Final = "key"  # noqa: S105 - a name, not a secret
TLS_SECRET: Final = "sandpod-gateway-tls"  # noqa: S105 - a name, not a secret
OPERATOR: Final = "sandpod-operator"
GATEWAY: Final = "sandpod-gateway"

# The pod
CONTROL_PORT: Final = 3000
CONTROL_PORT_NAME: Final = "control"
# Of the runtime, for the kubelet: no credential, no activity.
READY_PATH: Final = "/readyz"
SANDBOX_CONTAINER: Final = "sandbox"
RUNTIME_CONTAINER: Final = "sandpod-runtime"
RUNTIME_DIRECTORY: Final = "/opt/sandpod"
RUNTIME_COMMAND: Final = f"{RUNTIME_DIRECTORY}/bin/sandpod-runtime"
WORKSPACE_DIRECTORY: Final = "/workspace"
# Sessions and what else the runtime keeps across a sleep. In the workspace, so that one volume holds all.
STATE_DIRECTORY: Final = f"{WORKSPACE_DIRECTORY}/.sandpod"

# Environment: names with our prefix never reach the user's commands.
ENV_PREFIX: Final = "SANDPOD_"
BIND_SHA256_ENV: Final = "SANDPOD_BIND_SHA256"
SETTINGS_ENV: Final = "SANDPOD_SETTINGS"

# The runtime's control API
BIND_TOKEN_HEADER: Final = "X-Sandpod-Bind-Token"  # noqa: S105 - a name, not a secret
CREDENTIAL_HEADER: Final = "X-Sandpod-Credential"
# Where a bound runtime proves that it holds the credential, to whoever has not sent it.
PROVE_PATH: Final = "/api/prove"

# Labels and annotations
LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_VERSION: Final = "app.kubernetes.io/version"
LABEL_SANDBOX_UID: Final = f"{GROUP}/sandbox-uid"
# On an Ingress, which is not where its sandbox is.
LABEL_SANDBOX_NAMESPACE: Final = f"{GROUP}/sandbox-namespace"
LABEL_POOL_UID: Final = f"{GROUP}/pool-uid"
# What a NetworkPolicy selects pods by: the UID of the sandbox or the pool that the policy is of.
LABEL_NETWORK: Final = f"{GROUP}/network"
# On pods that a node drain has to wait for.
LABEL_PROTECTED: Final = f"{GROUP}/protected"
APP_NAME: Final = "sandpod"
COMPONENT_SANDBOX: Final = "sandbox"
COMPONENT_OPERATOR: Final = "operator"
COMPONENT_GATEWAY: Final = "gateway"
COMPONENT_PREVIEW: Final = "preview"

ANNOTATION_SPEC_HASH: Final = f"{GROUP}/spec-hash"
# On a pod: what its sandbox has from the template beyond what the pod itself shows.
ANNOTATION_TEMPLATE: Final = f"{GROUP}/template"
ANNOTATION_HASH: Final = f"{GROUP}/hash"
# On a pod: the part of its bind token's derivation that no other pod of its name has.
ANNOTATION_BIND_NONCE: Final = f"{GROUP}/bind-nonce"
# On a Sandbox: any value that it has not had before wakes it.
ANNOTATION_WAKE: Final = f"{GROUP}/wake-requested-at"

# On a Sandbox: the highest tokenVersion of a port that is exposed no more. What is exposed after it begins
# above, or the same port would get its old URL back.
ANNOTATION_TOKEN_VERSION: Final = f"{GROUP}/retired-token-version"
# On a Sandbox: login links to its private ports that have been used, until they would have expired anyway.
ANNOTATION_SPENT_LOGINS: Final = f"{GROUP}/spent-logins"

# What the operator watches pods and other children by, on the server's side.
CHILD_LABELS: Final = {LABEL_MANAGED_BY: APP_NAME, LABEL_COMPONENT: COMPONENT_SANDBOX}
CHILD_SELECTOR: Final = ",".join(f"{name}={value}" for name, value in CHILD_LABELS.items())
# And the Ingresses of exposed ports.
PREVIEW_SELECTOR: Final = f"{LABEL_MANAGED_BY}={APP_NAME},{LABEL_COMPONENT}={COMPONENT_PREVIEW}"


class Phase(StrEnum):
    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    DRAINING = "Draining"
    ASLEEP = "Asleep"
    FAILED = "Failed"


class ConditionType(StrEnum):
    READY = "Ready"
    WORKSPACE_READY = "WorkspaceReady"
    PREVIEW_READY = "PreviewReady"
    ISOLATED = "Isolated"
    SPEC_HONORED = "SpecHonored"


# The reason of Ready=False: nobody may work in it, but read what its setup writes.
REASON_SETTING_UP: Final = "SettingUp"
# The reason of SpecHonored=False: fields are set that have no effect in this version.
REASON_NOT_IMPLEMENTED: Final = "NotImplemented"


def child_labels(*, sandbox_name: str, sandbox_uid: str, version: str) -> dict[str, str]:
    """The labels of everything that belongs to one sandbox; set last, so that a user's labels cannot replace
    them.
    """
    return {
        LABEL_NAME: APP_NAME,
        LABEL_COMPONENT: COMPONENT_SANDBOX,
        LABEL_MANAGED_BY: APP_NAME,
        LABEL_INSTANCE: sandbox_name,
        LABEL_VERSION: version,
        LABEL_SANDBOX_UID: sandbox_uid,
    }
