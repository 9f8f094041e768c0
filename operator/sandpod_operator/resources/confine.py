"""What every container of a sandbox's pod is held to, and the ways out of the pod that a podTemplate may not
ask for: a sidecar is as near to the sandbox's user as the sandbox is.
"""

from collections.abc import Iterator
from typing import Any, cast

from ..errors import BadPodTemplate
from ..objects import Json, entries, section

CONTAINER_LISTS = ("containers", "initContainers")
# Of a container's security context, what may come from the podTemplate: it narrows, it never widens. With
# some values two of them would, and refuse_ways_out sees to these.
NARROWING = ("appArmorProfile", "seLinuxOptions", "readOnlyRootFilesystem")
# The values that Pod Security's levels know as harmless.
APP_ARMOR_TYPES = ("RuntimeDefault", "Localhost")
SELINUX_TYPES = ("container_t", "container_init_t", "container_kvm_t", "container_engine_t")
# What is mounted from inside of the cluster. Of all other kinds, the node fetches the files over its own
# network, or has them itself.
VOLUMES = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
    "secret",
)  # fmt: skip
# With these the runtime makes the namespaces of its commands' world and becomes their user, who gets none of
# them.
WORLDS = frozenset({"SETGID", "SETPCAP", "SETUID", "SYS_ADMIN", "SYS_CHROOT", "SYS_RESOURCE"})
# And these are for commands that run as root: what container engines give to root. Without them it could not
# even install a package. But not NET_RAW: with packets of its own making it could pass for its neighbours.
ROOTS = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
        "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def confine(container: Json, *, strict: int | None = None) -> Json:
    """The container with our security context. User, group and seccomp profile are the pod's.

    With `strict` it is the one in which the runtime isolates commands, which run as that user.
    """
    theirs = section(container, "securityContext")
    narrowed = {name: theirs[name] for name in NARROWING if name in theirs}
    if strict is not None:
        return {**container, "securityContext": {**strict_context(strict), **narrowed}}
    ours: Json = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {**container, "securityContext": {**narrowed, **ours}}


def strict_context(user: int) -> Json:
    """What it takes to make a world for commands. Only for a container in a user namespace of its own,
    outside of which none of this is worth anything.
    """
    capabilities = WORLDS if user != 0 else WORLDS | ROOTS
    return {
        "privileged": False,
        "runAsNonRoot": False,
        "runAsUser": 0,
        "runAsGroup": user,
        "capabilities": {"drop": ["ALL"], "add": sorted(capabilities)},
        # Container engines' own profile forbids every mount.
        "appArmorProfile": {"type": "Unconfined"},
    }


def runtime_arguments(user: int) -> list[str]:
    """What tells the runtime to isolate commands, and whom they run as."""
    return ["--strict", str(user)]


def refuse_ways_out(spec: Json) -> None:
    """Raises BadPodTemplate. These are refused and not just left out: without its volume or port, a container
    would fail later and nobody would know why.
    """
    for sentence in _ways_out(spec):
        raise BadPodTemplate(f"podTemplate.spec.{sentence}")


def _ways_out(spec: Json) -> Iterator[str]:
    if spec.get("nodeName"):
        yield "nodeName passes over the scheduler, and what it looks at: remove it, use nodeSelector"
    for volume in entries(spec, "volumes"):
        where = f"volumes[{volume['name']}]"
        kinds = [kind for kind, source in volume.items() if kind != "name" and source is not None]
        yield from (f"{where} is a {kind}: {_instead(kind)}" for kind in kinds if kind not in VOLUMES)
        if any(source.get("serviceAccountToken") is not None for source in _sources(volume)):
            yield f"{where} projects a serviceAccountToken: remove it, a sandbox has no such token"
    yield from _profiles(spec)
    for kind in CONTAINER_LISTS:
        for container in entries(spec, kind):
            found = (*_host_ports(container), *_profiles(container), *_errands(container))
            yield from (f"{kind}[{container['name']}].{sentence}" for sentence in found)


def _host_ports(container: Json) -> Iterator[str]:
    for port in entries(container, "ports"):
        if port.get("hostPort"):
            where = f"ports[{port['containerPort']}]"
            yield f"{where} has a hostPort: remove it, a sandbox takes no port of its node"


def _instead(volume: str) -> str:
    if volume == "hostPath":
        return "remove it, a sandbox never sees its node's files"
    return "use a persistentVolumeClaim, the node would mount this one from its own network"


def _profiles(owner: Json) -> Iterator[str]:
    context = section(owner, "securityContext")
    app_armor, selinux = _object(context, "appArmorProfile"), _object(context, "seLinuxOptions")
    if app_armor and app_armor.get("type") not in APP_ARMOR_TYPES:
        yield "securityContext.appArmorProfile widens what the pod may do: use RuntimeDefault or Localhost"
    if selinux.get("user") or selinux.get("role") or selinux.get("type") not in (None, "", *SELINUX_TYPES):
        yield (
            "securityContext.seLinuxOptions widens what the pod may do: leave out user and role, and use one "
            f"of the types {', '.join(SELINUX_TYPES)}"
        )


def _errands(container: Json) -> Iterator[str]:
    """What the kubelet would connect to, from the node's own network."""
    lifecycle = _object(container, "lifecycle")
    handlers = {name: _object(container, name) for name in PROBES}
    handlers |= {f"lifecycle.{name}": _object(lifecycle, name) for name in ("postStart", "preStop")}
    for place, handler in handlers.items():
        if any(_object(handler, way).get("host") for way in ("httpGet", "tcpSocket")):
            yield f"{place} has a host: remove it, the node connects to nobody else for a sandbox"


def _sources(volume: Json) -> list[Json]:
    sources: Any = _object(volume, "projected").get("sources")
    listed = cast("list[Any]", sources) if isinstance(sources, list) else []
    return [cast("Json", source) for source in listed if isinstance(source, dict)]


def _object(parent: Json, name: str) -> Json:
    # Nothing has checked these yet; what is no object, the API server refuses.
    found: Any = parent.get(name)
    return cast("Json", found) if isinstance(found, dict) else Json()
