"""Random histories of sandboxes: alone, under templates, lifetimes and policies, and several under one that
lets the oldest start.
"""

from hypothesis import strategies as st
from hypothesis.stateful import precondition
from sandpod_crds.names import GROUP
from sandpod_operator.objects import Json

from tests.support.lifecycle_machine import ALONE, CHANGES, Lifecycle, lived, put_template
from tests.support.operator_machine import happens
from tests.support.operator_scenarios import TEMPLATE_PATH

POLICY_PATH = f"/apis/{GROUP}/v1alpha1/sandboxpolicies/students"
GOVERNED: tuple[Json, ...] = (
    {"templateRef": {"name": "python"}},
    {"templateRef": {"name": "python"}, "keepAlive": True, "workspace": {"size": "1Gi"}},
    {"lifetime": {"maxAge": "300s"}},
    {"lifetime": {"maxAge": "1000s"}, "workspace": {"size": "1Gi"}},
    {"lifetime": {"deleteAfterAsleep": "100s"}},
    {"lifetime": {"deleteAfterAsleep": "1000s"}, "paused": True},
)
LIFETIMES: tuple[Json, ...] = (
    {"lifetime": {"maxAge": "1000s"}},
    {"lifetime": {"deleteAfterAsleep": "100s"}},
    {"lifetime": None},
)
POLICIES: list[Json] = [
    {"maxSandboxes": 0},
    {"allowKeepAlive": False},
    {"allowedImages": ["other:*", "python:4"]},
]


class Governed(Lifecycle):
    """By a template, by a lifetime, by a policy."""

    specs = (*ALONE, *GOVERNED)
    changes = (*CHANGES, *LIFETIMES)

    @happens(image=st.sampled_from(["python:3", "python:4"]))
    def put_the_template(self, image: str) -> None:
        put_template(self, image)

    @precondition(lambda self: TEMPLATE_PATH in self.world.api.objects)
    @happens()
    def take_the_template_away(self) -> None:
        self.world.api.vanish(TEMPLATE_PATH)

    @happens(spec=st.sampled_from(POLICIES))
    def put_a_policy(self, spec: Json) -> None:
        if POLICY_PATH in self.world.api.objects:
            self.world.api.vanish(POLICY_PATH)
        policy = {"kind": "SandboxPolicy", "metadata": {"name": "students"}, "spec": spec}
        self.world.api.put(POLICY_PATH, policy)

    @precondition(lambda self: POLICY_PATH in self.world.api.objects)
    @happens()
    def take_the_policy_away(self) -> None:
        self.world.api.vanish(POLICY_PATH)

    def leave_in_peace(self) -> None:
        super().leave_in_peace()
        if TEMPLATE_PATH not in self.world.api.objects:
            put_template(self, "python:3")


class Counted(Lifecycle):
    """Several, of whom a policy lets the oldest start."""

    most = 4
    # In the order of those that were made in one second
    names = ("box", "den", "hut", "inn")
    specs = ({}, {"lifetime": {"maxAge": "300s"}}, {"lifetime": {"deleteAfterAsleep": "100s"}})
    changes = ({"paused": True}, {"paused": False}, *LIFETIMES)

    def __init__(self) -> None:
        super().__init__()
        policy = {"kind": "SandboxPolicy", "metadata": {"name": "students"}, "spec": {"maxSandboxes": 2}}
        self.world.api.put(POLICY_PATH, policy)

    @happens(most=st.integers(1, 3))
    def let_start(self, most: int) -> None:
        self.world.api.change(POLICY_PATH, {"spec": {"maxSandboxes": most}})

    @happens()
    def everybody_at_once(self) -> None:
        """The first two have not long to live."""
        for number, name in enumerate(self.names):
            self.create(name=name, spec=self.specs[1 if number < 2 else 0])

    @happens()
    def delete_all_but_one(self) -> None:
        for path in list(self.sandboxes)[:-1]:
            self.world.api.vanish(path)

    @happens()
    def see_nothing_for_a_while(self) -> None:
        self.go_blind()
        self.pass_time(400)
        self.see_again()


TestLifecycle = lived(Lifecycle, Running=50, Asleep=5, restarts=5, wakes=1)
TestGoverned = lived(Governed, Running=50, Asleep=5, restarts=5, wakes=1)
TestCounted = lived(Counted, Running=50, Asleep=5, restarts=5, wakes=1)
