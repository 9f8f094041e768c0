"""A cluster in memory with the operator in it: the real Store, queue, decide and execute, and a node that
runs pods as a test says. Time passes only when a test lets it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from sandpod_crds.names import APP_NAME, LABEL_MANAGED_BY, SANDBOX_CONTAINER
from sandpod_operator.events import Recorder
from sandpod_operator.execute import Executor
from sandpod_operator.metrics import Metrics
from sandpod_operator.objects import Json, entries, key_of, section, uid_of
from sandpod_operator.observations import Answer, Answered, Key
from sandpod_operator.plan import Ask
from sandpod_operator.reconcile import Reconciler
from sandpod_operator.store import Store
from sandpod_operator.times import format_time
from sandpod_operator.workqueue import WorkQueue

from tests.support.fake_clock import FakeClock
from tests.support.operator_api import Api, Killed
from tests.support.operator_objects import INSTALLATION, KEY, NOW

SANDBOX = f"/apis/sandpod.dev/v1alpha1/namespaces/{KEY.namespace}/sandboxes/{KEY.name}"
POD = f"/api/v1/namespaces/{KEY.namespace}/pods/{KEY.name}"


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.api = Api(now=self.now)
        # What the node makes of a pod that it finds; a test may put anything here.
        self.kubelet: Callable[[World, Json], None] = run_it
        # What the runtimes hold: the UID of each pod whose runtime listens, and whether it is bound.
        self.runtimes: dict[str, bool] = {}
        self.boot()

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.clock.time())

    def boot(self) -> None:
        """A new process of the operator: all that it knows, it reads from the API server."""
        self.store = Store()
        self.queue: WorkQueue[Key] = WorkQueue(clock=self.clock, jitter=lambda: 1.0)
        self.asker = Asker()
        self.metrics = Metrics()
        self.recorder = Recorder(cluster=self.api, instance="test", metrics=self.metrics, now=self.now)
        executor = Executor(
            cluster=self.api,
            store=self.store,
            teller=self.recorder,
            asker=self.asker,
            metrics=self.metrics,
            now=self.now,
        )
        self.reconciler = Reconciler(
            store=self.store,
            queue=self.queue,
            executor=executor,
            installation=INSTALLATION,
            metrics=self.metrics,
            now=self.now,
        )
        for cache, plural in ((self.store.sandboxes, "sandboxes"), (self.store.pods, "pods")):
            for obj in self.api.listing(f"/{plural}")["items"]:
                if watched(obj):
                    cache.observe(obj)
                    self.queue.add(key_of(obj))
        self._seen = len(self.api.log)

    async def settle(self) -> None:
        """Until nobody has anything to do at this moment. An operator that is killed is started again."""
        for _ in range(200):
            try:
                if not await self._step():
                    return
            except Killed:
                self.boot()
        raise AssertionError("the world does not come to rest")

    async def wait(self, seconds: float) -> None:
        """Let time pass, step by step, with everything that happens in it."""
        end = self.clock.time() + seconds
        await self.settle()
        while self.clock.time() < end:
            self.clock.advance(min(self.clock.until_next() or seconds, end - self.clock.time()))
            await self.settle()

    @property
    def sandbox(self) -> Json:
        return self.api.objects[SANDBOX]

    @property
    def status(self) -> Json:
        return section(self.sandbox, "status")

    @property
    def pod(self) -> Json:
        return self.api.objects[POD]

    @property
    def events(self) -> list[str]:
        found = [o for path, o in self.api.objects.items() if "/events/" in path]
        return [
            event["reason"] for event in sorted(found, key=lambda e: int(e["metadata"]["resourceVersion"]))
        ]

    def ready(self) -> tuple[str, str, str]:
        condition = next(c for c in entries(self.status, "conditions") if c["type"] == "Ready")
        return self.status["phase"], condition["status"], condition["reason"]

    async def _step(self) -> bool:
        self._watch()
        if len(self.queue):
            await self._work()
        elif not (self._nodes_work() or self._runtimes_answer()):
            await self.recorder.flush()
            return False
        return True

    async def _work(self) -> None:
        """What a worker does with one key."""
        key = await self.queue.get()
        try:
            await self.reconciler.attempt(key)
        finally:
            self.queue.done(key)

    def _watch(self) -> None:
        for kind, obj in self.api.log[self._seen :]:
            pods = obj["kind"] == "Pod"
            if not watched(obj):
                continue
            if kind == "DELETED":
                forget = self.store.pod_deleted if pods else self.store.sandbox_deleted
                forget(key_of(obj), uid=uid_of(obj))
            else:
                (self.store.pods if pods else self.store.sandboxes).observe(obj)
            self.queue.add(key_of(obj))
        self._seen = len(self.api.log)

    def _nodes_work(self) -> bool:
        before = len(self.api.log)
        for path, obj in list(self.api.objects.items()):
            if obj.get("kind") == "Pod":
                if "deletionTimestamp" in obj["metadata"]:
                    self.api.vanish(path)
                elif not section(obj, "spec").get("nodeName"):
                    self.kubelet(self, obj)
        return len(self.api.log) > before

    def _runtimes_answer(self) -> bool:
        answered = False
        for key, ask in list(self.asker.wanted.items()):
            if ask.pod_uid in self.runtimes:
                again, self.runtimes[ask.pod_uid] = self.runtimes[ask.pod_uid], True
                answer = Answer(
                    pod_uid=ask.pod_uid,
                    outcome=Answered.BOUND,
                    at=self.now(),
                    version="0.1.0",
                    spec_hash="" if again else ask.spec_hash,
                )
                del self.asker.wanted[key]
                answered = self.store.put_answer(key, answer)
                self.queue.add(key)
        return answered


def watched(obj: Json) -> bool:
    """What the API server sends: sandboxes, and pods with our labels."""
    labels = section(obj["metadata"], "labels")
    return obj["kind"] == "Sandbox" or (obj["kind"] == "Pod" and labels.get(LABEL_MANAGED_BY) == APP_NAME)


class Asker:
    def __init__(self) -> None:
        self.wanted: dict[Key, Ask] = {}

    def want(self, key: Key, ask: Ask | None) -> None:
        if ask is None:
            self.wanted.pop(key, None)
        else:
            self.wanted[key] = ask


def assign(world: World, pod: Json, status: Json) -> None:
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    change = {"spec": {"nodeName": "node-1"}, "status": status}
    world.api.objects[path]["metadata"].setdefault("generation", 1)
    world.api.change(path, change)


def run_it(world: World, pod: Json) -> None:
    """The usual: the container runs, and the runtime in it listens."""
    state = {"running": {"startedAt": format_time(world.now())}}
    assign(world, pod, {"phase": "Running", "podIP": "10.1.0.7", "containerStatuses": container(pod, state)})
    world.runtimes[uid_of(pod)] = False


def run_it_deaf(world: World, pod: Json) -> None:
    """The container runs, and nothing in it ever answers."""
    state = {"running": {"startedAt": format_time(world.now())}}
    assign(world, pod, {"phase": "Running", "podIP": "10.1.0.7", "containerStatuses": container(pod, state)})


def crash_it(world: World, pod: Json) -> None:
    state = {"terminated": {"exitCode": 1, "reason": "Error", "message": "no such option"}}
    assign(world, pod, {"phase": "Failed", "podIP": "10.1.0.7", "containerStatuses": container(pod, state)})


def hold_it(world: World, pod: Json) -> None:
    """The image cannot be pulled."""
    if pod["status"].get("containerStatuses"):
        return
    state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    world.api.change(path, {"status": {"containerStatuses": container(pod, state)}})


def container(pod: Json, state: Json) -> list[Json]:
    return [{"name": SANDBOX_CONTAINER, "image": pod["spec"]["containers"][0]["image"], "state": state}]


def new_sandbox(spec: Json | None = None) -> Json:
    metadata = {"name": KEY.name, "namespace": KEY.namespace}
    return {"kind": "Sandbox", "metadata": metadata, "spec": spec or {}}
