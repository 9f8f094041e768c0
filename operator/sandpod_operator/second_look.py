"""Asks the API server itself where the watch's word is not enough: somebody may have taken off the labels by
which an object is watched, or an answer was lost.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from sandpod_crds import paths
from sandpod_crds.errors import ApiError, NotFound
from sandpod_crds.models import Sandbox, SandboxStatus
from sandpod_crds.names import CHILD_LABELS

from .cluster import Cluster
from .kinds import CLAIM, INGRESS, NETWORK_POLICY, POD, POD_LABELS, SANDBOX, Kind
from .objects import Json, controller, key_of, owner_uid, uid_of
from .observations import Key
from .reasons import Reason
from .refusals import is_labelled, make_refusal, may_pass, strange_ingress, stranger, subject_of
from .resources.network_policy import is_a_wall
from .store import Store
from .undone import Undone

log = logging.getLogger(__name__)

TAKEN = {
    POD.plural: Reason.NAME_TAKEN,
    CLAIM.plural: Reason.CLAIM_TAKEN,
    NETWORK_POLICY.plural: Reason.POLICY_TAKEN,
    INGRESS.plural: Reason.INGRESS_TAKEN,
}


async def is_there(kind: Kind, key: Key, *, uid: str, cluster: Cluster, store: Store) -> bool:
    """This very object. The Store knows of its end then, whatever the watch has told."""
    with suppress(NotFound):
        if uid_of(await cluster.get(kind.path(*key))) == uid:
            return True
    store.deleted(kind, key, uid=uid)
    return False


class SecondLook:
    def __init__(
        self, *, cluster: Cluster, store: Store, undone: Undone, now: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._undone = undone
        self._now = now

    async def is_there(self, sandbox: Sandbox, *, key: Key) -> bool:
        """Asked when something of it has vanished at once. The garbage collector may know of a deletion that
        no watch has told us yet, and would take away whatever we make.
        """
        return await is_there(
            SANDBOX, key, uid=sandbox.metadata.uid, cluster=self._cluster, store=self._store
        )

    async def at_the_other(self, kind: Kind, body: Json, *, key: Key, sandbox: Sandbox) -> bool:
        """One of that name exists. True when it is ours, from a create whose answer was lost; it may be
        somebody else's.
        """
        path = kind.path(*key_of(body))
        try:
            found = await self._cluster.get(path)
            if owner_uid(found) == sandbox.metadata.uid:
                found = await self._watched(kind, found, labels=body["metadata"]["labels"])
            elif is_a_wall(found):
                # Whose it was, its other labels say.
                found = await self._watched(kind, found, labels=CHILD_LABELS)
        except NotFound:
            return False
        if kind is INGRESS:
            why = strange_ingress(found, body)
        else:
            why = stranger(found, sandbox_uid=sandbox.metadata.uid, heirless=kind is not POD)
        if why is None:
            # Also one that we believed gone: not to take note would be to create it again and again.
            self._store.cache(kind).observe(found)
            return True
        refused = make_refusal(
            TAKEN[kind.plural],
            why,
            subject=subject_of(kind, sandbox),
            now=self._now(),
            before=self._store.refusal(key, kind.plural),
        )
        self._store.put_refusal(key, refused, kind.plural)
        return False

    async def find_the_pod(self, sandbox: Sandbox, status: SandboxStatus, *, key: Key) -> bool:
        """Before the status forgets a pod: without its label, one that no watch sees would work on where
        nobody looks after it.
        """
        known, name = sandbox.status.pod_uid, sandbox.status.pod_name
        if known is None or name is None or status.pod_uid == known:
            return False
        where = Key(key.namespace, name)
        if self._store.pods.get(where) is not None:
            return False
        try:
            found = await self._cluster.get(paths.pods(*where))
        except NotFound:
            return False
        # Without an owner it is still the one that the status speaks of, and gets it back.
        owner = controller(self._store.pods.unwritten.complete(found)["metadata"]).get(
            "uid", sandbox.metadata.uid
        )
        if (uid_of(found), owner) != (known, sandbox.metadata.uid):
            return False
        try:
            found = await self._labelled_again(found, where, key=key)
        except NotFound:
            self._store.deleted(POD, where, uid=known)
        else:
            self._store.pods.observe(found)
        return True

    async def _labelled_again(self, pod: Json, where: Key, *, key: Key) -> Json:
        """Or as it is, where that cannot be had: what no watch shows is better known than forgotten."""
        if not is_labelled(pod) and self._undone.too_often(POD_LABELS, where, wanted=uid_of(pod)):
            log.warning("%s: somebody takes the labels off its pod again and again", key)
            return pod
        try:
            return await self._watched(POD, pod, labels=CHILD_LABELS)
        except ApiError as error:
            if may_pass(error):
                raise
            log.warning("%s: its pod has lost its labels, and they may not be put back: %s", key, error)
            return pod

    async def _watched(self, kind: Kind, found: Json, *, labels: dict[str, str]) -> Json:
        """With the labels by which it is watched, if somebody has taken them off: for the watch, that was its
        deletion.
        """
        if is_labelled(found):
            return found
        body: Json = {"metadata": {"uid": uid_of(found), "labels": labels}}
        return await self._cluster.patch(kind.path(*key_of(found)), body)
