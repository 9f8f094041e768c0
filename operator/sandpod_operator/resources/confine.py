"""What every container of a sandbox's pod is held to, and the ways out of the pod that a podTemplate may not
ask for: a sidecar is as near to the sandbox's user as the sandbox is.
"""

from collections.abc import Iterator
from typing import Any, cast

from ..errors import BadPodTemplate
from ..objects import Json, entries, section

CONTAINER_LISTS = ("containers", "initContainers")
# Of a container's security context, what may come from the podTemplate: it narrows, it never widens.
NARROWING = ("appArmorProfile", "seLinuxOptions", "readOnlyRootFilesystem")


def confine(container: Json, *, root: bool = False) -> Json:
    """The container with our security context. User, group and seccomp profile are the pod's."""
    theirs = section(container, "securityContext")
    narrowed = {name: theirs[name] for name in NARROWING if name in theirs}
    if root:
        # Root of its own user namespace: without the usual capabilities it could not even install a package,
        # and outside the namespace they are worth nothing.
        ours: Json = {"privileged": False}
    else:
        ours = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {**container, "securityContext": {**narrowed, **ours}}


def refuse_ways_out(spec: Json) -> None:
    """Raises BadPodTemplate. These are refused and not just left out: without its volume or port, a container
    would fail later and nobody would know why.
    """
    for sentence in _ways_out(spec):
        raise BadPodTemplate(sentence)


def _ways_out(spec: Json) -> Iterator[str]:
    for volume in entries(spec, "volumes"):
        where = f"podTemplate.spec.volumes[{volume['name']}]"
        if volume.get("hostPath") is not None:
            yield f"{where} is a hostPath: remove it, a sandbox never sees its node's files"
        if any(source.get("serviceAccountToken") is not None for source in _sources(volume)):
            yield f"{where} projects a serviceAccountToken: remove it, a sandbox has no such token"
    for kind in CONTAINER_LISTS:
        for container in entries(spec, kind):
            for port in entries(container, "ports"):
                if port.get("hostPort"):
                    where = f"podTemplate.spec.{kind}[{container['name']}].ports[{port['containerPort']}]"
                    yield f"{where} has a hostPort: remove it, a sandbox takes no port of its node"


def _sources(volume: Json) -> list[Json]:
    # Nothing has checked these yet; what is no projection, the API server refuses.
    projected = volume.get("projected")
    sources: Any = cast("Json", projected).get("sources") if isinstance(projected, dict) else None
    listed = cast("list[Any]", sources) if isinstance(sources, list) else []
    return [cast("Json", source) for source in listed if isinstance(source, dict)]
