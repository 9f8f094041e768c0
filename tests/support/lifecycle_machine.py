"""Random histories of sandboxes, in a cluster where everything can go wrong at any time. What must never be,
is looked for after every step; what must be in the end, when nothing goes wrong any more.

HYPOTHESIS_PROFILE=long tries many more and longer ones.
"""

import os
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition
from sandpod_crds.names import ANNOTATION_WAKE, CHILD_LABELS, LABEL_SANDBOX_UID
from sandpod_operator.objects import Json, controller, entries, is_left_by_a_pool, section, uid_of
from sandpod_operator.refusals import is_labelled

from tests.support.operator_machine import OURS, PODS, Machine, happens
from tests.support.operator_node import crash_it, evict_it, kill_it, silence_it
from tests.support.operator_scenarios import TEMPLATE_PATH, children, exposed_hosts, hosts
from tests.support.operator_world import new_sandbox

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
HOUR = 3600.0
# The longest pause of a start, and the longest lifetime here.
LONGEST = 1100.0
PICK = st.integers(0, 7)

# What somebody may take off an object: a label by which it is watched, or whose it is.
TAKEN_OFF: tuple[Json, ...] = (
    *({"labels": {label: None}} for label in CHILD_LABELS),
    {"ownerReferences": []},
)
ALONE: tuple[Json, ...] = (
    {},
    {"workspace": {"size": "1Gi"}},
    {"workspace": {"size": "1Gi", "reclaim": "Retain"}, "setup": ["make"]},
    {"keepAlive": True},
    {"paused": True},
    {"sleepAfter": "5m", "network": {"egress": "None"}},
    {"ports": [{"port": 8080}, {"port": 9000, "access": "Private"}]},
)
CHANGES: tuple[Json, ...] = (
    {"paused": True},
    {"paused": False},
    {"keepAlive": True},
    {"keepAlive": False},
    {"sleepAfter": "1m"},
    {"image": "other:1"},
    {"network": {"egress": "None"}},
    {"workspace": {"size": "2Gi"}},
    {"ports": [{"port": 8080, "tokenVersion": 2}]},
    {"ports": [{"port": 9000}]},
    {"ports": None},
)


def one_of_its(name: str) -> st.SearchStrategy[Json]:
    """Of what this kind of history has to choose from."""
    return st.runner().flatmap(lambda machine: st.sampled_from(getattr(machine, name)))


