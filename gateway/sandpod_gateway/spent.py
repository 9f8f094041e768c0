"""Login links that have been used, so that none is used twice. They stand in an annotation of the Sandbox:
replicas of the gateway share nothing but the API server, and a write there with the version that was read is
won by one of them only. Bounded: what would have expired by now is left out with the next write.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from sandpod_crds import errors as api
from sandpod_crds import paths
from sandpod_crds.kube import Kube
from sandpod_crds.names import ANNOTATION_SPENT_LOGINS

from .collisions import until_it_fits
from .errors import TooMany, Unchecked
from .routes import Key

Json = dict[str, Any]

log = logging.getLogger(__name__)

# Of one sandbox, each about 25 characters
MOST: Final = 128
# Kept longer than they are valid: by the clock of another replica they may be valid still.
SKEW_SECONDS: Final = 300
TIMEOUT: Final = 5.0

_ENTRY: Final = re.compile(r"([A-Za-z0-9_-]{1,32})@([0-9]{1,12})")


def spend(text: str, nonce: str, *, expires: int, now: float, longest: float) -> str | None:
    """The annotation with this one; None: it is there already. `longest` is what a code is valid for."""
    spent = {nonce: until for nonce, until in _entries(text) if now < until + SKEW_SECONDS}
    # Whoever may write the object can write anything here. What no code of ours can be must not stay.
    spent = {each: until for each, until in spent.items() if until <= now + longest + SKEW_SECONDS}
    if nonce in spent:
        return None
    if len(spent) >= MOST:
        raise TooMany("there were too many logins at this sandbox within a few minutes", retry_after=60)
    return ",".join(f"{each}@{until}" for each, until in (spent | {nonce: expires}).items())


def _entries(text: str) -> list[tuple[str, int]]:
    found = (_ENTRY.fullmatch(entry) for entry in text.split(","))
    return [(entry[1], int(entry[2])) for entry in found if entry]


class Spent:
    def __init__(self, *, kube: Kube, longest: float, clock: Callable[[], float] = time.time) -> None:
        self._kube = kube
        self._longest = longest
        self._clock = clock

    async def spend(self, key: Key, *, sandbox_uid: str, nonce: str, expires: int) -> bool:
        """Whether it was not before. When the API server does not say what became of the write, the link is
        lost: it may have been spent.
        """
        attempt = partial(self._try, key, sandbox_uid=sandbox_uid, nonce=nonce, expires=expires)
        try:
            return await until_it_fits(attempt)
        except api.NotFound:
            return False
        except api.Conflict as error:
            raise Unchecked("the sandbox is being changed by others all the time") from error
        except (api.ApiError, TimeoutError) as error:
            log.warning("spending a login link of %s/%s: %s", *key, error)
            raise Unchecked("the API server did not confirm that the link is used once only") from error

    async def _try(self, key: Key, *, sandbox_uid: str, nonce: str, expires: int) -> bool:
        path = paths.sandboxes(*key)
        async with asyncio.timeout(TIMEOUT):
            metadata = (await self._kube.request("GET", path))["metadata"]
            if metadata["uid"] != sandbox_uid:
                return False
            annotations = cast("Json", metadata.get("annotations") or {})
            before = str(annotations.get(ANNOTATION_SPENT_LOGINS) or "")
            after = spend(before, nonce, expires=expires, now=self._clock(), longest=self._longest)
            if after is None:
                return False
            condition = {"uid": sandbox_uid, "resourceVersion": metadata["resourceVersion"]}
            change = {"annotations": {ANNOTATION_SPENT_LOGINS: after}}
            await self._kube.patch(path, {"metadata": condition | change})
        return True
