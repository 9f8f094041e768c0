"""The cluster in memory, and an operator whose workers are all at it at once: their requests take turns, and
what the watch has of each kind comes when it comes. All of it by luck that can be had again.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, cast

from sandpod_crds.errors import Throttled, Unavailable
from sandpod_operator.kinds import KINDS, Kind
from sandpod_operator.objects import Json, controller, key_of, section, uid_of
from sandpod_operator.observations import Key
from sandpod_operator.pool.look import concerned
from sandpod_operator.workqueue import WorkQueue

from tests.support.operator_world import BY_NAME, World, watched

WORKERS, POOL_WORKERS = 8, 2
# Of so many turns, something has come to rest long before.
MOST_TURNS = 20_000


class Crowded:
    """An API server where others have their turns before and after each request; while the world is faulty,
    it does not take some, and of some nobody hears that it has.
    """

    def __init__(self, world: "ParallelWorld") -> None:
        self._world = world

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._world.api, name)

        async def in_turn(*arguments: Any, **options: Any) -> Json:
            await self._others(4)
            self._perhaps(0.02, Unavailable(503, "Unavailable", "not now"))
            self._perhaps(0.01, Throttled(429, "TooManyRequests", "slowly"))
            answer = await call(*arguments, **options)
            await self._others(6)
            self._perhaps(0.02, Unavailable(0, "Timeout", "no answer"))
            return answer

        return in_turn

    async def _others(self, most: int) -> None:
        for _ in range(self._world.luck.randrange(most)):
            await asyncio.sleep(0)

    def _perhaps(self, chance: float, error: Exception) -> None:
        if self._world.faulty and self._world.luck.random() < chance:
            raise error


class ParallelWorld(World):
    def __init__(self, luck: Random) -> None:
        self.luck = luck
        self.faulty = False
        # What must never be, and was.
        self.wrong: list[str] = []
        # By the UID of their pod, those that it was given to.
        self._served: dict[str, set[str]] = {}
        # By kind, how much of the log the watch has brought.
        self._brought: dict[Kind, int] = {}
        super().__init__()

    def boot(self) -> None:
        self.cluster = cast("Any", Crowded(self))
        super().boot()

    def _observe_all(self) -> None:
        super()._observe_all()
        self._brought = dict.fromkeys(KINDS, len(self.api.log))

    def see(self) -> None:
        for kind in KINDS:
            self._bring(kind, chance=0.7)

    def _bring(self, kind: Kind, *, chance: float) -> None:
        while self._brought[kind] < len(self.api.log) and self.luck.random() < chance:
            event, obj = self.api.log[self._brought[kind]]
            self._brought[kind] += 1
            if BY_NAME.get(obj["kind"]) is kind:
                self._hear(kind, event, obj)

    def _hear(self, kind: Kind, event: str, obj: Json) -> None:
        news = True
        if event == "DELETED" or not watched(kind, obj):
            self.store.deleted(kind, key_of(obj), uid=uid_of(obj))
        else:
            news = self.store.cache(kind).observe(obj)
        # As in the operator, which knows its own writes.
        for key in self.store.concerned(kind, obj) if news else ():
            self.queue.add(key)
        for key in concerned(kind, obj, self.store):
            self.pool_queue.add(key)

    async def settle(self) -> None:
        at_work: set[asyncio.Task[None]] = set()
        pool_at_work: set[asyncio.Task[None]] = set()
        for _ in range(MOST_TURNS):
            if self.luck.random() < 0.5:
                self.see()
            await self._employ(at_work, self.queue, self.reconciler.attempt, most=WORKERS)
            await self._employ(pool_at_work, self.pool_queue, self.pool_reconciler.attempt, most=POOL_WORKERS)
            await asyncio.sleep(0)
            self.check()
            if self.luck.random() < 0.3:
                self._nodes_work()
            if self.luck.random() < 0.3:
                self.runtimes_answer()
            busy = at_work or pool_at_work or len(self.queue) or len(self.pool_queue)
            if not (busy or self._catches_up() or self._nodes_work() or self.runtimes_answer()):
                await self.recorder.flush()
                return
        raise AssertionError(f"the world does not come to rest: {self.api.calls[-12:]}")

    async def _employ(
        self,
        at_work: set[asyncio.Task[None]],
        queue: WorkQueue[Key],
        attempt: Callable[[Key], Awaitable[None]],
        *,
        most: int,
    ) -> None:
        for done in [each for each in at_work if each.done()]:
            at_work.discard(done)
            done.result()
        while len(queue) and len(at_work) < most:
            at_work.add(asyncio.create_task(self._work(queue, attempt)))
            # It takes its key before the next one looks.
            await asyncio.sleep(0)

    def _catches_up(self) -> bool:
        """Whether the watch had more to bring."""
        behind = [kind for kind in KINDS if self._brought[kind] < len(self.api.log)]
        for kind in behind:
            self._bring(kind, chance=1.0)
        return bool(behind)

    def check(self) -> None:
        """At every moment: a sandbox has one pod at most, and a pod served one sandbox at most."""
        pods = [obj for obj in self.api.objects.values() if obj["kind"] == "Pod"]
        sandboxes = {uid_of(obj) for obj in self.api.objects.values() if obj["kind"] == "Sandbox"}
        staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        numbers = Counter(controller(pod["metadata"]).get("uid") for pod in staying)
        self.wrong += [f"{n} pods of {uid}" for uid, n in numbers.items() if n > 1 and uid in sandboxes]
        for pod in pods:
            owner = controller(pod["metadata"])
            if owner.get("kind") == "Sandbox":
                self._serves(uid_of(pod), owner["uid"])
        for obj in self.api.objects.values():
            if obj["kind"] == "Sandbox" and "podUID" in section(obj, "status"):
                self._serves(obj["status"]["podUID"], uid_of(obj))

    def _serves(self, pod: str, sandbox: str) -> None:
        served = self._served.setdefault(pod, set())
        served.add(sandbox)
        if len(served) > 1:
            self.wrong.append(f"{pod} was given to {served}")
