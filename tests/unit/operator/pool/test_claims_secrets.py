"""Warm pods and the Secrets that a sandbox's environment refers to."""

from sandpod_crds.errors import Forbidden
from sandpod_operator.objects import Json

from tests.support.operator_objects import installation
from tests.support.operator_world import World
from tests.support.pool_world import (
    calls_about,
    claimed_by,
    condition,
    filled,
    put_pool,
    put_sandbox,
    waiting,
)

SECRET = "/api/v1/namespaces/team/secrets/keys"

READABLE = installation(pools={"readSecrets": ["team"]})

WITH_SECRET: Json = {
    "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}}]
}


async def test_a_secret_comes_with_the_bind() -> None:
    world = await filled(World(READABLE))
    world.api.put(SECRET, {"kind": "Secret", "metadata": meta("keys"), "data": {"token": "cw=="}})

    put_sandbox(world, spec=WITH_SECRET)
    await world.settle()

    assert world.runtimes[claimed_by(world)[0]["metadata"]["uid"]].env == {"TOKEN": "s"}
    # One read, and the two writes.
    assert calls_about(world, SECRET) == [f"GET {SECRET}"]
    assert len(calls_about(world, "sandboxes/")) == 1


async def test_withheld_secrets_are_followed_by_a_cold_start_that_says_so() -> None:
    world = await filled(World())

    put_sandbox(world, spec=WITH_SECRET)
    await world.settle()

    assert world.status["podName"] == "box"
    assert "SecretsWithheld" in world.events
    assert calls_about(world, SECRET) == []


async def test_secrets_that_rbac_withholds_are_withheld_too() -> None:
    world = await filled(World(READABLE))

    def forbid(number: int, call: str) -> None:
        if call == f"GET {SECRET}":
            raise Forbidden(403, "Forbidden", "no")

    world.api.before = forbid
    put_sandbox(world, spec=WITH_SECRET)
    await world.settle()

    assert "SecretsWithheld" in world.events


async def test_a_secret_that_is_missing_is_the_kubelets_to_tell() -> None:
    world = await filled(World(READABLE))

    put_sandbox(world, spec=WITH_SECRET)
    await world.settle()

    assert world.status["podName"] == "box"
    assert "SecretsUnusable" in world.events
    assert len(waiting(world)) == 2


async def test_a_pool_whose_template_needs_withheld_secrets_says_so() -> None:
    world = World()
    put_pool(world, template=WITH_SECRET)
    await world.settle()

    assert condition(world, "SecretsReadable") == ("False", "Withheld")
    # Nothing of it is in the pods, which may wait longer than a secret lives.
    assert "TOKEN" not in str(waiting(world))


def meta(name: str) -> Json:
    return {"name": name, "namespace": "team"}
