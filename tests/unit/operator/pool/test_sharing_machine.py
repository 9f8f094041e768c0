"""Random histories of two sandboxes and the pool that they share."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition
from sandpod_operator.objects import Json, entries, section
from sandpod_operator.pods import ANNOTATION_COLD

from tests.support.lifecycle_machine import ALONE, Lifecycle, lived, put_template
from tests.support.operator_machine import happens
from tests.support.operator_scenarios import TEMPLATE_PATH
from tests.support.pool_world import POOL_PATH, condition, put_pool, put_pool_alone, waiting

POOLED: tuple[Json, ...] = (
    {"poolRef": {"name": "python"}},
    {"poolRef": {"name": "python"}, "sleepAfter": "5m"},
    {"poolRef": {"name": "python"}, "network": {"egress": "None"}},
    {"poolRef": {"name": "python"}, "image": "other:1"},
)


class Sharing(Lifecycle):
    """Two sandboxes and a pool that may be smaller."""

    most = 3
    names = ("box", "rival")
    specs = (*POOLED, {**POOLED[0], **ALONE[1]}, {**POOLED[0], **ALONE[2]})

    def __init__(self) -> None:
        super().__init__()
        put_pool(self.world, replicas=1, template={"image": "python:3"})

    @precondition(lambda self: POOL_PATH in self.world.api.objects)
    @happens(replicas=st.integers(0, 3))
    def scale(self, replicas: int) -> None:
        self.world.api.change(POOL_PATH, {"spec": {"replicas": replicas}})

    @precondition(lambda self: POOL_PATH in self.world.api.objects)
    @happens()
    def delete_the_pool(self) -> None:
        self.world.api.vanish(POOL_PATH)

    @precondition(lambda self: POOL_PATH not in self.world.api.objects)
    @happens(replicas=st.integers(0, 3))
    def make_the_pool_again(self, replicas: int) -> None:
        put_pool_alone(self.world, replicas=replicas)

    @happens(image=st.sampled_from(["python:3", "python:4"]))
    def change_the_template(self, image: str) -> None:
        put_template(self, image)

    @happens()
    def everybody_at_once(self) -> None:
        for name in self.names:
            self.create(name=name, spec=POOLED[0])

    def leave_in_peace(self) -> None:
        super().leave_in_peace()
        if POOL_PATH not in self.world.api.objects:
            self.make_the_pool_again(replicas=1)

    def _check_what_is_left(self) -> None:
        super()._check_what_is_left()
        image = self.world.api.objects[TEMPLATE_PATH]["spec"]["image"]
        wanted = self.world.api.objects[POOL_PATH]["spec"]["replicas"]
        assert condition(self.world, "Ready") == ("True", "AllReady")
        assert [pod["spec"]["containers"][0]["image"] for pod in waiting(self.world)] == [image] * wanted
        held = [section(each, "status").get("workspaceClaim") for each in self.sandboxes.values()]
        volumes = [claim for claim in held if claim is not None]
        assert len(volumes) == len(set(volumes))

    def _check_what_is_said_of_its_spec(self, sandbox: Json, pod: Json) -> None:
        super()._check_what_is_said_of_its_spec(sandbox, pod)
        annotations = pod["metadata"]["annotations"]
        taken = section(sandbox, "status").get("pool") is not None
        # With files of its own no warm pod would do, and nobody needs to be told.
        assert taken or ANNOTATION_COLD in annotations or entries(pod["spec"], "volumes")


class Keeping(Sharing):
    """The pool's pods bring volumes."""

    specs = (*POOLED, {**POOLED[0], "workspace": {"reclaim": "Retain"}}, ALONE[1])

    def __init__(self) -> None:
        super().__init__()
        self.change_the_workspace(workspace={"size": "1Gi"})

    @happens(workspace=st.sampled_from([None, {"size": "1Gi"}, {"size": "1Gi", "reclaim": "Retain"}]))
    def change_the_workspace(self, workspace: Json | None) -> None:
        self.world.api.change(TEMPLATE_PATH, {"spec": {"workspace": workspace}})

    def leave_in_peace(self) -> None:
        # Whoever only says what becomes of it takes its size from the template.
        self.change_the_workspace(workspace={"size": "1Gi"})
        super().leave_in_peace()


TestSharing = lived(Sharing, Running=50, Asleep=5, restarts=5, wakes=1)
TestKeeping = lived(Keeping, Running=50, Asleep=5, restarts=5, wakes=1)
