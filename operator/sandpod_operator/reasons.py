"""Every reason that a condition can have, and the sentence that goes with it: what is the matter, and what
to do. docs/operator.md has the same table for people.
"""

from enum import StrEnum
from typing import Final

from sandpod_crds.names import REASON_NOT_IMPLEMENTED


class Reason(StrEnum):
    # Ready
    RUNTIME_ANSWERS = "RuntimeAnswers"
    STARTING = "Starting"
    STARTING_SLOWLY = "StartingSlowly"
    REPLACED = "Replaced"
    UNSCHEDULABLE = "Unschedulable"
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
    EARLIER_POD = "EarlierPod"
    POD_DELETED = "PodDeleted"
    EVICTED = "Evicted"
    OOM_KILLED = "OOMKilled"
    CRASHED = "Crashed"
    RUNTIME_EXITED = "RuntimeExited"
    POD_FAILED = "PodFailed"
    NODE_NOT_RESPONDING = "NodeNotResponding"
    # The others
    NOT_IMPLEMENTED = REASON_NOT_IMPLEMENTED
    ALL_FIELDS = "AllFields"
    OVERRIDDEN = "Overridden"
    RESTART_PENDING = "RestartPending"
    SCRATCH_SPACE = "ScratchSpace"
    NO_PORTS = "NoPorts"
    STANDARD = "Standard"
    INCOMPLETE = "Incomplete"
    # Events only
    STARTED = "Started"


_AGAIN = "It is started again; after repeated failures status.nextStartAt says when."

SENTENCES: Final[dict[Reason, str]] = {
    Reason.RUNTIME_ANSWERS: "The runtime answers in the pod {pod}.",
    Reason.STARTING: "The pod {pod} is starting.",
    Reason.STARTING_SLOWLY: "The pod {pod} has been starting for over a minute: a large image, or a "
    "volume that cannot be mounted. Look at the events of kubectl describe pod {pod}.",
    Reason.REPLACED: "The spec was changed before the pod {pod} was ready; a new pod takes its place.",
    Reason.UNSCHEDULABLE: "No node takes the pod {pod}: {detail} Lower spec.resources, loosen "
    "nodeSelector, or add a node; the pod is scheduled as soon as one fits.",
    Reason.SCHEDULING_GATED: "The pod {pod} has scheduling gates: {detail} It starts when they are removed.",
    Reason.IMAGE_MISSING: "The image cannot be pulled: {detail} Correct spec.image, or give the "
    "namespace a pull secret; the node keeps trying, and a changed spec.image is used at once.",
    Reason.CONFIG_MISSING: "The container lacks something it refers to: {detail} Create the Secret or "
    "ConfigMap with that key, or correct spec.env and spec.envFrom; the node keeps trying.",
    Reason.CONTAINER_NOT_CREATED: "The node cannot create the container: {detail} It keeps trying; "
    "look at the events of kubectl describe pod {pod}.",
    Reason.CRASHED_AT_START: f"The sandbox ended before it answered: {{detail}} Correct what it says "
    f"in the spec or the image. {_AGAIN}",
    Reason.START_FAILED: f"The sandbox could not start: {{detail}} Correct the spec or the image. {_AGAIN}",
    Reason.RUNTIME_NOT_ANSWERING: f"The runtime did not answer within {{word}} of the container's "
    f"start. If its node is overloaded, give it more CPU; if a NetworkPolicy keeps the operator out, "
    f"allow port 3000 from it. {_AGAIN}",
    Reason.BIND_REFUSED: f"The runtime in the pod {{pod}} does not accept this operator: {{detail}} {_AGAIN}",
    Reason.INVALID_POD: "The API server does not accept the pod: {detail} Correct the spec; a change "
    "is tried at once.",
    Reason.INVALID_POD_TEMPLATE: "The podTemplate does not make a valid pod: {detail} Correct "
    "spec.podTemplate; a change is tried at once.",
    Reason.QUOTA_EXCEEDED: "The namespace's quota is used up: {detail} Delete or shrink something, or "
    "raise the quota; it is tried again at status.nextStartAt.",
    Reason.POD_SECURITY: "The namespace's Pod Security level does not allow the pod: {detail} Remove "
    "what it names from the spec, or ask for another level; it is tried again at status.nextStartAt.",
    Reason.FORBIDDEN: "The API server does not allow the pod: {detail} It is tried again at "
    "status.nextStartAt.",
    Reason.NAMESPACE_TERMINATING: "The namespace is being deleted, and the sandbox with it.",
    Reason.NAME_TAKEN: "The pod {pod} is there already and is not this sandbox's: {detail} Delete that "
    "pod, or give the sandbox another name.",
    Reason.EARLIER_POD: "The pod of an earlier sandbox of this name is going away.",
    Reason.POD_DELETED: f"The pod was deleted: {{detail}} {_AGAIN}",
    Reason.EVICTED: f"The node evicted the pod: {{detail}} {_AGAIN}",
    Reason.OOM_KILLED: f"Out of memory: {{detail}} Raise spec.resources.limits.memory. {_AGAIN}",
    Reason.CRASHED: f"The sandbox died: {{detail}} {_AGAIN}",
    Reason.RUNTIME_EXITED: f"The runtime has ended: {{detail}} {_AGAIN}",
    Reason.POD_FAILED: f"The pod failed: {{detail}} {_AGAIN}",
    Reason.NODE_NOT_RESPONDING: "The node {word} does not respond. The sandbox goes on when the node "
    "is back, and starts on another one when Kubernetes gives the node up.",
    Reason.ALL_FIELDS: "Every field that is set has an effect.",
    Reason.SCRATCH_SPACE: "There is no workspace: files are lost when the pod is replaced.",
    Reason.NO_PORTS: "No port is to be exposed.",
    Reason.STANDARD: "Commands run as an ordinary user without privileges, and under Pod Security's "
    "restricted level.",
    Reason.INCOMPLETE: "The pod has a user namespace of its own. Commands are not yet kept apart from "
    "the runtime in a PID namespace of their own: they can see it.",
}


def sentence(reason: Reason, *, pod: str, detail: str = "") -> str:
    # Details are others' words and end as they like; ours go on behind them as a sentence of their own.
    ended = detail if detail.endswith((".", "!", "?")) else f"{detail}."
    return SENTENCES[reason].format(pod=pod, detail=ended, word=detail)
