"""Carries out a plan. What the API server answers goes into the Store, so that the next decision knows it."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Conflict, NotFound
from sandpod_crds.models import Sandbox, SandboxStatus

from .cluster import STRICT, Cluster
from .kinds import INGRESS, OF_A_POD, POD, Kind
from .metrics import Metrics
from .objects import Json, key_of, section
from .observations import Key, Refusal
from .plan import Ask, Notice, Plan, Removal, Tone, Verb, Write
from .pool.pools import Pools
from .reasons import Reason, names_of, sentence
from .refusals import make_refusal, refusal, subject_of
from .second_look import SecondLook
from .status import status_patch, summary
from .store import Store
from .undone import Undone

log = logging.getLogger(__name__)


class Teller(Protocol):
    def tell(self, sandbox: Sandbox, notice: Notice) -> None: ...


class Asker(Protocol):
    def want(self, key: Key, ask: Ask | None) -> None: ...


class Executor:
    def __init__(
        self,
        *,
        cluster: Cluster,
        store: Store,
        teller: Teller,
        asker: Asker,
        pools: Pools,
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._teller = teller
        self._asker = asker
        self._pools = pools
        self._metrics = metrics
        self._now = now
        self._undone = Undone(now=now)
        self._second_look = SecondLook(cluster=cluster, store=store, undone=self._undone, now=now)

    async def carry_out(self, plan: Plan, *, key: Key, sandbox: Sandbox | None) -> bool:
        """True when something was written, or refused, so that there may be more to decide."""
        # First: an asking that nobody wants any more must not go on while we wait for the API server.
        if plan.ask is not None:
            self._store.asking(key, pod_uid=plan.ask.pod_uid, errand=plan.ask.errand)
        self._asker.want(key, plan.ask)
        changed = False
        if sandbox is not None:
            changed = await self._get_a_pod(plan, key=key, sandbox=sandbox)
            if plan.status is not None:
                if await self._second_look.find_the_pod(sandbox, plan.status, key=key):
                    return True
                if not await self._write_status(plan.status, key=key, sandbox=sandbox):
                    return True
                changed = True
                if summary(plan.status) != summary(sandbox.status):
                    log.info("%s: %s -> %s", key, summary(sandbox.status), summary(plan.status))
            for notice in plan.notices:
                self._teller.tell(sandbox, notice)
        else:
            changed = await self._delete_all(plan.writes, key=key)
        if plan.remove_pod is not None:
            changed = await self._remove_pod(plan.remove_pod, key=key) or changed
        return changed

    async def _get_a_pod(self, plan: Plan, *, key: Key, sandbox: Sandbox) -> bool:
        """With what it needs to be there before it."""
        for write in plan.writes:
            await self._write(write, key=key, sandbox=sandbox)
        if plan.reading is not None:
            await self._pools.read(key, plan.reading)
        if plan.claim is not None:
            await self._pools.claim(plan.claim)
        if plan.create_pod is not None:
            await self._create(POD, plan.create_pod, key=key, sandbox=sandbox)
            if plan.cold:
                self._metrics.claims.add(outcome=plan.cold)
        return bool(plan.writes or plan.reading or plan.claim or plan.create_pod)

    async def _write(self, write: Write, *, key: Key, sandbox: Sandbox) -> None:
        if write.verb is Verb.CREATE:
            await self._create(write.kind, write.body, key=key, sandbox=sandbox, notice=write.notice)
        elif write.verb is Verb.DELETE:
            await self._delete(write, key=key, sandbox=sandbox)
        else:
            await self._change(write, key=key, sandbox=sandbox)

    async def _create(
        self, kind: Kind, body: Json, *, key: Key, sandbox: Sandbox, notice: Notice | None = None
    ) -> None:
        where = key_of(body)
        # No garbage collector takes previews.
        vanished = kind is not INGRESS and self._undone.lately(kind.plural, where)
        if vanished and not await self._second_look.is_there(sandbox, key=key):
            return
        try:
            created = await self._cluster.create(kind.path(body["metadata"]["namespace"]), body, query=STRICT)
        except Conflict as error:
            if not error.already_exists:
                raise
            if await self._second_look.at_the_other(kind, body, key=key, sandbox=sandbox):
                self._done(kind, matter=kind.plural, where=where, key=key, sandbox=sandbox)
        except ApiError as error:
            self._refuse(error, kind, matter=kind.plural, key=key, sandbox=sandbox)
        else:
            self._store.cache(kind).learn(created)
            self._done(kind, matter=kind.plural, where=where, key=key, sandbox=sandbox)
            if notice is not None:
                self._teller.tell(sandbox, notice)

    def _done(self, kind: Kind, *, matter: str, where: Key, key: Key, sandbox: Sandbox) -> None:
        """It has been written, and is again if somebody undoes it: at once, and then ever later."""
        wanted = f"{sandbox.metadata.uid}/{sandbox.metadata.generation}"
        # A pod is made for each start, and paced by how starts go.
        if not self._undone.too_often(matter, where, wanted=wanted) or matter == POD.plural:
            self._store.drop_refusal(key, matter)
            return
        refused = make_refusal(
            Reason.UNDONE,
            f"{kind.plural}/{where.name}",
            subject=subject_of(kind, sandbox),
            now=self._now(),
            before=self._store.refusal(key, matter),
        )
        self._undone.put_off(matter, where, until=refused.retry_at)
        self._put_refusal(refused, kind, matter=matter, key=key, sandbox=sandbox)

    async def _change(self, write: Write, *, key: Key, sandbox: Sandbox) -> None:
        where = _place(write, key)
        path = write.kind.path(*where)
        try:
            written = await self._cluster.patch(path, write.body)
        except NotFound:
            uid = section(write.body, "metadata").get("uid")
            if uid is None:
                raise
            # Gone meanwhile; to believe the watch, which is about to say so, would be to try again at once.
            self._store.deleted(write.kind, where, uid=uid)
        except ApiError as error:
            self._refuse(error, write.kind, matter=write.matter, key=key, sandbox=sandbox)
        else:
            self._store.cache(write.kind).learn(written)
            self._done(write.kind, matter=write.matter, where=where, key=key, sandbox=sandbox)

    def _refuse(self, error: ApiError, kind: Kind, *, matter: str, key: Key, sandbox: Sandbox) -> None:
        before = self._store.refusal(key, matter)
        refused = refusal(error, subject=subject_of(kind, sandbox), now=self._now(), before=before)
        if refused is None:
            raise error
        self._put_refusal(refused, kind, matter=matter, key=key, sandbox=sandbox)

    def _put_refusal(self, refused: Refusal, kind: Kind, *, matter: str, key: Key, sandbox: Sandbox) -> None:
        self._metrics.refusals.add(resource=kind.plural, reason=refused.reason.value)
        self._store.put_refusal(key, refused, matter)
        # Of a pod that is there no condition speaks; of what is undone, not as long as it stands.
        if refused.tries == 1 and (matter in OF_A_POD or refused.reason is Reason.UNDONE):
            text = sentence(refused.reason, names=names_of(sandbox), detail=refused.message)
            self._teller.tell(sandbox, Notice(tone=Tone.WARNING, reason=refused.reason.value, message=text))

    async def _write_status(self, status: SandboxStatus, *, key: Key, sandbox: Sandbox) -> bool:
        # For the version that it was decided on, and no other: a new sandbox of this name must not get the
        # old one's status.
        version = sandbox.metadata.resource_version
        body: Json = {"metadata": {"resourceVersion": version}, "status": status_patch(status)}
        try:
            written = await self._cluster.patch(paths.sandboxes(key.namespace, key.name, "status"), body)
        except NotFound:
            # To wait for the watch, which may say it much later, would be to make again and again for a
            # sandbox that is gone what the garbage collector takes away. But its pod goes with it, in which
            # somebody may work: a proxy that knows no path for a moment must not be enough.
            if await self._second_look.is_there(sandbox, key=key):
                raise
            return False
        self._store.sandboxes.learn(written)
        self._metrics.progress.record(sandbox, status, now=self._now())
        return True

    async def _delete_all(self, writes: Iterable[Write], *, key: Key) -> bool:
        """What a sandbox that is gone has left behind. One that somebody holds on to keeps no other."""
        changed, refused = False, None
        for write in writes:
            try:
                changed = await self._delete(write, key=key) or changed
            except ApiError as error:
                refused = error
        if refused is not None:
            raise refused
        return changed

    async def _delete(self, write: Write, *, key: Key, sandbox: Sandbox | None = None) -> bool:
        assert write.uid is not None
        try:
            return await self._delete_object(
                write.kind, _place(write, key), uid=write.uid, version=write.version
            )
        except ApiError as error:
            # A sandbox goes on when nobody may delete its previews.
            if write.kind is not INGRESS or sandbox is None:
                raise
            self._refuse(error, INGRESS, matter=INGRESS.plural, key=key, sandbox=sandbox)
            return True

    async def _remove_pod(self, removal: Removal, *, key: Key) -> bool:
        where = Key(key.namespace, removal.name)
        grace_seconds = 0 if removal.force else None
        return await self._delete_object(POD, where, uid=removal.uid, grace_seconds=grace_seconds)

    async def _delete_object(
        self,
        kind: Kind,
        where: Key,
        *,
        uid: str,
        version: str | None = None,
        grace_seconds: int | None = None,
    ) -> bool:
        try:
            answer = await self._cluster.delete(
                kind.path(where.namespace, where.name),
                uid=uid,
                version=version,
                grace_seconds=grace_seconds,
            )
        except NotFound:
            self._store.deleted(kind, where, uid=uid)
            return True
        except Conflict as error:
            # Another of this name is there. Whatever else is in the way may pass, or needs another look.
            if "UID in precondition" not in error.message:
                raise
            self._store.deleted(kind, where, uid=uid)
            return True
        # Kubernetes answers with the object while something still has to be done for it, and with a Status
        # when it is gone.
        if "deletionTimestamp" in section(answer, "metadata"):
            return self._store.cache(kind).learn(answer)
        self._store.deleted(kind, where, uid=uid)
        return True


def _place(write: Write, key: Key) -> Key:
    return Key(write.namespace or key.namespace, write.name)
