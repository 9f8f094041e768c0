"""How the runtime gets into a sandbox's container: it is in the image already, or it is mounted from the
runtime's own image, as an image volume or by an init container that copies it.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from sandpod_crds.names import RUNTIME_COMMAND, RUNTIME_CONTAINER, RUNTIME_DIRECTORY, WORKSPACE_DIRECTORY

from ..objects import Json, entries, section
from ..pods import WORKSPACE_VOLUME
from ..settings import Installation, RuntimeMount, Settings

COPY_TARGET = "/mnt/sandpod"

# The first versions that have image volumes switched on. A node's kubelet may be older than the API server.
KUBERNETES = (1, 35)
CONTAINERD = (2, 1)
CRIO = (1, 31)


def has_runtime(image: str, settings: Settings) -> bool:
    patterns = settings.built_in_images
    return image == settings.sandbox_image or any(fnmatchcase(image, pattern) for pattern in patterns)


def add_runtime(spec: Json, container: Json, *, installation: Installation) -> None:
    """Mount the runtime, and a workspace that any user may write to, into the container."""
    settings = installation.settings
    volume: Json = {"name": RUNTIME_CONTAINER}
    at: Json = {"mountPath": RUNTIME_DIRECTORY, "readOnly": True}
    if installation.runtime_mount is RuntimeMount.IMAGE_VOLUME:
        volume["image"] = {"reference": settings.runtime_image, "pullPolicy": settings.image_pull_policy}
        at["subPath"] = RUNTIME_DIRECTORY.lstrip("/")
    else:
        volume["emptyDir"] = {}
        # First of all: another init container may want the runtime too.
        others = [each for each in entries(spec, "initContainers") if each["name"] != RUNTIME_CONTAINER]
        spec["initContainers"] = [copier(settings), *others]
    mount(spec, container, volume=volume, at=at)
    # The sandbox may have a workspace, or a podTemplate bring one.
    if all(each["mountPath"] != WORKSPACE_DIRECTORY for each in entries(container, "volumeMounts")):
        volume = {"name": WORKSPACE_VOLUME, "emptyDir": {}}
        mount(spec, container, volume=volume, at={"mountPath": WORKSPACE_DIRECTORY})


def image_volumes_everywhere(*, server: Json, nodes: Iterable[Json]) -> bool:
    """Whether the API server and every node know image volumes, from `/version` and the list of nodes."""
    if _version(f"{server.get('major')}.{server.get('minor')}") < KUBERNETES:
        return False
    return all(_node_has_them(section(section(node, "status"), "nodeInfo")) for node in nodes)


def _node_has_them(info: Json) -> bool:
    name, _, version = info.get("containerRuntimeVersion", "").partition("://")
    oldest = {"containerd": CONTAINERD, "cri-o": CRIO}.get(name)
    kubelet = _version(info.get("kubeletVersion", ""))
    return kubelet >= KUBERNETES and oldest is not None and _version(version) >= oldest


def _version(text: str) -> tuple[int, int]:
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def copier(settings: Settings) -> Json:
    """The container that copies the runtime into the pod, and is over in a moment."""
    return {
        "name": RUNTIME_CONTAINER,
        "image": settings.runtime_image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": [RUNTIME_COMMAND, "--copy-to", COPY_TARGET],
        "volumeMounts": [{"name": RUNTIME_CONTAINER, "mountPath": COPY_TARGET}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def mount(spec: Json, container: Json, *, volume: Json, at: Json) -> None:
    """`at` is a volumeMount without the volume's name. What was there by that name or path makes way."""
    volumes = [each for each in entries(spec, "volumes") if each["name"] != volume["name"]]
    mounts = [each for each in entries(container, "volumeMounts") if each["mountPath"] != at["mountPath"]]
    spec["volumes"] = [*volumes, volume]
    container["volumeMounts"] = [*mounts, {"name": volume["name"], **at}]
