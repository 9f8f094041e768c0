"""A cluster in memory with the operator in it: the real Store, queue, decide and execute, and a node that
runs pods as a test says. Time passes only when a test lets it.
"""

import itertools
import json
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial

from sandpod_crds.errors import ApiError
from sandpod_crds.names import ANNOTATION_WAKE
from sandpod_operator.cluster import Cluster
from sandpod_operator.events import Recorder
from sandpod_operator.execute import Executor
from sandpod_operator.isolation import Enforcement
from sandpod_operator.kinds import (
    CLAIM,
    INGRESS,
    KINDS,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    POLICY,
    POOL,
    SANDBOX,
    TEMPLATE,
    Kind,
)
from sandpod_operator.metrics import Metrics
from sandpod_operator.objects import Json, controller, entries, key_of, owner_uid, section, uid_of
from sandpod_operator.observations import Key
from sandpod_operator.pool.look import concerned
from sandpod_operator.pool.pools import Pools
from sandpod_operator.pool.reconcile import PoolReconciler
from sandpod_operator.reconcile import Reconciler
from sandpod_operator.resync import GRACE, RELISTED, Resync
from sandpod_operator.settings import Installation
from sandpod_operator.store import Store
from sandpod_operator.times import format_time
from sandpod_operator.workqueue import WorkQueue

from tests.support.fake_clock import FakeClock
from tests.support.operator_api import Api, Killed
from tests.support.operator_node import container, run_it
from tests.support.operator_objects import INSTALLATION, KEY, NOW
from tests.support.operator_runtime import Asker, Runtime

SANDBOX_PATH = f"/apis/sandpod.dev/v1alpha1/namespaces/{KEY.namespace}/sandboxes/{KEY.name}"
POD_PATH = f"/api/v1/namespaces/{KEY.namespace}/pods/{KEY.name}"
PODS_PATH = f"/api/v1/namespaces/{KEY.namespace}/pods"
CLAIMS_PATH = f"/api/v1/namespaces/{KEY.namespace}/persistentvolumeclaims"

MINUTE = 60.0


