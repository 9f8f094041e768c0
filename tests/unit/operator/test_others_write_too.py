"""Others who write at the same time: users, other controllers, a sandbox that is deleted and made again."""

from tests.support.operator_objects import KEY
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World, new_sandbox

RUNNING = ("Running", "True", "RuntimeAnswers")


async def test_a_status_never_lands_on_a_newer_sandbox_of_the_name() -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox({"image": "old:1"}))

    def replaced_meanwhile(number: int, call: str) -> None:
        if call == f"PATCH {SANDBOX_PATH}/status" and "status" not in world.sandbox:
            world.api.before = lambda number, call: None
            world.api.vanish(SANDBOX_PATH)
            world.api.put(SANDBOX_PATH, new_sandbox({"image": "new:1"}))

    world.api.before = replaced_meanwhile
    await world.settle()

    assert world.ready() == RUNNING
    assert world.status["image"] == "new:1"
    assert world.status["podUID"] == world.pod["metadata"]["uid"]


async def test_a_user_who_writes_at_the_same_time_loses_nothing() -> None:
    world = World()
    world.api.put(SANDBOX_PATH, new_sandbox())
    writes = iter(range(3))

    def write_meanwhile(number: int, call: str) -> None:
        if call == f"PATCH {SANDBOX_PATH}/status" and (write := next(writes, None)) is not None:
            world.api.change(SANDBOX_PATH, {"metadata": {"annotations": {"count": str(write)}}})

    world.api.before = write_meanwhile
    await world.wait(10)

    assert world.ready() == RUNNING
    assert world.sandbox["metadata"]["annotations"] == {"count": "2"}


async def test_a_pod_of_somebody_else_is_never_touched() -> None:
    world = World()
    theirs = {"kind": "Pod", "metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": {}}
    world.api.put(POD_PATH, {**theirs, "spec": {"nodeName": "node-1"}})
    world.api.put(SANDBOX_PATH, new_sandbox())

    await world.wait(60)

    assert world.ready() == ("Pending", "False", "NameTaken")
    assert not [
        call for call in world.api.calls if call.startswith(("DELETE", "PATCH /api/v1/namespaces/team/pods"))
    ]
    world.api.vanish(POD_PATH)
    await world.wait(300)
    assert world.ready() == RUNNING
