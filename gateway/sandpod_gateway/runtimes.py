"""From a route to the runtime at its end: where it listens, and what it is told to trust."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from sandpod_crds import keys

from .addresses import Address
from .proxy import Runtime
from .routes import Route

_DERIVED: Final = 8192


class Runtimes:
    """`address_of` turns the watched pod's IP into what is connected to."""

    def __init__(self, *, key: bytes, address_of: Callable[[str], Address]) -> None:
        self._address_of = address_of
        # Kept, because deriving it costs more than anything else that is done for a request.
        self._credential = lru_cache(maxsize=_DERIVED)(partial(_credential, key))

    def at(self, namespace: str, route: Route) -> Runtime:
        """The namespace is the one that was asked for, for which it was decided who may: no status can name
        another.
        """
        return Runtime(
            address=self._address_of(route.pod_ip),
            pod_uid=route.pod_uid,
            credential=self._credential(namespace, route.pod_uid),
        )


def _credential(key: bytes, namespace: str, pod_uid: str) -> str:
    return keys.credential(key=key, namespace=namespace, pod_uid=pod_uid)