class World:
    def __init__(self, installation: Installation = INSTALLATION) -> None:
        self.installation = installation
        self.clock = FakeClock()
        # How far the clock on the wall was put forward.
        self.put_forward = timedelta(0)
        # When the operator made each of its calls, by a clock that nobody puts
        self.moments: list[float] = []
        self.api = Api(now=self.now, called=lambda: self.moments.append(self.clock.time()))
        # As the operator reaches it
        self.cluster: Cluster = self.api
        # The watch brings nothing for as long as this is set.
        self.blind = False
        # A watch has begun anew, and it is time to see what it did not tell.
        self._relisted = False
        # That time is about to come.
        self._compares = False
        # What the node makes of a pod that it finds; a test may put anything here.
        self.kubelet: Callable[[World, Json], None] = run_it
        # Volumes are made and grow as soon as somebody asks for it.
        self.has_volumes = True
        # By the UID of their pods: those that listen.
        self.runtimes: dict[str, Runtime] = {}
        # By their UID: pods of whose node nobody hears any more.
        self.silent: set[str] = set()
        # For the names of pools' pods
        self._numbers = itertools.count(1)
        self.boot()

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.clock.time()) + self.put_forward

    def put_clock(self, seconds: float) -> None:
        self.put_forward += timedelta(seconds=seconds)

    def boot(self) -> None:
        """A new process of the operator: all that it knows, it reads from the API server."""
        self.queue: WorkQueue[Key] = WorkQueue(clock=self.clock, jitter=lambda: 1.0)
        self.store = Store(look_at=self.queue.add, clock=self.clock.time)
        self.pool_queue: WorkQueue[Key] = WorkQueue(clock=self.clock, jitter=lambda: 1.0)
        self.asker = Asker()
        self.metrics = Metrics()
        self.recorder = Recorder(cluster=self.cluster, instance="test", metrics=self.metrics, now=self.now)
        pools = Pools(
            cluster=self.cluster,
            store=self.store,
            metrics=self.metrics,
            now=self.now,
            changed=self.pool_queue.add,
        )
        executor = Executor(
            cluster=self.cluster,
            store=self.store,
            teller=self.recorder,
            asker=self.asker,
            pools=pools,
            metrics=self.metrics,
            now=self.now,
        )
        self.reconciler = Reconciler(
            store=self.store,
            queue=self.queue,
            executor=executor,
            pools=pools,
            installation=self.installation,
            enforcement=lambda: Enforcement.UNKNOWN,
            metrics=self.metrics,
            now=self.now,
        )
        self.pool_reconciler = PoolReconciler(
            cluster=self.cluster,
            store=self.store,
            queue=self.pool_queue,
            pools=pools,
            installation=self.installation,
            metrics=self.metrics,
            now=self.now,
            # A history that is run again goes the same way.
            name=lambda pool: f"{pool}-{next(self._numbers)}",
        )
        self.resync = Resync(
            cluster=self.cluster,
            store=self.store,
            queue=self.queue,
            pool_queue=self.pool_queue,
            metrics=self.metrics,
            clock=self.clock.time,
        )
        self._observe_all()

    async def settle(self) -> None:
        """Until nobody has anything to do at this moment. An operator that is killed is started again."""
        for _ in range(200):
            try:
                if not await self._step():
                    return
            except Killed:
                self.boot()
        raise AssertionError(f"the world does not come to rest: {self.api.calls[-12:]}")

    async def wait(self, seconds: float) -> None:
        """Let time pass, step by step, with everything that happens in it."""
        end = self.clock.time() + seconds
        await self.settle()
        while self.clock.time() < end:
            self.clock.advance(min(self.clock.until_next() or seconds, end - self.clock.time()))
            self._collect()
            await self.settle()

    def busiest_minute(self, *, since: float = 0.0) -> int:
        """The most calls that the operator has made within 60 seconds."""
        first = bisect_left(self.moments, since)
        return max(
            (
                bisect_left(self.moments, self.moments[at] + MINUTE) - at
                for at in range(first, len(self.moments))
            ),
            default=0,
        )

    @property
    def sandbox(self) -> Json:
        return self.api.objects[SANDBOX_PATH]

    @property
    def status(self) -> Json:
        return section(self.sandbox, "status")

    @property
    def pod(self) -> Json:
        return self.api.objects[POD_PATH]

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
        self.see()
        if self._relisted:
            await self._compare()
        elif len(self.queue):
            await self._work(self.queue, self.reconciler.attempt)
        elif len(self.pool_queue):
            await self._work(self.pool_queue, self.pool_reconciler.attempt)
        elif not (self._nodes_work() or self.runtimes_answer()):
            await self.recorder.flush()
            return False
        return True

    async def _work(self, queue: WorkQueue[Key], attempt: Callable[[Key], Awaitable[None]]) -> None:
        """What a worker does with one key."""
        key = await queue.get()
        try:
            await attempt(key)
        finally:
            queue.done(key)

    def see(self) -> None:
        """What the API server has sent until now."""
        if self.blind:
            return
        for event, obj in self.api.log[self._seen :]:
            kind = BY_NAME.get(obj["kind"])
            if kind is None:
                continue
            if event == "DELETED" or not watched(kind, obj):
                self.store.deleted(kind, key_of(obj), uid=uid_of(obj))
            else:
                self.store.cache(kind).observe(obj)
            self._concern(kind, obj)
        self._seen = len(self.api.log)

    def list_again(self) -> None:
        """The watch was cut off and begins anew with what is there. What is gone it does not tell: until the
        resync has found it out, the operator believes in it.
        """
        self.blind = False
        self._observe_all()
        self._compare_later()

    def _observe_all(self) -> None:
        self._seen = len(self.api.log)
        for kind in KINDS:
            for obj in self._listed(kind):
                self.store.cache(kind).observe(obj)
                self._concern(kind, obj)

    async def _compare(self) -> None:
        """As the resync does it: a list, and some time for the watch to say the same."""
        self._relisted = False
        try:
            phantoms = await self.resync.compare()
        except ApiError:
            self.clock.call_at(self.clock.time() + GRACE, self._compare_later)
        else:
            self.clock.call_at(self.clock.time() + GRACE, partial(self.resync.drop, phantoms))

    def _compare_later(self) -> None:
        def due() -> None:
            self._relisted, self._compares = True, False

        # Also after several such events: one look is enough for all of them.
        if not self._compares:
            self._compares = True
            self.clock.call_at(self.clock.time() + RELISTED, due)

    def _listed(self, kind: Kind) -> list[Json]:
        return [obj for obj in self.api.listing(f"/{kind.plural}")["items"] if watched(kind, obj)]

    def _concern(self, kind: Kind, obj: Json) -> None:
        for key in self.store.concerned(kind, obj):
            self.queue.add(key)
        for key in concerned(kind, obj, self.store):
            self.pool_queue.add(key)

    def _nodes_work(self) -> bool:
        before = len(self.api.log)
        for path, obj in list(self.api.objects.items()):
            if obj.get("kind") == "Pod":
                self._tend_pod(path, obj)
            elif self._abandoned(obj) or "deletionTimestamp" in obj["metadata"]:
                if "finalizers" not in obj["metadata"]:
                    self._let_go(path, obj)
            elif obj.get("kind") == "PersistentVolumeClaim" and self.has_volumes:
                wanted = obj["spec"]["resources"]["requests"]
                if section(obj, "status").get("capacity") != wanted:
                    self.api.change(path, {"status": {"phase": "Bound", "capacity": wanted}})
        return len(self.api.log) > before

    def _let_go(self, path: str, obj: Json) -> None:
        """A claim stays for as long as a pod that has a node uses it."""
        if obj.get("kind") == "PersistentVolumeClaim" and self._is_mounted(obj):
            if "deletionTimestamp" not in obj["metadata"]:
                self.api.change(path, {"metadata": {"deletionTimestamp": format_time(self.now())}})
        else:
            self.api.vanish(path)

    def _is_mounted(self, claim: Json) -> bool:
        name = claim["metadata"]["name"]
        pods = [each for each in self.api.objects.values() if each.get("kind") == "Pod"]
        placed = [pod for pod in pods if "nodeName" in pod["spec"]]
        volumes = [volume for pod in placed for volume in entries(pod["spec"], "volumes")]
        return any(section(each, "persistentVolumeClaim").get("claimName") == name for each in volumes)

    def _collect(self) -> None:
        """The garbage collector is never so quick as the operator, which knows more of a sandbox's pod."""
        for path, obj in list(self.api.objects.items()):
            if (
                obj.get("kind") == "Pod"
                and "deletionTimestamp" not in obj["metadata"]
                and self._abandoned(obj)
            ):
                self.api.vanish(path)

    def _tend_pod(self, path: str, pod: Json) -> None:
        if self._lost_its_pool(pod):
            self.api.vanish(path)
        elif "finalizers" in pod["metadata"] or uid_of(pod) in self.silent:
            # Somebody holds it, or nobody is there to end it.
            return
        elif "deletionTimestamp" in pod["metadata"]:
            if uid_of(pod) in self.runtimes:
                self.fall_asleep(uid_of(pod), reason="terminated")
            else:
                self.api.vanish(path)
        elif not section(pod, "spec").get("nodeName") and self._has_its_volumes(pod):
            self.kubelet(self, pod)

    def _has_its_volumes(self, pod: Json) -> bool:
        claims = [section(v, "persistentVolumeClaim") for v in entries(pod["spec"], "volumes")]
        names = [claim["claimName"] for claim in claims if claim]
        found = [self.api.objects.get(f"{CLAIMS_PATH}/{name}", {}) for name in names]
        return all(section(claim, "status").get("phase") == "Bound" for claim in found)

    def _lost_its_pool(self, pod: Json) -> bool:
        return controller(pod["metadata"]).get("kind") == "SandboxPool" and self._abandoned(pod)

    def _abandoned(self, obj: Json) -> bool:
        """The garbage collector removes what belongs to somebody who is gone."""
        owner = owner_uid(obj) if obj.get("kind") != "Event" else None
        return owner is not None and all(uid_of(each) != owner for each in self.api.objects.values())

    def runtimes_answer(self) -> bool:
        answered = False
        for key, ask in list(self.asker.wanted.items()):
            runtime = self.runtimes.get(ask.pod_uid)
            if runtime is None or ask.pod_uid in self.silent:
                continue
            del self.asker.wanted[key]
            answered = self.store.put_answer(key, runtime.hear(ask, now=self.now())) or answered
            self.queue.add(key)
            if runtime.sleepy:
                self.fall_asleep(ask.pod_uid, reason="requested", detail=runtime.sleepy)
        return answered

    def ask_awake(self, request: str) -> None:
        """As the gateway does it for somebody."""
        self.api.change(SANDBOX_PATH, {"metadata": {"annotations": {ANNOTATION_WAKE: request}}})

    def fall_asleep(self, pod_uid: str, *, reason: str = "idle", detail: str = "") -> None:
        """The runtime has decided, saved, and exits."""
        runtime = self.runtimes.pop(pod_uid)
        found = next(((p, o) for p, o in self.api.objects.items() if uid_of(o) == pod_uid), None)
        if found is None:
            # Somebody has deleted it by force meanwhile.
            return
        path, pod = found
        now = self.now()
        words = {
            "reason": reason,
            "detail": detail,
            "saved": True,
            "lastActiveAt": format_time(now - runtime.quiet_for),
            "endedAt": format_time(now),
        }
        terminated = {"exitCode": 0, "reason": "Completed", "message": json.dumps(words)}
        state = {"terminated": terminated}
        self.api.change(path, {"status": {"phase": "Succeeded", "containerStatuses": container(pod, state)}})


BY_NAME = {
    "Sandbox": SANDBOX,
    "Pod": POD,
    "PersistentVolumeClaim": CLAIM,
    "NetworkPolicy": NETWORK_POLICY,
    "Ingress": INGRESS,
    "SandboxTemplate": TEMPLATE,
    "SandboxPool": POOL,
    "SandboxPolicy": POLICY,
    "Namespace": NAMESPACE,
}


def watched(kind: Kind, obj: Json) -> bool:
    """What the API server sends: of children, those with our labels."""
    wanted = [each.split("=") for each in kind.selector.split(",")] if kind.selector is not None else []
    labels = section(obj["metadata"], "labels")
    return all(labels.get(name) == value for name, value in wanted)


def new_sandbox(spec: Json | None = None) -> Json:
    metadata = {"name": KEY.name, "namespace": KEY.namespace}
    return {"kind": "Sandbox", "metadata": metadata, "spec": spec or {}}
