"""A proxy in front of the API server says of what is there that it is not: nobody's work ends for that."""

from sandpod_crds.errors import NotFound
from sandpod_operator.objects import uid_of

from tests.support.operator_scenarios import change, create
from tests.support.operator_world import POD_PATH, SANDBOX_PATH, World


async def test_one_wrong_404_ends_no_work() -> None:
    world = World()
    await create(world, {"sleepAfter": "1h"})
    pod_uid = uid_of(world.pod)
    said: list[str] = []

    def deny(_: int, call: str) -> None:
        if call == f"PATCH {SANDBOX_PATH}/status" and not said:
            said.append(call)
            raise NotFound(404, "NotFound", "the server could not find the requested resource")

    world.api.before = deny
    await change(world, sleepAfter="30m")

    assert said
    assert POD_PATH in world.api.objects
    assert uid_of(world.pod) == pod_uid
    assert world.status["sleepAfter"] == "30m"
