"""What somebody may do is the cluster's RBAC: each question is a SubjectAccessReview, its answer kept for
seconds. So a right that is taken away ends within those seconds, and a burst of requests asks once, also one
to many sandboxes: the first question is about all of the namespace's.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from sandpod_crds import names, paths
from sandpod_crds.errors import ApiError, Unavailable
from sandpod_crds.kube import Kube

from .errors import Denied, Unchecked
from .identity import Identity
from .permissions import Permission

Json = dict[str, Any]

log = logging.getLogger(__name__)

# Decisions kept; about a kilobyte each.
SIZE: Final = 4096
# The API server answers in milliseconds; a request that waits for longer has a better answer in "try again".
TIMEOUT: Final = 5.0


@dataclass(frozen=True, slots=True)
class Question:
    identity: Identity
    permission: Permission
    namespace: str
    # Of one sandbox; empty: of all in the namespace.
    name: str


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str


class Authorizer:
    def __init__(
        self,
        *,
        kube: Kube,
        cache_seconds: float,
        size: int = SIZE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._cache_seconds = cache_seconds
        self._size = size
        self._clock = clock
        self._decisions: OrderedDict[Question, tuple[float, Decision]] = OrderedDict()
        self._asking: dict[Question, asyncio.Task[Decision]] = {}
        self.hits = 0
        self.misses = 0

    async def check(self, question: Question) -> None:
        """Returns when the answer is yes."""
        # To a SubjectAccessReview no name means all of them, and RBAC takes nothing away that it has given.
        if (await self._decision(replace(question, name=""))).allowed:
            return
        # A role may name single sandboxes.
        decision = await self._decision(question)
        if not decision.allowed:
            raise Denied(refusal_message(question, decision.reason), name=question.name)

    async def _decision(self, question: Question) -> Decision:
        return self._remembered(question) or await self._ask_once(question)

    def _remembered(self, question: Question) -> Decision | None:
        entry = self._decisions.get(question)
        if entry is None or entry[0] <= self._clock():
            return None
        self._decisions.move_to_end(question)
        self.hits += 1
        return entry[1]

    async def _ask_once(self, question: Question) -> Decision:
        task = self._asking.get(question)
        if task is None:
            self.misses += 1
            task = self._asking[question] = asyncio.create_task(self._ask(question))
            task.add_done_callback(lambda done: self._asked(question, done))
        # Shielded: the one who asked first may hang up, the others still want the answer.
        try:
            return await asyncio.shield(task)
        except ApiError as error:
            log.warning("asking whether %s may: %s", question.identity.user, error)
            raise Unchecked(
                "whether you may do this could not be checked: the API server did not answer"
            ) from error

    def _asked(self, question: Question, task: asyncio.Task[Decision]) -> None:
        del self._asking[question]
        if not task.cancelled():
            # Looked at, or asyncio complains about an error that nobody was left to hear.
            task.exception()

    async def _ask(self, question: Question) -> Decision:
        try:
            answer = await self._review(question)
        except Unavailable as error:
            if error.reason != "ConnectionFailed":
                raise
            # A kept connection that the API server has just closed looks like this; asking twice is harmless.
            answer = await self._review(question)
        status: Json = answer.get("status") or {}
        decision = Decision(
            # `denied` overrules: an authorizer that says no is not outvoted.
            allowed=status.get("allowed") is True and status.get("denied") is not True,
            reason=str(status.get("reason") or ""),
        )
        self._decisions[question] = (self._clock() + self._cache_seconds, decision)
        self._decisions.move_to_end(question)
        while len(self._decisions) > self._size:
            self._decisions.popitem(last=False)
        return decision

    async def _review(self, question: Question) -> Json:
        path = paths.subject_access_reviews()
        return await self._kube.request("POST", path, body=review(question), timeout=TIMEOUT)


def review(question: Question) -> Json:
    identity = question.identity
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": identity.user,
            "uid": identity.uid,
            "groups": list(identity.groups),
            "extra": {key: list(values) for key, values in identity.extra},
            "resourceAttributes": {
                "group": names.GROUP,
                "version": names.VERSION,
                "resource": names.SANDBOXES,
                "subresource": question.permission.subresource,
                "verb": question.permission.verb,
                "namespace": question.namespace,
                "name": question.name,
            },
        },
    }


def refusal_message(question: Question, reason: str) -> str:
    permission = question.permission
    resource = f"{names.SANDBOXES}/{permission.subresource}"
    message = (
        f'{names.SANDBOXES}.{names.GROUP} "{question.name}" is forbidden: user "{question.identity.user}" '
        f'cannot {permission.verb} resource "{resource}" in API group "{names.GROUP}" in the namespace '
        f'"{question.namespace}"'
    )
    # RBAC's own reason is empty when no rule matched; one that is there names a broken role.
    return f"{message}: {reason}" if reason else message
