"""What an installation needs before the first sandbox: its secret key, and what is known of its nodes."""

import asyncio
import base64
import binascii
import logging
import os

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Conflict, NotFound
from sandpod_crds.keys import KEY_BYTES
from sandpod_crds.names import (
    APP_NAME,
    COMPONENT_OPERATOR,
    GROUP,
    KEY_SECRET_ENTRY,
    LABEL_COMPONENT,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    POLICIES,
    POOLS,
    SANDBOXES,
    TEMPLATES,
)

from .cluster import Cluster
from .errors import BadSecret, NotInstalled
from .objects import Json, entries, section
from .resources.runtime_mount import image_volumes_everywhere
from .settings import RuntimeMount, Settings

# Helm creates the CRDs a moment before the operator; the API server needs another to serve them.
INSTALLED_WITHIN = 30.0
LOOK_EVERY = 0.25
OURS = frozenset({SANDBOXES, TEMPLATES, POOLS, POLICIES})

log = logging.getLogger(__name__)


async def wait_until_installed(cluster: Cluster, *, patience: float = INSTALLED_WITHIN) -> None:
    """kopf looks once for what it is to watch, and would then watch nothing for ever."""
    for _ in range(max(int(patience / LOOK_EVERY), 1)):
        try:
            known = await cluster.get(paths.OURS)
        except NotFound:
            known = {}
        served = {resource.get("name") for resource in entries(known, "resources")}
        if served.issuperset(OURS):
            return
        await asyncio.sleep(LOOK_EVERY)
    raise NotInstalled(f"the API server does not know all of {GROUP}: install the chart's CRDs")


async def installation_key(cluster: Cluster, settings: Settings) -> bytes:
    """The key that everything is derived from; made once, at the first start of all."""
    namespace, name = settings.system_namespace, settings.key_secret
    try:
        secret = await cluster.get(paths.secrets(namespace, name))
    except NotFound:
        key = os.urandom(KEY_BYTES)
        body = secret_object(namespace, name, kind="Opaque", data={KEY_SECRET_ENTRY: key})
        try:
            secret = await cluster.create(paths.secrets(namespace), body)
        except Conflict:
            secret = await cluster.get(paths.secrets(namespace, name))
        else:
            log.info("made the installation's key: Secret %s/%s", namespace, name)
    return _read_key(secret)


async def find_runtime_mount(cluster: Cluster, settings: Settings) -> RuntimeMount:
    """How the runtime gets into images that do not have it."""
    if settings.runtime_mount is not RuntimeMount.AUTO:
        return settings.runtime_mount
    try:
        server = await cluster.get(paths.version())
        nodes = entries(await cluster.list(paths.nodes()), "items")
    except ApiError as error:
        # An init container works everywhere.
        log.warning("could not find out whether there are image volumes: %s", error)
        return RuntimeMount.INIT_CONTAINER
    everywhere = image_volumes_everywhere(server=server, nodes=nodes)
    return RuntimeMount.IMAGE_VOLUME if everywhere else RuntimeMount.INIT_CONTAINER


def secret_object(namespace: str, name: str, *, kind: str, data: dict[str, bytes]) -> Json:
    labels = {
        LABEL_NAME: APP_NAME,
        LABEL_COMPONENT: COMPONENT_OPERATOR,
        LABEL_MANAGED_BY: APP_NAME,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "type": kind,
        "data": {entry: base64.b64encode(value).decode() for entry, value in data.items()},
    }


def _read_key(secret: Json) -> bytes:
    name = f"{secret['metadata']['namespace']}/{secret['metadata']['name']}"
    try:
        key = base64.b64decode(section(secret, "data").get(KEY_SECRET_ENTRY, ""), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        # Not replaced: somebody may have mistyped it, and with another key no running sandbox would answer.
        raise BadSecret(
            f"the Secret {name} has no entry '{KEY_SECRET_ENTRY}' of {KEY_BYTES} bytes: put the right "
            f"one back, or delete the Secret for a new key, with which every sandbox starts anew"
        )
    return key
