"""Every reason that a condition can have, and the sentence that goes with it: what is the matter, and what
to do. docs/operator.md has the same table for people.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from sandpod_crds.models import Sandbox
from sandpod_crds.names import REASON_NOT_IMPLEMENTED, REASON_SETTING_UP


class Reason(StrEnum):
    # Ready
    RUNTIME_ANSWERS = "RuntimeAnswers"
    STARTING = "Starting"
    STARTING_SLOWLY = "StartingSlowly"
    STARTING_COLD = "StartingCold"
    REPLACED = "Replaced"
    UNSCHEDULABLE = "Unschedulable"
    VOLUME_ELSEWHERE = "VolumeElsewhere"
    SCHEDULING_GATED = "SchedulingGated"
    IMAGE_MISSING = "ImageMissing"
    CONFIG_MISSING = "ConfigMissing"
    CONTAINER_NOT_CREATED = "ContainerNotCreated"
    CRASHED_AT_START = "CrashedAtStart"
    START_FAILED = "StartFailed"
    RUNTIME_NOT_ANSWERING = "RuntimeNotAnswering"
    BIND_REFUSED = "BindRefused"
    INVALID_POD = "InvalidPod"
    INVALID_POD_TEMPLATE = "InvalidPodTemplate"
    QUOTA_EXCEEDED = "QuotaExceeded"
    POD_SECURITY = "PodSecurity"
    FORBIDDEN = "Forbidden"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    NAME_TAKEN = "NameTaken"
    POLICY_TAKEN = "PolicyTaken"
    EARLIER_POD = "EarlierPod"
    UNDONE = "Undone"
    POD_DELETED = "PodDeleted"
    NODE_LOST = "NodeLost"
    EVICTED = "Evicted"
    OOM_KILLED = "OOMKilled"
    CRASHED = "Crashed"
    RUNTIME_EXITED = "RuntimeExited"
    POD_FAILED = "PodFailed"
    NODE_NOT_RESPONDING = "NodeNotResponding"
    SETTING_UP = REASON_SETTING_UP
    TEMPLATE_MISSING = "TemplateMissing"
    INVALID_TEMPLATE = "InvalidTemplate"
    POLICY_EXCEEDED = "PolicyExceeded"
    # Ready, while it sleeps, goes to sleep or wakes
    IDLE = "Idle"
    PAUSED = "Paused"
    REQUESTED = "Requested"
    NODE = "Node"
    PAUSING = "Pausing"
    NODE_DRAINING = "NodeDraining"
    WAKING = "Waking"
    # WorkspaceReady
    SCRATCH_SPACE = "ScratchSpace"
    SCRATCH_SPACE_KEPT = "ScratchSpaceKept"
    WORKSPACE_BOUND = "Bound"
    GROWING = "Growing"
    PROVISIONING = "Provisioning"
    CLAIM_PENDING = "ClaimPending"
    CLAIM_LOST = "ClaimLost"
    CLAIM_DELETED = "ClaimDeleted"
    CLAIM_MISSING = "ClaimMissing"
    CLAIM_NOT_FOUND = "ClaimNotFound"
    WORKSPACE_AT_NEXT_START = "AtNextStart"
    EARLIER_CLAIM = "EarlierClaim"
    CLAIM_TAKEN = "ClaimTaken"
    CLAIM_IN_USE = "ClaimInUse"
    INVALID_CLAIM = "InvalidClaim"
    CANNOT_GROW = "CannotGrow"
    DISK_FULL = "DiskFull"
    UNWRITABLE = "Unwritable"
    SETUP_FAILED = "SetupFailed"
    # The others
    NOT_IMPLEMENTED = REASON_NOT_IMPLEMENTED
    ALL_FIELDS = "AllFields"
    OVERRIDDEN = "Overridden"
    RESTART_PENDING = "RestartPending"
    NO_PORTS = "NoPorts"
    EXPOSED = "Exposed"
    EXPOSING = "Exposing"
    NO_PREVIEWS = "NoPreviews"
    INGRESS_TAKEN = "IngressTaken"
    INGRESS_REFUSED = "IngressRefused"
    STANDARD = "Standard"
    STRICT = "Strict"
    INCOMPLETE = "Incomplete"
    UNCHECKED = "Unchecked"
    EARLIER_WALL = "EarlierWall"
    NOT_ENFORCED = "NotEnforced"
    # Events only
    STARTED = "Started"
    EXPIRED = "Expired"
    SURPLUS_POD = "SurplusPod"
    POOL_EMPTY = "PoolEmpty"
    POOL_MISMATCH = "PoolMismatch"
    SECRETS_WITHHELD = "SecretsWithheld"
    SECRETS_UNUSABLE = "SecretsUnusable"
    CLAIM_REFUSED = "ClaimRefused"


# Why a sandbox of a pool starts cold. The sentences are in pool/claim.py, as they need the pool's name.
COLD: Final = (
    Reason.POOL_EMPTY,
    Reason.POOL_MISMATCH,
    Reason.SECRETS_WITHHELD,
    Reason.SECRETS_UNUSABLE,
    Reason.CLAIM_REFUSED,
)


class Names(NamedTuple):
    """Of what a sentence is about: the commands in it are to be copied as they stand."""

    namespace: str = ""
    sandbox: str = ""
    # That it has; without one, the pod that would be made.
    pod: str = ""


_AGAIN = "It is started again; after repeated failures status.nextStartAt says when."

SENTENCES: Final[dict[Reason, str]] = {
    Reason.RUNTIME_ANSWERS: "The runtime answers in the pod {pod}.",
    Reason.STARTED: "The runtime answers in the pod {pod}.",
    Reason.STARTING: "The pod {pod} is starting.",
    Reason.STARTING_COLD: "The pod {pod} is starting. {detail}",
    Reason.STARTING_SLOWLY: "The pod {pod} has been starting for over a minute: a large image, or a "
    "volume that cannot be mounted. Look at the events of kubectl describe pod {pod} -n {namespace}.",
    Reason.REPLACED: "The spec was changed before the pod {pod} was ready; a new pod takes its place.",
    Reason.UNSCHEDULABLE: "No node takes the pod {pod}: {detail} Lower spec.resources, loosen "
    "spec.nodeSelector, or add a node; the pod is scheduled as soon as one fits.",
    Reason.VOLUME_ELSEWHERE: "The nodes that can have the workspace's volume do not take the pod {pod}, and "
    "no other can have it: {detail} Let these nodes take pods (kubectl uncordon), or make room on them; "
    "kubectl describe pv names them as Node Affinity. The pod is scheduled as soon as one takes it.",
    Reason.SCHEDULING_GATED: "The pod {pod} has scheduling gates: {detail} It starts when whoever "
    "has set them, spec.podTemplate or a webhook, removes them.",
    Reason.IMAGE_MISSING: "The image cannot be pulled: {detail} Correct spec.image, or give the "
    "namespace a pull secret; the node keeps trying, and a changed spec.image is used at once.",
    Reason.CONFIG_MISSING: "The container lacks something it refers to: {detail} Create the Secret or "
    "ConfigMap with that key, or correct spec.env and spec.envFrom; the node keeps trying.",
    Reason.CONTAINER_NOT_CREATED: "The node cannot create the container: {detail} It keeps trying; "
    "look at the events of kubectl describe pod {pod} -n {namespace}.",
    Reason.CRASHED_AT_START: f"The sandbox ended before it answered: {{detail}} Correct what it says "
    f"in the spec or the image. {_AGAIN}",
    Reason.START_FAILED: f"The sandbox could not start: {{detail}} Correct the spec or the image. {_AGAIN}",
    Reason.RUNTIME_NOT_ANSWERING: f"The runtime did not answer within {{word}} of the container's "
    f"start. If its node is overloaded, give it more CPU; if a NetworkPolicy keeps the operator out, "
    f"allow port 3000 from it. {_AGAIN}",
    Reason.BIND_REFUSED: f"The runtime in the pod {{pod}} does not accept this operator: {{detail}} "
    f"Another pod takes its place. {_AGAIN}",
    Reason.INVALID_POD: "The API server does not accept the pod: {detail} Correct the spec; a change "
    "is tried at once.",
    Reason.INVALID_POD_TEMPLATE: "The podTemplate does not make a valid pod: {detail} Correct "
    "spec.podTemplate; a change is tried at once.",
    Reason.QUOTA_EXCEEDED: "The namespace's quota is used up: {detail} Delete or shrink something, or "
    "raise the quota; it is tried again at status.nextStartAt.",
    Reason.POD_SECURITY: "The namespace's Pod Security level does not allow the pod: {detail} Remove "
    "what it names from the spec, or ask for another level; it is tried again at status.nextStartAt.",
    Reason.FORBIDDEN: "The API server does not allow the pod: {detail} Change what it names, or ask "
    "whoever runs the cluster; it is tried again at status.nextStartAt.",
    Reason.NAMESPACE_TERMINATING: "The namespace is being deleted, and the sandbox with it. Create "
    "it in another one.",
    Reason.NAME_TAKEN: "The pod {sandbox} is there already and is not this sandbox's: {detail} Delete it "
    "(kubectl delete pod {sandbox} -n {namespace}), or give the sandbox another name.",
    Reason.POLICY_TAKEN: "The NetworkPolicy {sandbox}-sandbox is there already and is not this sandbox's: "
    "{detail} Delete it (kubectl delete networkpolicy {sandbox}-sandbox -n {namespace}), or give the sandbox "
    "another name.",
    Reason.EARLIER_POD: "The pod of an earlier sandbox of this name is going away. This one starts as "
    "soon as it is gone.",
    Reason.UNDONE: "Somebody undoes what the operator writes, such as another controller or an admission "
    "webhook: {detail} Find out who, by its metadata.managedFields or the API server's audit log; it is "
    "written again ever more slowly.",
    Reason.POD_DELETED: f"The pod was deleted: {{detail}} {_AGAIN}",
    Reason.NODE_LOST: "The node {word} does not say that the pod {pod} has ended, which might still write to "
    "the workspace: no other may start. It goes on when the node is back. If the node is off for good: "
    "kubectl delete pod {pod} -n {namespace} --grace-period=0 --force; or, for all pods on it: kubectl taint "
    "node {word} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute.",
    Reason.EVICTED: f"The node evicted the pod: {{detail}} Ask for what it needs in spec.resources.requests. "
    f"{_AGAIN}",
    Reason.OOM_KILLED: f"Out of memory: {{detail}} Raise spec.resources.limits.memory. {_AGAIN}",
    Reason.CRASHED: f"The sandbox died: {{detail}} {_AGAIN}",
    Reason.RUNTIME_EXITED: f"The runtime has ended: {{detail}} {_AGAIN}",
    Reason.POD_FAILED: f"The pod failed: {{detail}} {_AGAIN}",
    Reason.NODE_NOT_RESPONDING: "The node {word} does not respond. The sandbox goes on when the node "
    "is back, and starts on another one when Kubernetes gives the node up.",
    Reason.ALL_FIELDS: "Every field that is set has an effect.",
    Reason.SETTING_UP: "The commands of spec.setup run, and nobody can work in the sandbox yet. kubectl "
    "sandbox logs {sandbox} --setup -n {namespace} shows their output.",
    Reason.TEMPLATE_MISSING: "There is no {word} in this namespace. Create it, or correct spec.templateRef "
    "or spec.poolRef; a change is tried at once.",
    Reason.INVALID_TEMPLATE: "The sandbox and its template do not make a sandbox together: {detail} "
    "Correct one of them; a change is tried at once.",
    Reason.POLICY_EXCEEDED: "The platform team's policy does not allow the sandbox: {detail} A change is "
    "tried at once.",
    Reason.IDLE: "It sleeps because nobody worked in it. The next request wakes it.",
    Reason.PAUSED: "It sleeps because spec.paused is set, and requests do not wake it. To go on, set "
    "spec.paused to false: kubectl sandbox resume {sandbox} -n {namespace}.",
    Reason.REQUESTED: "It sleeps because somebody asked for that. The next request wakes it.",
    Reason.NODE: "It sleeps because its node was needed and nobody worked in it. The next request wakes it, "
    "on any node.",
    Reason.PAUSING: "It goes to sleep because spec.paused is set: sessions are saved and programs ended.",
    Reason.NODE_DRAINING: "Its node is being cleared: sessions are saved and programs ended.",
    Reason.WAKING: "Somebody wants the sandbox, which was about to sleep: it starts again.",
    Reason.SCRATCH_SPACE: "There is no workspace: files and sessions are lost when the sandbox sleeps, after "
    "{word} without work, and when its pod is replaced. To keep them, set spec.workspace.size.",
    Reason.SCRATCH_SPACE_KEPT: "There is no workspace. The sandbox does not sleep by itself, but files and "
    "sessions are lost when its pod is replaced. To keep them, set spec.workspace.size.",
    Reason.WORKSPACE_BOUND: "Files in /workspace and sessions are kept by the PersistentVolumeClaim {word}.",
    Reason.GROWING: "The volume is growing: {detail} If it stays so, the next start completes it.",
    Reason.PROVISIONING: "The volume of the PersistentVolumeClaim {word} is being made.",
    Reason.CLAIM_PENDING: "The PersistentVolumeClaim {word} has no volume yet. kubectl describe pvc {word} "
    "-n {namespace} says why; often the storage class is missing or has no room.",
    Reason.CLAIM_LOST: "The volume of the PersistentVolumeClaim {word} is gone, and the files with it. "
    "To begin with an empty one: kubectl delete pvc/{word} pod/{pod} -n {namespace}.",
    Reason.CLAIM_DELETED: "The PersistentVolumeClaim {word} is being deleted, and its files are lost as "
    "soon as no pod uses it, at the latest when the sandbox sleeps. Copy what you need elsewhere before.",
    Reason.CLAIM_MISSING: "There is no PersistentVolumeClaim {word}; the next start makes an empty one.",
    Reason.CLAIM_NOT_FOUND: "There is no PersistentVolumeClaim {word} in this namespace. Create it, or "
    "correct spec.workspace.claimName; the sandbox starts as soon as it is there.",
    Reason.WORKSPACE_AT_NEXT_START: "The pod {word} was made before the workspace was asked for, and its "
    "files and sessions are lost when it ends. The next start has the workspace; to start now: kubectl "
    "delete pod {word} -n {namespace}.",
    Reason.EARLIER_CLAIM: "The PersistentVolumeClaim {word} of an earlier sandbox is going away. This one "
    "starts as soon as it is gone.",
    Reason.CLAIM_TAKEN: "The workspace's PersistentVolumeClaim is there already and is not this sandbox's: "
    "{detail} To use it, name it in spec.workspace.claimName; or delete it, or rename the sandbox.",
    Reason.CLAIM_IN_USE: "The workspace's PersistentVolumeClaim is in use by {word}, and two who write to "
    "one volume destroy it. It is free when that is deleted; a Sandbox with workspace.reclaim: Retain leaves "
    "it behind then.",
    Reason.INVALID_CLAIM: "The API server does not accept the workspace's PersistentVolumeClaim: {detail} "
    "Correct spec.workspace; a change is tried at once.",
    Reason.CANNOT_GROW: "The volume stays as large as it is: {detail} Choose a storage class with "
    "allowVolumeExpansion for a sandbox that is to grow.",
    Reason.DISK_FULL: "The disk of the workspace is full: {detail} Delete files, or raise "
    "spec.workspace.size.",
    Reason.UNWRITABLE: "Nobody can write to /workspace: the volume of the PersistentVolumeClaim {word} is "
    "another user's, or read-only, so that nothing is kept there. Most often its storage class ignores the "
    "pod's fsGroup: use one whose CSI driver does not, or let the volume's directory belong to the sandbox's "
    "user. The next start looks again.",
    Reason.SETUP_FAILED: "The setup failed, and is tried again at the next start: {detail} The sandbox can "
    "be used; kubectl sandbox logs {sandbox} --setup -n {namespace} shows the whole output.",
    Reason.EXPIRED: "Its time has come: {detail} It is deleted.",
    **dict.fromkeys(COLD, "{detail}"),
    Reason.SURPLUS_POD: "The pod {word} is one too many and is removed.",
    Reason.NO_PORTS: "No port is to be exposed.",
    Reason.EXPOSED: "Each port has its URL in status.ports, which answers when a program listens there.",
    Reason.EXPOSING: "The Ingress of a port is going away; another one takes its place.",
    Reason.NO_PREVIEWS: "This installation has no preview URLs (previews.mode is None), so that ports cannot "
    "be exposed. Take them out of spec.ports, or ask whoever runs the cluster.",
    Reason.INGRESS_TAKEN: "The Ingress of a port is there already and is not this sandbox's: {detail} Ask "
    "whoever runs the cluster to delete it; it is tried again by itself.",
    Reason.INGRESS_REFUSED: "The API server does not take the Ingress of a port: {detail} Ask whoever runs "
    "the cluster; it is tried again by itself.",
    Reason.EARLIER_WALL: "The NetworkPolicy {sandbox}-sandbox still stands around the pod of an earlier "
    "sandbox of this name, which is going away. This sandbox's own network is put up as soon as it is gone; "
    "until then it has the one that it started with.",
    Reason.NOT_ENFORCED: "The cluster does not enforce NetworkPolicies: whatever spec.network says, the "
    "sandbox reaches the cluster's own addresses and other sandboxes, and they reach it. Install a network "
    "plugin that enforces them; that is noticed within an hour.",
    Reason.STANDARD: "Commands run as an ordinary user without privileges, and under Pod Security's "
    "restricted level.",
    Reason.STRICT: "Commands run as another user in namespaces of their own, inside the pod's own user "
    "namespace: they can neither see nor touch the runtime.",
    Reason.INCOMPLETE: "Strict isolation could not be had in full: {detail} Choose a node and an image that "
    "allow it, or isolation: Standard.",
    Reason.UNCHECKED: "The runtime isolates commands when it starts, and says here how far it came.",
}


def names_of(sandbox: Sandbox, *, pod: str | None = None) -> Names:
    metadata = sandbox.metadata
    return Names(namespace=metadata.namespace, sandbox=metadata.name, pod=pod or metadata.name)


def sentence(reason: Reason, *, names: Names, detail: str = "") -> str:
    # Details are others' words and end as they like; ours go on behind them as a sentence of their own.
    ended = detail if detail.endswith((".", "!", "?")) else f"{detail}."
    return SENTENCES[reason].format(**names._asdict(), detail=ended, word=detail)
