"""Keeps node drains from ending people's work: a PodDisruptionBudget in each namespace that has sandboxes,
gone with the last of them. Which pods it protects, their label says. docs/networks.md tells it to people.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Conflict, NotFound
from sandpod_crds.names import (
    APP_NAME,
    COMPONENT_SANDBOX,
    LABEL_COMPONENT,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    LABEL_PROTECTED,
)

from .cluster import Cluster
from .metrics import Metrics
from .objects import Json, section
from .refusals import namespace_is_going
from .store import Store

NAME: Final = "sandpod-sandboxes"
LABELS: Final = {LABEL_NAME: APP_NAME, LABEL_COMPONENT: COMPONENT_SANDBOX, LABEL_MANAGED_BY: APP_NAME}
OURS: Final = f"{LABEL_MANAGED_BY}={APP_NAME},{LABEL_COMPONENT}={COMPONENT_SANDBOX}"
SPEC: Final[Json] = {
    # More than there can be: no eviction is ever granted. A number, because for a share of the pods
    # Kubernetes would look for whatever scales them.
    "minAvailable": 1_000_000,
    "selector": {"matchLabels": {LABEL_PROTECTED: "true"}},
    # A pod that starts, or is broken, need not be waited for.
    "unhealthyPodEvictionPolicy": "AlwaysAllow",
}

# Sandboxes come and go in crowds, and one look at a namespace is enough for a crowd.
SETTLING = 0.5
# What somebody else has changed or deleted is found at the latest after this.
RELIST = 600.0
FIRST_RETRY, LONGEST_RETRY = 1.0, 60.0

log = logging.getLogger(__name__)


class Step(StrEnum):
    CREATE = "create"
    CORRECT = "patch"
    DELETE = "delete"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    uid: str
    version: str
    ours: bool
    as_wanted: bool


def step(found: Found | None, *, wanted: bool) -> Step | None:
    """What to do about the budget of one namespace. One that somebody else has made is theirs."""
    if found is None:
        return Step.CREATE if wanted else None
    if not found.ours:
        return None
    if not wanted:
        return Step.DELETE
    return None if found.as_wanted else Step.CORRECT


def facts(budget: Json) -> Found:
    metadata, spec = budget["metadata"], section(budget, "spec")
    return Found(
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        ours=LABELS.items() <= section(metadata, "labels").items(),
        as_wanted={name: spec.get(name) for name in (*SPEC, "maxUnavailable")}
        == {**SPEC, "maxUnavailable": None},
    )


class Protection:
    def __init__(
        self,
        *,
        cluster: Cluster,
        store: Store,
        enabled: bool,
        synced: Callable[[], bool],
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._enabled = enabled
        # Before all lists have come, a namespace may look empty whose sandboxes are only not here yet.
        self._synced = synced
        self._metrics = metrics
        self._clock = clock
        # None until the first list: before it, nothing is known to be missing.
        self._found: dict[str, Found] | None = None
        self._touched: set[str] = set()
        # Namespaces that would not have it: a quota, a webhook. They keep no other waiting.
        self._refused: set[str] = set()
        self._wake = asyncio.Event()

    def touch(self, namespace: str, *, gone: bool = False) -> None:
        """There is a sandbox, or one is gone. Call it as often as you like: mostly it is nothing new."""
        known = (self._found or {}).get(namespace)
        if not gone and known is not None and (known.as_wanted or not known.ours):
            return
        self._touched.add(namespace)
        self._wake.set()

    async def run(self) -> None:
        pause, relist, retry = FIRST_RETRY, self._clock(), math.inf
        while True:
            if not self._synced():
                await asyncio.sleep(SETTLING)
                continue
            again, listed = self._clock() >= retry, True
            try:
                if self._clock() >= relist:
                    await self.look()
                    relist = self._clock() + RELIST
                failure = await self.settle(again=again)
            except ApiError as error:
                failure, again, listed = self._failed(error), True, False
            if failure is not None:
                seconds = max(pause, failure.retry_after or 0.0)
                log.warning("the protection from drains is tried again in %.0f s: %s", seconds, failure)
                due = self._clock() + seconds
                # One more that refuses does not put off the others.
                retry = due if again else min(retry, due)
                pause = min(pause * 2, LONGEST_RETRY) if again else pause
            elif not self._refused:
                retry, pause = math.inf, FIRST_RETRY
            if listed:
                await self._wait(min(relist, retry) - self._clock())
            else:
                await asyncio.sleep(retry - self._clock())

    async def look(self) -> None:
        """Take stock: what is there, and where it might be missing."""
        answer = await self._cluster.list(_path(), query={"labelSelector": OURS})
        self._found = {each["metadata"]["namespace"]: facts(each) for each in answer["items"]}
        self._touched.update(self._found, self._inhabited())

    async def settle(self, *, again: bool = True) -> ApiError | None:
        """Bring every namespace that was touched to where it should be, and those that have refused if it is
        to be tried `again`.
        """
        if self._found is None:
            await self.look()
        failure: ApiError | None = None
        due = self._touched | self._refused if again else self._touched - self._refused
        self._touched = set()
        inhabited = self._inhabited()
        for namespace in sorted(due):
            self._refused.discard(namespace)
            try:
                await self._put_right(namespace, wanted=namespace in inhabited)
            except ApiError as error:
                self._refused.add(namespace)
                failure = self._failed(error)
        return failure

    def _failed(self, error: ApiError) -> ApiError:
        self._metrics.errors.add(part="drain protection", reason=type(error).__name__)
        return error

    async def _put_right(self, namespace: str, *, wanted: bool) -> None:
        assert self._found is not None
        found = self._found.get(namespace)
        todo = step(found, wanted=wanted)
        if todo is None:
            return
        if todo is Step.CREATE:
            await self._create(namespace, self._found)
            return
        assert found is not None
        # Not known while it is being written: a sandbox that comes meanwhile must not take it for granted.
        del self._found[namespace]
        try:
            if todo is Step.DELETE:
                await self._cluster.delete(_path(namespace, NAME), uid=found.uid)
            else:
                body = {
                    "metadata": {"resourceVersion": found.version},
                    "spec": {**SPEC, "maxUnavailable": None},
                }
                self._found[namespace] = facts(await self._cluster.patch(_path(namespace, NAME), body))
        except (NotFound, Conflict):
            await self._look_at(namespace, self._found)
        except ApiError:
            self._found[namespace] = found
            raise

    async def _create(self, namespace: str, known: dict[str, Found]) -> None:
        body: Json = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": NAME, "namespace": namespace, "labels": LABELS},
            "spec": SPEC,
        }
        try:
            known[namespace] = facts(await self._cluster.create(_path(namespace), body))
        except Conflict:
            await self._look_at(namespace, known)
        except ApiError as error:
            # Its sandboxes are about to be gone as well.
            if not namespace_is_going(error):
                raise

    async def _look_at(self, namespace: str, known: dict[str, Found]) -> None:
        """It is not what we thought: somebody else was there first, or a lost answer was ours."""
        known.pop(namespace, None)
        try:
            known[namespace] = found = facts(await self._cluster.get(_path(namespace, NAME)))
        except NotFound:
            found = None
        if found is not None and not found.ours:
            log.warning(
                "the PodDisruptionBudget %s/%s is not ours: sandboxes there are protected from drains as far "
                "as it says; delete it to have ours",
                namespace,
                NAME,
            )
        else:
            self._touched.add(namespace)

    async def _wait(self, seconds: float) -> None:
        if not self._touched:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), max(seconds, 0.0))
            except TimeoutError:
                return
        await asyncio.sleep(SETTLING)

    def _inhabited(self) -> set[str]:
        """Where there are sandboxes to protect."""
        return {key.namespace for key in self._store.sandboxes} if self._enabled else set()


def _path(namespace: str | None = None, name: str | None = None) -> str:
    return paths.build("/apis/policy/v1", "poddisruptionbudgets", namespace=namespace, name=name)
