"""Carries out a pool's plan: the only module that writes a pool's objects."""

import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Conflict, NotFound, Unavailable
from sandpod_crds.models import SandboxPool, SandboxPoolStatus
from sandpod_crds.names import ANNOTATION_HASH

from ..cluster import STRICT, Cluster
from ..kinds import CLAIM, NETWORK_POLICY, POD, POOL, Kind
from ..objects import Json, key_of, replacing, section, uid_of
from ..observations import Key, Refusal
from ..reasons import Reason
from ..refusals import Subject, make_refusal, refusal
from ..resources.pod import with_bind_nonce
from ..second_look import is_there
from ..store import Store
from ..undone import Undone
from .claims import Claims
from .decide import PoolPlan, PoolSituation
from .lending import Lending
from .memory import PoolMemory
from .pod import Blueprint, Start
from .status import status_patch
from .wall import not_the_wall
from .warm import WarmPod

log = logging.getLogger(__name__)


class PoolExecutor:
    def __init__(
        self,
        *,
        cluster: Cluster,
        store: Store,
        claims: Claims,
        lending: Lending,
        now: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._claims = claims
        self._lending = lending
        self._now = now
        self._undone = Undone(now=now)

    async def carry_out(self, plan: PoolPlan, *, situation: PoolSituation, memory: PoolMemory) -> bool:
        """True when something was written, or refused, so that there may be more to decide."""
        namespace, pool, blueprint = situation.key.namespace, situation.pool, situation.blueprint
        fenced = plan.wall is None or await self._build(plan.wall, blueprint=blueprint, memory=memory)
        for pod in plan.remove:
            await self._remove_pod(pod)
            memory.removed(pod)
        vanish = plan.create and not situation.pods and memory.started_lately(now=self._now())
        if pool is not None and vanish and not await self._is_there(pool):
            return True
        for start in plan.create:
            if (
                blueprint is None
                or not fenced
                or not await self._start(start, blueprint=blueprint, memory=memory)
            ):
                # The next one would be refused as well.
                break
        if plan.status is not None and pool is not None:
            await self._write_status(plan.status, pool=pool, memory=memory)
        for volume in plan.remove_volumes:
            await self._remove(CLAIM, Key(namespace, volume.name), uid=volume.uid)
        for wall in plan.remove_walls:
            await self._remove(NETWORK_POLICY, Key(namespace, wall.name), uid=wall.uid)
        return plan.writes

    async def look_for(self, key: Key, *, memory: PoolMemory) -> None:
        """Whether a pod exists whose creation was not answered, and that no watch has brought."""
        with suppress(NotFound):
            self._store.pods.learn(await self._cluster.get(paths.pods(*key)))
        memory.settle(key.name)

    async def _is_there(self, pool: SandboxPool) -> bool:
        """Asked when all that was made for it has vanished at once. The garbage collector may know of a
        deletion that no watch has told us yet, and would take away whatever we make.
        """
        key, uid = Key(pool.metadata.namespace, pool.metadata.name), pool.metadata.uid
        return await is_there(POOL, key, uid=uid, cluster=self._cluster, store=self._store)

    async def _build(self, wall: Json, *, blueprint: Blueprint | None, memory: PoolMemory) -> bool:
        """Also over an earlier one of ours; never over what somebody else has put there."""
        try:
            found = self._store.network_policies.get(key_of(wall)) or await self._create_wall(wall)
            if found is None:
                self._see_whether_it_lasts(wall, blueprint=blueprint, memory=memory)
                return True
            if (why := not_the_wall(found, wall)) is not None:
                self._refuse(Reason.POLICY_TAKEN, why, blueprint=blueprint, memory=memory)
                return False
            body: Json = {
                "metadata": {**wall["metadata"], "uid": uid_of(found)},
                "spec": replacing(section(found, "spec"), wall["spec"]),
            }
            corrected = await self._cluster.patch(NETWORK_POLICY.path(*key_of(wall)), body)
            self._store.network_policies.learn(corrected)
            self._see_whether_it_lasts(wall, blueprint=blueprint, memory=memory)
        except ApiError as error:
            self._note(error, blueprint=blueprint, memory=memory)
            return False
        return True

    def _see_whether_it_lasts(self, wall: Json, *, blueprint: Blueprint | None, memory: PoolMemory) -> None:
        plural, where = NETWORK_POLICY.plural, key_of(wall)
        if self._undone.too_often(plural, where, wanted=wall["metadata"]["annotations"][ANNOTATION_HASH]):
            self._refuse(Reason.UNDONE, f"{plural}/{where.name}", blueprint=blueprint, memory=memory)
            assert memory.refusal is not None
            self._undone.put_off(plural, where, until=memory.refusal.retry_at)

    async def _create_wall(self, wall: Json) -> Json | None:
        """What has its name already, perhaps without the labels by which it would be watched; None when there
        was nothing.
        """
        try:
            await self._create(NETWORK_POLICY, wall, namespace=key_of(wall).namespace)
        except Conflict as error:
            if not error.already_exists:
                raise
            return await self._cluster.get(NETWORK_POLICY.path(*key_of(wall)))
        return None

    async def _remove_pod(self, pod: WarmPod) -> None:
        if not self._claims.reserve(pod):
            return
        try:
            found = self._store.pods.get(pod.key)
            if found is not None and self._lending.serves(found):
                # Since this was decided. The API server does not know, by the version of the pod, that it is
                # somebody's.
                return
            # Of this version only: a pod that has been claimed since is somebody's.
            answer = await self._cluster.delete(paths.pods(*pod.key), uid=pod.uid, version=pod.version)
            if "deletionTimestamp" in section(answer, "metadata"):
                self._store.pods.learn(answer)
            else:
                self._store.pod_deleted(pod.key, uid=pod.uid)
        except NotFound:
            self._store.pod_deleted(pod.key, uid=pod.uid)
        except Unavailable:
            self._lending.doubt(pod)
            raise
        finally:
            self._claims.release(pod)

    async def _remove(self, kind: Kind, key: Key, *, uid: str) -> None:
        try:
            answer = await self._cluster.delete(kind.path(key.namespace, key.name), uid=uid)
        except NotFound:
            answer = Json()
        if "deletionTimestamp" in section(answer, "metadata"):
            self._store.cache(kind).learn(answer)
        else:
            self._store.deleted(kind, key, uid=uid)

    async def _start(self, start: Start, *, blueprint: Blueprint, memory: PoolMemory) -> bool:
        namespace = blueprint.pool.metadata.namespace
        memory.expect(start.name, now=self._now())
        try:
            if start.claim is not None:
                await self._create(CLAIM, start.claim, namespace=namespace)
            pod = with_bind_nonce(start.pod, secrets.token_hex(16), key=blueprint.installation.key)
            await self._create(POD, pod, namespace=namespace)
        except Unavailable:
            # Perhaps it exists. It counts until the watch brings it, or has had the time to.
            raise
        except ApiError as error:
            memory.settle(start.name)
            # When somebody has the name, the next one will be another.
            if not (isinstance(error, Conflict) and error.already_exists):
                self._note(error, blueprint=blueprint, memory=memory)
            return False
        memory.settle(start.name)
        memory.made(start.name, network=blueprint.network, now=self._now())
        # That pods can be made does not say that their wall is left alone.
        if memory.refusal is not None and memory.refusal.reason is not Reason.UNDONE:
            memory.refusal = None
        return True

    async def _create(self, kind: Kind, body: Json, *, namespace: str) -> None:
        created = await self._cluster.create(kind.path(namespace), body, query=STRICT)
        self._store.cache(kind).learn(created)

    def _note(self, error: ApiError, *, blueprint: Blueprint | None, memory: PoolMemory) -> None:
        """Raises the error when it says nothing about the object."""
        subject, before = _refused_before(blueprint, memory)
        refused = refusal(error, subject=subject, now=self._now(), before=before)
        if refused is None:
            raise error
        memory.refusal, memory.refused_shape = refused, _shape(blueprint)

    def _refuse(self, reason: Reason, why: str, *, blueprint: Blueprint | None, memory: PoolMemory) -> None:
        subject, before = _refused_before(blueprint, memory)
        memory.refusal = make_refusal(reason, why, subject=subject, now=self._now(), before=before)
        memory.refused_shape = _shape(blueprint)

    async def _write_status(
        self, status: SandboxPoolStatus, *, pool: SandboxPool, memory: PoolMemory
    ) -> None:
        metadata = pool.metadata
        body: Json = {
            "metadata": {"resourceVersion": metadata.resource_version},
            "status": status_patch(status),
        }
        path = f"{POOL.path(metadata.namespace, metadata.name)}/status"
        try:
            written = await self._cluster.patch(path, body)
        except NotFound:
            self._store.deleted(POOL, Key(metadata.namespace, metadata.name), uid=metadata.uid)
            return
        memory.status_written_at = self._now()
        self._store.pools.learn(written)


def _refused_before(blueprint: Blueprint | None, memory: PoolMemory) -> tuple[Subject, Refusal | None]:
    """Who is refused something, and what was refused before."""
    uid = blueprint.pool.metadata.uid if blueprint is not None else ""
    # Another template is another matter; the number of replicas is not.
    before = memory.refusal if memory.refused_shape == _shape(blueprint) else None
    return Subject(uid=uid, generation=0, invalid=Reason.INVALID_POD), before


def _shape(blueprint: Blueprint | None) -> str:
    return blueprint.shape if blueprint is not None else ""
