"""What random histories of the operator have in common: the faults that can strike at any time, what must not
happen at any of its calls, and how many of them it may make.
"""

import asyncio
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import wraps
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sandpod_crds import durations
from sandpod_crds.errors import ApiError, Conflict, Forbidden, Throttled, Unavailable
from sandpod_crds.names import GROUP, LABEL_NETWORK
from sandpod_operator.objects import Json, controller, section, uid_of
from sandpod_operator.pods import workspace_claim
from sandpod_operator.refusals import is_labelled
from sandpod_operator.times import parse_time

from tests.support.operator_api import Killed
from tests.support.operator_node import crash_it, hold_it, run_it, run_it_deaf
from tests.support.operator_objects import IMAGE
from tests.support.operator_scenarios import TEMPLATE_PATH
from tests.support.operator_world import MINUTE, World

OURS = f"/apis/{GROUP}/v1alpha1/namespaces/team/sandboxes"
MANY = 1000
PODS = "/api/v1/namespaces/team/pods"
# For each sandbox in steady failure: a start each few seconds at first, then each five minutes.
MOST_CALLS_A_MINUTE = 6
# What had gathered before, and the first starts that fail.
MOST_CALLS_AT_ONCE = 60
# Once what had gathered is done, and pauses have grown.
UNTIL_CALM = 5 * MINUTE

ERRORS: list[ApiError] = [
    Unavailable(500, "InternalError", "no leader"),
    Unavailable(0, "Timeout", "no answer"),
    Throttled(429, "TooManyRequests", "slowly", retry_after=1.0),
    Conflict(409, "Conflict", "the object has been modified"),
]
KUBELETS = [run_it, run_it, crash_it, hold_it, run_it_deaf]
Trap = Callable[[int, str], None]


# Until the next thing happens: none at all, as long as things take, or so long that more is due.
PAUSES = st.sampled_from([None, 0, 0, 1, 5, 70])


