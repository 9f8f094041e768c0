"""What is remembered holds as long as it is made from the same, and no longer."""

import pytest
from sandpod_crds.names import Phase
from sandpod_operator.memo import Memo

from tests.support.operator_world import SANDBOX_PATH, World, new_sandbox


def counted(calls: list[str], name: str) -> str:
    calls.append(name)
    return f"made of {name}"


def test_what_is_made_from_the_same_is_made_once() -> None:
    memo, calls = Memo(), list[str]()

    for _ in range(3):
        assert memo.recall("box", ([1], "a"), lambda: counted(calls, "a")) == "made of a"

    assert calls == ["a"]


def test_what_is_made_from_something_else_is_made_anew() -> None:
    memo, calls = Memo(), list[str]()

    memo.recall("box", ([1],), lambda: counted(calls, "a"))

    assert memo.recall("box", ([2],), lambda: counted(calls, "b")) == "made of b"
    assert memo.recall("box", ([1],), lambda: counted(calls, "a")) == "made of a"


def test_the_oldest_is_forgotten_when_there_are_too_many() -> None:
    memo, calls = Memo(most=2), list[str]()

    for name in ("a", "b", "c", "b", "a"):
        memo.recall(name, (), lambda name=name: counted(calls, name))

    assert calls == ["a", "b", "c", "a"]


def test_what_could_not_be_made_is_tried_again() -> None:
    memo = Memo()

    def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memo.recall("box", (), fail)

    assert memo.recall("box", (), lambda: "made") == "made"


async def test_a_spec_that_is_changed_during_the_start_makes_another_pod() -> None:
    world = World()
    world.kubelet = lambda world, pod: None
    world.api.put(SANDBOX_PATH, new_sandbox({"image": "first"}))
    await world.settle()
    assert world.pod["spec"]["containers"][0]["image"] == "first"

    world.api.change(SANDBOX_PATH, {"spec": {"image": "second"}})
    await world.wait(5)

    assert world.pod["spec"]["containers"][0]["image"] == "second"
    assert world.status["phase"] == Phase.STARTING
