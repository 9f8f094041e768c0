"""What the gateway reads from the cluster beside Sandboxes: the installation's key, its own certificate, and
what makes the front proxy believable. Each is one GET by name; the gateway may list no Secret.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from sandpod_crds import errors as api
from sandpod_crds import keys, names, paths
from sandpod_crds.kube import Kube

from . import frontproxy
from .errors import NotConfigured
from .frontproxy import Trust
from .settings import Settings

Json = dict[str, Any]
T = TypeVar("T")

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.2
# Said again after so many tries: at an installation, the operator makes the Secrets a moment after we start.
SAY_EVERY: Final = 50


@dataclass(frozen=True, slots=True)
class KeyPair:
    certificate: str
    key: str


class Cluster:
    def __init__(self, *, kube: Kube, settings: Settings) -> None:
        self._kube = kube
        self._settings = settings

    async def key(self) -> bytes:
        name = self._settings.key_secret
        key = await self._entry(name, names.KEY_SECRET_ENTRY)
        if len(key) != keys.KEY_BYTES:
            raise NotConfigured(f"the key in Secret {name} has {len(key)} bytes instead of {keys.KEY_BYTES}")
        return key

    async def key_pair(self) -> KeyPair:
        name = self._settings.tls_secret
        secret = await self._secret(name)
        try:
            return KeyPair(
                certificate=_decode(secret, name, "tls.crt").decode("ascii"),
                key=_decode(secret, name, "tls.key").decode("ascii"),
            )
        except UnicodeDecodeError as error:
            raise NotConfigured(f"Secret {name} does not hold PEM") from error

    async def trust(self) -> Trust:
        path = paths.config_maps(frontproxy.CONFIG_MAP_NAMESPACE, frontproxy.CONFIG_MAP_NAME)
        config_map = await self._kube.request("GET", path)
        return Trust.from_config_map(config_map.get("data") or {})

    async def _entry(self, name: str, entry: str) -> bytes:
        return _decode(await self._secret(name), name, entry)

    async def _secret(self, name: str) -> Json:
        return await self._kube.request("GET", paths.secrets(self._settings.system_namespace, name))


async def persist(what: str, read: Callable[[], Awaitable[T]]) -> T:
    """Reads until it succeeds: what is missing at the start is made by the operator, which may start after
    us.
    """
    attempt = 0
    while True:
        try:
            return await read()
        except (api.ApiError, NotConfigured) as error:
            if attempt % SAY_EVERY == 0:
                log.warning("waiting for %s: %s", what, error)
            attempt += 1
            await asyncio.sleep(RETRY_SECONDS)


def _decode(secret: Json, name: str, entry: str) -> bytes:
    data: Json = secret.get("data") or {}
    try:
        value = base64.b64decode(data.get(entry) or "", validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise NotConfigured(f"{entry} in Secret {name} is not base64") from error
    if not value:
        raise NotConfigured(f"Secret {name} has no {entry}")
    return value
