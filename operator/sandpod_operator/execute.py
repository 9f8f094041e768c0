"""Carries out a plan: the only module that writes sandboxes' objects. What the API server answers goes into
the Store, so that the next decision knows it.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, Conflict, NotFound
from sandpod_crds.models import Sandbox, SandboxStatus

from .cluster import Cluster
from .metrics import Metrics
from .objects import Json, section
from .observations import Key
from .plan import Ask, Notice, Plan, Removal
from .reasons import Reason
from .refusals import Subject, make_refusal, refusal, stranger
from .status import status_patch, summary
from .store import Store

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
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._teller = teller
        self._asker = asker
        self._metrics = metrics
        self._now = now

    async def carry_out(self, plan: Plan, *, key: Key, sandbox: Sandbox | None) -> bool:
        """True when something was written, or refused, so that there may be more to decide."""
        # First: an asking that nobody wants any more must not go on while we wait for the API server.
        self._asker.want(key, plan.ask)
        changed = False
        if plan.create_pod is not None and sandbox is not None:
            await self._create(plan.create_pod, key=key, sandbox=sandbox)
            changed = True
        if plan.status is not None and sandbox is not None:
            if not await self._write_status(plan.status, key=key, sandbox=sandbox):
                return False
            changed = True
            if summary(plan.status) != summary(sandbox.status):
                log.info("%s: %s -> %s", key, summary(sandbox.status), summary(plan.status))
            for notice in plan.notices:
                self._teller.tell(sandbox, notice)
        if plan.remove_pod is not None:
            changed = await self._remove(plan.remove_pod, key=key) or changed
        return changed

    async def _create(self, pod: Json, *, key: Key, sandbox: Sandbox) -> None:
        before = self._store.refusal(key)
        subject = Subject(
            uid=sandbox.metadata.uid,
            generation=sandbox.metadata.generation,
            has_template=sandbox.spec.pod_template is not None,
        )
        self._metrics.api_writes.add(verb="create", resource="pods")
        try:
            created = await self._cluster.create(paths.pods(key.namespace), pod)
        except Conflict as error:
            if not error.already_exists:
                raise
            await self._look_at_the_other(key, subject=subject)
        except ApiError as error:
            refused = refusal(error, subject=subject, now=self._now(), before=before)
            if refused is None:
                raise
            self._store.put_refusal(key, refused)
        else:
            self._store.drop_refusal(key)
            self._store.pods.learn(created)

    async def _look_at_the_other(self, key: Key, *, subject: Subject) -> None:
        """A pod of that name exists: ours, from a create whose answer was lost, or somebody else's."""
        try:
            pod = await self._cluster.get(paths.pods(key.namespace, key.name))
        except NotFound:
            return
        why = stranger(pod, sandbox_uid=subject.uid)
        if why is None:
            self._store.drop_refusal(key)
            self._store.pods.learn(pod)
        else:
            before = self._store.refusal(key)
            refused = make_refusal(Reason.NAME_TAKEN, why, subject=subject, now=self._now(), before=before)
            self._store.put_refusal(key, refused)

    async def _write_status(self, status: SandboxStatus, *, key: Key, sandbox: Sandbox) -> bool:
        # For the version that it was decided on, and no other: a new sandbox of this name must not get the
        # old one's status. (A UID would be no precondition; the API server ignores it in a patch of the
        # status.)
        version = sandbox.metadata.resource_version
        body: Json = {"metadata": {"resourceVersion": version}, "status": status_patch(status)}
        self._metrics.api_writes.add(verb="patch", resource="sandboxes/status")
        try:
            written = await self._cluster.patch(paths.sandboxes(key.namespace, key.name, "status"), body)
        except NotFound:
            # It is gone, and the watch is about to say so.
            return False
        self._store.sandboxes.learn(written)
        return True

    async def _remove(self, removal: Removal, *, key: Key) -> bool:
        self._metrics.api_writes.add(verb="delete", resource="pods")
        try:
            answer = await self._cluster.delete(
                paths.pods(key.namespace, key.name),
                uid=removal.uid,
                grace_seconds=0 if removal.force else None,
            )
        except (NotFound, Conflict):
            self._store.pod_deleted(key, uid=removal.uid)
            return True
        # Kubernetes answers with the pod while it is being stopped, and with a Status when it is gone.
        if "deletionTimestamp" in section(answer, "metadata"):
            return self._store.pods.learn(answer)
        self._store.pod_deleted(key, uid=removal.uid)
        return True