class Lifecycle(Machine):
    names: tuple[str, ...] = ("box",)
    specs: tuple[Json, ...] = ALONE
    changes: tuple[Json, ...] = CHANGES
    # In how many histories something happened
    lived: ClassVar[Counter[str]] = Counter()

    def teardown(self) -> None:
        self.lived.update(("histories", *self._what_was_lived()))
        try:
            self._in_the_end()
        finally:
            self.loop.close()

    def _what_was_lived(self) -> Iterable[str]:
        told = [section(obj, "status") for _, obj in self.world.api.log if obj["kind"] == "Sandbox"]
        yield from {status["phase"] for status in told if "phase" in status}
        yield from {what for what in ("wakes", "restarts") for status in told if status.get(what)}

    # What people do

    @initialize(spec=one_of_its("specs"), seconds=st.sampled_from([0, 0.5, 5, 30]))
    def begin(self, spec: Json, seconds: float) -> None:
        self.create(name=self.names[0], spec=spec)
        self.pass_time(seconds)

    @happens(name=one_of_its("names"), spec=one_of_its("specs"))
    def create(self, name: str, spec: Json) -> None:
        sandbox = new_sandbox(spec)
        sandbox["metadata"]["name"] = name
        if f"{OURS}/{name}" not in self.sandboxes:
            self.world.api.put(f"{OURS}/{name}", sandbox)

    @precondition(lambda self: self.sandboxes)
    @happens(pick=PICK, change=one_of_its("changes"))
    def edit(self, pick: int, change: Json) -> None:
        # A workspace cannot be taken away, nor its reclaim forgotten.
        self.world.api.change(self._any(self.sandboxes, pick), {"spec": change})

    @precondition(lambda self: self.sandboxes)
    @happens(pick=PICK)
    def delete(self, pick: int) -> None:
        self.world.api.vanish(self._any(self.sandboxes, pick))

    @precondition(lambda self: self.sandboxes)
    @happens(pick=PICK)
    def ask_awake(self, pick: int) -> None:
        path = self._any(self.sandboxes, pick)
        request = f"request {len(self.world.api.log)}"
        self.world.api.change(path, {"metadata": {"annotations": {ANNOTATION_WAKE: request}}})

    @precondition(lambda self: self.pods)
    @happens(pick=PICK, force=st.booleans())
    def delete_the_pod(self, pick: int, force: bool) -> None:
        path = self._any_pod(pick)
        if force:
            self.world.api.vanish(path)
        else:
            self.world.api.change(path, {"metadata": {"deletionTimestamp": "2026-11-18T12:10:00Z"}})

    @happens(what=st.sampled_from(["networkpolicies", "persistentvolumeclaims", "ingresses"]))
    def delete_a_child(self, what: str) -> None:
        used = self._claims_in_use()
        for path in [p for p in self.world.api.objects if p.split("/")[-2] == what]:
            if path.split("/")[-1] not in used:
                self.world.api.vanish(path)

    @precondition(lambda self: self._untouched())
    @happens(pick=PICK, change=st.sampled_from(TAKEN_OFF))
    def edit_a_child(self, pick: int, change: Json) -> None:
        self.world.api.change(self._any(self._untouched(), pick), {"metadata": change})

    # What the cluster does

    @precondition(lambda self: self.bound_runtimes())
    @happens(pick=PICK, reason=st.sampled_from(["idle", "requested"]))
    def fall_asleep(self, pick: int, reason: str) -> None:
        self.world.fall_asleep(self._any(self.bound_runtimes(), pick), reason=reason)

    @precondition(lambda self: self.bound_runtimes())
    @happens(pick=PICK, seconds=st.sampled_from([0, 0.5, 30]))
    def fall_asleep_and_be_wanted(self, pick: int, seconds: float) -> None:
        self.fall_asleep(pick=pick, reason="idle")
        self.pass_time(seconds)
        if self.sandboxes:
            self.ask_awake(pick=pick)

    @precondition(lambda self: self.bound_runtimes())
    @happens(pick=PICK)
    def decide_to_sleep(self, pick: int) -> None:
        self.world.runtimes[self._any(self.bound_runtimes(), pick)].draining = True

    @precondition(lambda self: self.pods)
    @happens(pick=PICK)
    def crash(self, pick: int) -> None:
        pod = self.world.api.objects[self._any_pod(pick)]
        self.world.runtimes.pop(uid_of(pod), None)
        crash_it(self.world, pod)

    @precondition(lambda self: self.pods)
    @happens(pick=PICK)
    def evict(self, pick: int) -> None:
        evict_it(self.world, self.world.api.objects[self._any_pod(pick)])

    @precondition(lambda self: self.pods)
    @happens(pick=PICK)
    def run_out_of_memory(self, pick: int) -> None:
        kill_it(self.world, self.world.api.objects[self._any_pod(pick)])

    @precondition(lambda self: self.bound_runtimes())
    @happens(pick=PICK)
    def lose_the_node(self, pick: int) -> None:
        uid = self._any(self.bound_runtimes(), pick)
        silence_it(self.world, next(pod for pod in self.pods if uid_of(pod) == uid))

    # What must be in the end

    def _in_the_end(self) -> None:
        self.leave_in_peace()
        # Only the end of a lifetime waits for as long as the clock was put back.
        lifetimes = any("lifetime" in self.effective(each) for each in self.sandboxes.values())
        self.pass_time(LONGEST + (HOUR * self.put_back if lifetimes else 0))
        self._rest()
        for sandbox in self.sandboxes.values():
            self._check_rest(sandbox)
        self._check_what_is_left()
        self._start_all_anew()
        self.nothing_was_wrong()

    def _rest(self) -> None:
        world = self.world
        world.api.calls.clear()
        self.pass_time(HOUR)
        assert not world.api.calls, world.api.calls
        world.boot()
        self.pass_time(60)
        assert not world.api.calls, world.api.calls

    def _check_rest(self, sandbox: Json) -> None:
        spec, status, pods = section(sandbox, "spec"), section(sandbox, "status"), self.pods_of(sandbox)
        request = section(sandbox["metadata"], "annotations").get(ANNOTATION_WAKE)
        ready = next(each for each in entries(status, "conditions") if each["type"] == "Ready")
        assert not self.overdue(sandbox)
        wanted = [(port["port"], port.get("tokenVersion", 1)) for port in entries(spec, "ports")]
        assert [(port["port"], port["tokenVersion"]) for port in entries(status, "ports")] == wanted
        if spec.get("paused"):
            assert (status["phase"], status["sleepReason"], pods) == ("Asleep", "Paused", [])
        elif status["phase"] == "Asleep":
            assert (status.get("wakeObserved"), pods) == (request, [])
        elif status["phase"] == "Pending":
            assert (ready["reason"], pods) == ("PolicyExceeded", [])
            assert self.forbidden(sandbox)
        else:
            assert (status["phase"], ready["reason"]) == ("Running", "RuntimeAnswers")
            assert status.get("wakeObserved") == request
            assert [uid_of(pod) for pod in pods] == [status["podUID"]]
            assert self.world.runtimes[status["podUID"]].sleep_after == self.wanted_sleep_after(sandbox)
            self._check_what_is_said_of_its_spec(sandbox, pods[0])

    def _check_what_is_said_of_its_spec(self, sandbox: Json, pod: Json) -> None:
        status = section(sandbox, "status")
        said = next(each for each in entries(status, "conditions") if each["type"] == "SpecHonored")
        assert ("next start will be refused" in said["message"]) == self.forbidden(sandbox)
        if pod["spec"]["containers"][0]["image"] != self.wanted_image(sandbox):
            assert "kubectl delete pod" in said["message"]

    def _check_what_is_left(self) -> None:
        world = self.world
        exposed = [host for sandbox in self.sandboxes.values() for host in exposed_hosts(sandbox)]
        assert hosts(world) == sorted(exposed)
        there = {uid_of(obj) for obj in world.api.objects.values()}
        for obj in world.api.objects.values():
            owner = controller(obj["metadata"])
            assert not owner or owner["uid"] in there, children(world)
            assert owner or obj["kind"] != "Pod", children(world)
            volume = obj["kind"] == "PersistentVolumeClaim" and is_left_by_a_pool(obj)
            assert not volume or obj["metadata"]["name"] in self.volumes_in_use(), children(world)
            # The wall of an earlier sandbox becomes the next one's at its start. One without the labels by
            # which it is watched, its sandbox cannot take along when it goes in its sleep.
            wall = obj["kind"] == "NetworkPolicy" and is_labelled(obj)
            its_sandbox = f"{OURS}/{obj['metadata']['name'].removesuffix('-sandbox')}"
            of_a_pool = LABEL_SANDBOX_UID not in section(obj["metadata"], "labels")
            assert not wall or of_a_pool or its_sandbox in self.sandboxes, children(world)

    def _start_all_anew(self) -> None:
        """What waits for the next start is so then."""
        for sandbox in list(self.sandboxes.values()):
            for pod in self.pods_of(sandbox):
                self.world.api.vanish(f"{PODS}/{pod['metadata']['name']}")
        self.pass_time(LONGEST)
        for sandbox in self.sandboxes.values():
            self._check_rest(sandbox)
            for pod in self.pods_of(sandbox):
                assert pod["spec"]["containers"][0]["image"] == self.wanted_image(sandbox)

    def _any(self, things: dict[str, Json] | list[str], pick: int) -> str:
        return sorted(things)[pick % len(things)]

    def _any_pod(self, pick: int) -> str:
        return self._any([f"{PODS}/{pod['metadata']['name']}" for pod in self.pods], pick)

    def _untouched(self) -> list[str]:
        """What is a sandbox's by its owner and its labels. What has neither is not told from a stranger's,
        nor is a pod that no status has named yet.
        """
        return [
            path
            for path, obj in self.world.api.objects.items()
            if is_labelled(obj)
            and (obj["kind"] == "NetworkPolicy" or controller(obj["metadata"]).get("kind") == "Sandbox")
            and (obj["kind"] != "Pod" or self._is_named(obj))
        ]

    def _is_named(self, pod: Json) -> bool:
        return any(
            section(sandbox, "status").get("podUID") == uid_of(pod) for sandbox in self.sandboxes.values()
        )

    def _claims_in_use(self) -> set[str]:
        """A pod that has no node does not keep its claim from being deleted."""
        placed = [pod for pod in self.pods if "nodeName" in pod["spec"]]
        volumes = [volume for pod in placed for volume in entries(pod["spec"], "volumes")]
        return {section(volume, "persistentVolumeClaim").get("claimName", "") for volume in volumes}


def put_template(machine: Lifecycle, image: str) -> None:
    api = machine.world.api
    if TEMPLATE_PATH in api.objects:
        api.change(TEMPLATE_PATH, {"spec": {"image": image}})
    else:
        metadata = {"name": "python", "namespace": "team"}
        api.put(TEMPLATE_PATH, {"kind": "SandboxTemplate", "metadata": metadata, "spec": {"image": image}})


def lived(kind: type[Lifecycle], **at_least: int) -> type:
    """The test that lives through histories of this kind. Where nothing comes about, nothing is proved: of a
    hundred, so many come so far.
    """

    class Case(kind.TestCase):
        def runTest(self) -> None:  # noqa: N802 - as unittest calls it
            kind.lived = Counter()
            super().runTest()
            found = {what: 100 * kind.lived[what] // kind.lived["histories"] for what in at_least}
            assert all(found[what] >= often for what, often in at_least.items()), found

    Case.settings = settings(
        deadline=None,
        derandomize=not LONG,
        max_examples=1000 if LONG else 150,
        stateful_step_count=40 if LONG else 20,
    )
    return Case
