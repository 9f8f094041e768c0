"""What the operator watches: one row for each kind of object, and which sandboxes an event of it is about."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sandpod_crds import paths
from sandpod_crds.names import (
    API_VERSION,
    CHILD_SELECTOR,
    GROUP,
    LABEL_INSTANCE,
    LABEL_POOL_UID,
    LABEL_SANDBOX_NAMESPACE,
    POLICIES,
    POOLS,
    PREVIEW_SELECTOR,
    SANDBOX_KIND,
    SANDBOXES,
    TEMPLATES,
    VERSION,
)

from .objects import Json, controller, entries, key_of, section
from .observations import Key
from .resources.claim import workspace_name

if TYPE_CHECKING:
    from .store import Cache

Sandboxes = Iterable[Key]


@dataclass(frozen=True, kw_only=True)
class Kind:
    group: str
    version: str
    plural: str
    # Keeps what somebody here reads: with thousands of objects, the rest would be most of the memory.
    slim: Callable[[Json], Json]
    # The sandboxes that have to be looked at when the object changes.
    concerns: "Callable[[Json, Cache], Sandboxes]"
    # What the API server is asked to send; all of them without one.
    selector: str | None = None

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return paths.build(prefix, self.plural, namespace=namespace, name=name)


def slim_object(obj: Json) -> Json:
    """Without managedFields and others' annotations, which nobody here reads."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("managedFields", "annotations")}
    annotations = section(obj["metadata"], "annotations")
    metadata["annotations"] = {k: v for k, v in annotations.items() if k.startswith(f"{GROUP}/")}
    return {"metadata": metadata, "spec": section(obj, "spec"), "status": section(obj, "status")}


def slim_pod(obj: Json) -> Json:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
    spec = {k: v for k, v in section(obj, "spec").items() if k == "nodeName"}
    spec["volumes"] = [v for v in entries(section(obj, "spec"), "volumes") if "persistentVolumeClaim" in v]
    return {"metadata": metadata, "spec": spec, "status": section(obj, "status")}


def slim_namespace(obj: Json) -> Json:
    """What a policy's selector looks at."""
    kept = ("name", "uid", "resourceVersion", "labels")
    return {"metadata": {name: value for name, value in obj["metadata"].items() if name in kept}}


def _itself(sandbox: Json, _: "Cache") -> Sandboxes:
    return (key_of(sandbox),)


def _of_pod(pod: Json, sandboxes: "Cache") -> Sandboxes:
    """Its owner, by whatever name the pod goes, or who it was when it has lost it; and the sandbox whose name
    it has taken.
    """
    key, owner = key_of(pod), controller(pod["metadata"])
    if owner.get("apiVersion") == API_VERSION and owner.get("kind") == SANDBOX_KIND:
        return {key, Key(key.namespace, owner["name"])}
    return (key,) if owner else {key, *_labelled(pod, sandboxes)}


def _labelled(child: Json, _: "Cache") -> Sandboxes:
    name = section(child["metadata"], "labels").get(LABEL_INSTANCE)
    return (Key(key_of(child).namespace, name),) if name else ()


def _of_policy(policy: Json, sandboxes: "Cache") -> Sandboxes:
    """A pool's is about those who may be behind it."""
    yield from _labelled(policy, sandboxes)
    if LABEL_POOL_UID in section(policy["metadata"], "labels"):
        for sandbox in sandboxes.inside(key_of(policy).namespace):
            if section(sandbox, "status").get("pool"):
                yield key_of(sandbox)


def _of_preview(ingress: Json, _: "Cache") -> Sandboxes:
    """In whatever namespace: others who may write Ingresses can cause a look at a sandbox, and no more."""
    labels = section(ingress["metadata"], "labels")
    namespace, name = labels.get(LABEL_SANDBOX_NAMESPACE), labels.get(LABEL_INSTANCE)
    return (Key(namespace, name),) if namespace and name else ()


def _of_claim(claim: Json, sandboxes: "Cache") -> Sandboxes:
    """Also the sandbox that waits because its claim's name is taken, and the one that has it from a pool."""
    key = key_of(claim)
    yield from _labelled(claim, sandboxes)
    yield Key(key.namespace, key.name.removesuffix(workspace_name("")))
    for sandbox in sandboxes.keeping(namespace=key.namespace, claim=key.name):
        yield key_of(sandbox)


def _of_namespace(obj: Json, sandboxes: "Cache") -> Sandboxes:
    """Those that could have to do with a template or pool. Seldom, and cheaper than an index of these."""
    return (key_of(each) for each in sandboxes.inside(key_of(obj).namespace) if _refers(each))


def _all(_: Json, sandboxes: "Cache") -> Sandboxes:
    return sandboxes


def _inside(namespace: Json, sandboxes: "Cache") -> Sandboxes:
    return (key_of(each) for each in sandboxes.inside(namespace["metadata"]["name"]))


def _refers(sandbox: Json) -> bool:
    spec = section(sandbox, "spec")
    return "templateRef" in spec or "poolRef" in spec


SANDBOX: Final = Kind(group=GROUP, version=VERSION, plural=SANDBOXES, slim=slim_object, concerns=_itself)
POD: Final = Kind(
    group="", version="v1", plural="pods", slim=slim_pod, concerns=_of_pod, selector=CHILD_SELECTOR
)
# That a running pod may not be changed says nothing about the next one.
POD_LABELS: Final = f"{POD.plural}/labels"
POD_OWNER: Final = f"{POD.plural}/owner"
OF_A_POD: Final = (POD_LABELS, POD_OWNER)
CLAIM: Final = Kind(
    group="",
    version="v1",
    plural="persistentvolumeclaims",
    slim=slim_object,
    concerns=_of_claim,
    selector=CHILD_SELECTOR,
)
NETWORK_POLICY: Final = Kind(
    group="networking.k8s.io",
    version="v1",
    plural="networkpolicies",
    slim=slim_object,
    concerns=_of_policy,
    selector=CHILD_SELECTOR,
)
INGRESS: Final = Kind(
    group="networking.k8s.io",
    version="v1",
    plural="ingresses",
    slim=slim_object,
    concerns=_of_preview,
    selector=PREVIEW_SELECTOR,
)
TEMPLATE: Final = Kind(
    group=GROUP, version=VERSION, plural=TEMPLATES, slim=slim_object, concerns=_of_namespace
)
POOL: Final = Kind(group=GROUP, version=VERSION, plural=POOLS, slim=slim_object, concerns=_of_namespace)

POLICY: Final = Kind(group=GROUP, version=VERSION, plural=POLICIES, slim=slim_object, concerns=_all)
NAMESPACE: Final = Kind(group="", version="v1", plural="namespaces", slim=slim_namespace, concerns=_inside)

KINDS: Final = (SANDBOX, POD, CLAIM, NETWORK_POLICY, INGRESS, TEMPLATE, POOL, POLICY, NAMESPACE)