def happens(**arguments: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A rule after which the operator gets some time, or none. With a rule for that alone, most histories
    would be over before the first pod.
    """

    def after_which_time_passes(what: Callable[..., None]) -> Callable[..., None]:
        @wraps(what)
        def step(machine: "Machine", *, then: float | None = None, **given: Any) -> None:
            what(machine, **given)
            if then is not None:
                machine.pass_time(then)

        return cast("Callable[..., None]", rule(**arguments, then=PAUSES)(step))

    return after_which_time_passes


class Machine(RuleBasedStateMachine):
    # How many things the operator looks after
    most = 1

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = World()
        self.world.api.put("/api/v1/namespaces/team", {"kind": "Namespace", "metadata": {"name": "team"}})
        self.world.api.before = self._before
        self.world.api.after = self._after
        self.traps: dict[str, Trap] = {}
        # The namespace's quota allows no pod and no volume more.
        self.full = False
        # For so many hours in all, the clock was put back.
        self.put_back = 0
        # By the UID of their pod, those that it was given to.
        self.served: dict[str, set[str]] = {}
        # By their UID: pods behind the wall that the present call is about.
        self.walled: list[str] = []
        # What must never be, said by the call at which it was.
        self.wrong: list[str] = []

    # What happens to the operator

    @happens()
    def kill(self) -> None:
        self.world.boot()

    @happens(after=st.booleans(), later=st.integers(0, 4))
    def kill_in_the_middle(self, after: bool, later: int) -> None:
        self._set_trap("after" if after else "before", later, Killed("now"), times=1)

    @happens(
        after=st.booleans(), later=st.integers(0, 4), error=st.sampled_from(ERRORS), times=st.integers(1, 4)
    )
    def fail(self, after: bool, later: int, error: ApiError, times: int) -> None:
        self._set_trap("after" if after else "before", later, error, times=times)

    @happens()
    def go_blind(self) -> None:
        self.world.blind = True

    @happens()
    def see_again(self) -> None:
        self.world.list_again()

    @happens(hours=st.sampled_from([-1, 1]))
    def put_the_clock(self, hours: int) -> None:
        self.put_back += max(-hours, 0)
        self.world.put_clock(hours * 3600)

    @rule(seconds=st.sampled_from([0, 1, 5, 30, 70, 400]))
    def go_on(self, seconds: float) -> None:
        self.pass_time(seconds)

    @happens(kubelet=st.sampled_from(KUBELETS))
    def treat_pods_so(self, kubelet: Any) -> None:
        self.world.kubelet = kubelet

    @happens(there=st.booleans())
    def have_volumes(self, there: bool) -> None:
        self.world.has_volumes = there

    @happens(full=st.booleans())
    def fill_the_quota(self, full: bool) -> None:
        self.full = full

    # What must never be

    @invariant()
    def nothing_was_wrong(self) -> None:
        assert not self.wrong, self.wrong

    @invariant()
    def one_pod_at_most(self) -> None:
        owners = [controller(pod["metadata"]) for pod in self.pods if _stays(pod)]
        served = [owner["uid"] for owner in owners if owner.get("kind") == "Sandbox"]
        assert len(served) == len(set(served))

    def pass_time(self, seconds: float) -> None:
        world = self.world
        before, since = len(world.api.calls), world.clock.time()
        self.loop.run_until_complete(world.wait(seconds))
        made = world.api.calls[before:]
        at_once, a_minute = MOST_CALLS_AT_ONCE * self.most, MOST_CALLS_A_MINUTE * self.most
        assert len(made) <= at_once + a_minute * seconds / MINUTE, made
        assert world.busiest_minute(since=since) <= at_once, made
        assert world.busiest_minute(since=since + UNTIL_CALM) <= 2 * a_minute, made

    def leave_in_peace(self) -> None:
        """From now on nothing goes wrong any more."""
        world = self.world
        self.traps.clear()
        self.full = False
        named = {section(sandbox, "status").get("podUID") for sandbox in self.sandboxes.values()}
        for pod in self.pods:
            # Somebody has made sure that its node is gone, or that a pod that is nobody's goes.
            nobodys = not controller(pod["metadata"]) and uid_of(pod) not in named
            if uid_of(pod) in world.silent or nobodys:
                world.api.vanish(f"{PODS}/{pod['metadata']['name']}")
        for path, obj in list(world.api.objects.items()):
            # Who has taken the labels off what would have gone after its sandbox removes it himself.
            unseen = obj["kind"] == "NetworkPolicy" and not is_labelled(obj)
            if unseen and f"{OURS}/{obj['metadata']['name'].removesuffix('-sandbox')}" not in self.sandboxes:
                world.api.vanish(path)
        world.kubelet, world.has_volumes = run_it, True
        for uid in self.bound_runtimes():
            if world.runtimes[uid].draining:
                # Whoever has decided to sleep, does.
                world.fall_asleep(uid)
        world.list_again()

    # What there is

    @property
    def sandboxes(self) -> dict[str, Json]:
        return {path: obj for path, obj in self.world.api.objects.items() if obj["kind"] == "Sandbox"}

    @property
    def pods(self) -> list[Json]:
        return [obj for obj in self.world.api.objects.values() if obj["kind"] == "Pod"]

    def pods_of(self, sandbox: Json) -> list[Json]:
        return [pod for pod in self.pods if controller(pod["metadata"]).get("uid") == uid_of(sandbox)]

    def volumes_in_use(self) -> set[str]:
        """By a pod, or by a sandbox that sleeps."""
        kept = [section(sandbox, "status").get("workspaceClaim") for sandbox in self.sandboxes.values()]
        mounted = [workspace_claim(pod) for pod in self.pods]
        return {claim for claim in (*kept, *mounted) if claim is not None}

    def bound_runtimes(self) -> list[str]:
        there = {uid_of(pod) for pod in self.pods} - self.world.silent
        return [uid for uid, runtime in self.world.runtimes.items() if runtime.bound and uid in there]

    @property
    def policies(self) -> list[Json]:
        found = self.world.api.objects.values()
        return [section(obj, "spec") for obj in found if obj["kind"] == "SandboxPolicy"]

    def effective(self, sandbox: Json) -> Json:
        """For the few fields that these templates have."""
        own = section(sandbox, "spec")
        if not ("templateRef" in own or "poolRef" in own):
            return own
        return {**section(self.world.api.objects.get(TEMPLATE_PATH, {}), "spec"), **own}

    def wanted_image(self, sandbox: Json) -> str:
        return self.effective(sandbox).get("image", IMAGE)

    def forbidden(self, sandbox: Json) -> bool:
        """By the few policies that these histories have."""
        spec = self.effective(sandbox)
        return any(
            policy.get("maxSandboxes", MANY) <= self._older(sandbox)
            or (policy.get("allowKeepAlive") is False and bool(spec.get("keepAlive")))
            or not any(
                fnmatchcase(self.wanted_image(sandbox), each)
                # The default image is always allowed.
                for each in (IMAGE, *policy.get("allowedImages", ["*"]))
            )
            for policy in self.policies
        )

    def _older(self, sandbox: Json) -> int:
        """How many were there before it: of the same second, by name."""
        place = (sandbox["metadata"]["creationTimestamp"], sandbox["metadata"]["name"])
        others = (each["metadata"] for each in self.sandboxes.values())
        return sum((each["creationTimestamp"], each["name"]) < place for each in others)

    def wanted_sleep_after(self, sandbox: Json) -> float | None:
        spec = self.effective(sandbox)
        if spec.get("keepAlive") and all(each.get("allowKeepAlive", True) for each in self.policies):
            return None
        return durations.parse(spec.get("sleepAfter", "10m"))

    # At each call of the operator

    def _before(self, number: int, call: str) -> None:
        self._judge_deletion(call)
        self.walled = self._behind(call)
        if self.full and call.startswith("POST") and call.endswith(("/pods", "/persistentvolumeclaims")):
            raise Forbidden(403, "Forbidden", f"{call}: exceeded quota: small")
        self.traps.get("before", _nothing)(number, call)

    def _after(self, number: int, call: str) -> None:
        self._judge_starts(call)
        self._judge_walls(call)
        self.traps.get("after", _nothing)(number, call)

    def _judge_deletion(self, call: str) -> None:
        """Only what it can see can be held against it."""
        verb, _, path = call.partition(" ")
        obj = self.world.api.objects.get(path)
        if verb != "DELETE" or obj is None:
            return
        if obj["kind"] == "PersistentVolumeClaim" and obj["metadata"]["name"] in self.volumes_in_use():
            # Who uses it does not change without the operator.
            self.wrong.append(f"{call}, in which somebody's files are")
        if self.world.blind:
            return
        if obj["kind"] == "Pod" and self._works(obj):
            self.wrong.append(f"{call}, in which somebody works")
        if obj["kind"] == "Sandbox" and not self.overdue(obj):
            self.wrong.append(f"{call} before its time is over")

    def _judge_starts(self, call: str) -> None:
        for pod in self.pods:
            owner = controller(pod["metadata"])
            owners = self.served.setdefault(uid_of(pod), set())
            if owner.get("kind") != "Sandbox" or owner["uid"] in owners:
                continue
            owners.add(owner["uid"])
            if len(owners) > 1:
                self.wrong.append(f"{call} gives a pod to a second sandbox")
            sandbox = self.sandboxes.get(f"{OURS}/{owner['name']}")
            if sandbox is None or uid_of(sandbox) != owner["uid"] or self.world.blind:
                continue
            if self.forbidden(sandbox):
                self.wrong.append(f"{call} against a policy")

    def _behind(self, call: str) -> list[str]:
        """The UIDs of the pods behind the wall that this call is to change or take down."""
        verb, _, path = call.partition(" ")
        wall = self.world.api.objects.get(path)
        if wall is None or wall["kind"] != "NetworkPolicy" or verb not in ("PATCH", "DELETE"):
            return []
        # One that lost its labels, the operator does not see.
        return [uid_of(pod) for pod in self.pods if _is_behind(pod, wall) and is_labelled(pod)]

    def _judge_walls(self, call: str) -> None:
        walls = [obj for obj in self.world.api.objects.values() if obj["kind"] == "NetworkPolicy"]
        for pod in self.pods:
            let_out = uid_of(pod) in self.walled and not any(_is_behind(pod, wall) for wall in walls)
            if let_out and not self.world.blind:
                self.wrong.append(f"{call} lets {pod['metadata']['name']} out of its wall")

    def _works(self, pod: Json) -> bool:
        """The status says so. The pod may not have been told yet."""
        runtime, uid = self.world.runtimes.get(uid_of(pod)), uid_of(pod)
        found = (each for each in self.sandboxes.values() if section(each, "status").get("podUID") == uid)
        sandbox = next(found, None)
        if sandbox is None or runtime is None or not runtime.bound:
            return False
        known = "startedAt" in section(sandbox, "status")
        return _stays(pod) and known and not section(sandbox, "spec").get("paused")

    def overdue(self, sandbox: Json) -> bool:
        lifetime = section(self.effective(sandbox), "lifetime")
        now, since = self.world.now(), section(sandbox, "status").get("asleepSince")
        age = (now - parse_time(sandbox["metadata"]["creationTimestamp"])).total_seconds()
        slept = (now - parse_time(since)).total_seconds() if since else -1.0
        oldest, longest = lifetime.get("maxAge"), lifetime.get("deleteAfterAsleep")
        return bool(
            (oldest and age >= durations.parse(oldest)) or (longest and slept >= durations.parse(longest))
        )

    def _set_trap(self, moment: str, later: int, error: BaseException, *, times: int) -> None:
        first = len(self.world.api.calls) + later + 1

        def spring(number: int, call: str) -> None:
            if first <= number < first + times:
                raise error

        self.traps[moment] = spring


def _is_behind(pod: Json, wall: Json) -> bool:
    selected = section(section(wall["spec"], "podSelector"), "matchLabels").get(LABEL_NETWORK)
    return section(pod["metadata"], "labels").get(LABEL_NETWORK) == selected is not None


def _stays(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _nothing(number: int, call: str) -> None:
    pass
