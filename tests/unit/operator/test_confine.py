"""What the sandbox's container gets in Strict: enough to isolate its commands, and nothing for them."""

import pytest
from sandpod_operator.resources.confine import (
    NARROWING,
    ROOTS,
    WORLDS,
    confine,
    runtime_arguments,
    strict_context,
)
from sandpod_runtime.strict import kernel
from sandpod_runtime.strict.world import ROOTS as ROOTS_OF_THE_RUNTIME


def test_otherwise_a_container_has_no_capability() -> None:
    assert confine({"name": "sandbox"})["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_runtime_starts_as_root_and_is_told_who_commands_are() -> None:
    context = strict_context(1000)
    assert (context["runAsUser"], context["runAsGroup"], context["runAsNonRoot"]) == (0, 1000, False)
    assert runtime_arguments(1000) == ["--strict", "1000"]


def test_it_has_what_makes_a_world_and_no_more() -> None:
    assert strict_context(1000)["capabilities"] == {"drop": ["ALL"], "add": sorted(WORLDS)}
    assert not WORLDS & {"SYS_PTRACE", "SYS_MODULE", "SYS_RAWIO", "NET_ADMIN", "DAC_READ_SEARCH", "BPF"}


def test_root_gets_what_the_runtime_leaves_to_it() -> None:
    assert {getattr(kernel, name) for name in ROOTS} == ROOTS_OF_THE_RUNTIME
    assert set(strict_context(0)["capabilities"]["add"]) == WORLDS | ROOTS
    assert not ROOTS & {"SYS_ADMIN", "SYS_RESOURCE", "SYS_PTRACE"}


def test_not_even_root_sends_packets_of_its_own_making() -> None:
    assert "NET_RAW" not in strict_context(0)["capabilities"]["add"]


def test_it_is_never_privileged() -> None:
    # The API server refuses "no escalation" beside SYS_ADMIN; the runtime forgoes it for its commands.
    for user in (0, 1000):
        assert strict_context(user)["privileged"] is False
        assert "allowPrivilegeEscalation" not in strict_context(user)


@pytest.mark.parametrize("field", NARROWING)
def test_a_template_may_narrow_it_all_the_same(field: str) -> None:
    container = {
        "name": "sandbox",
        "securityContext": {field: "theirs", "runAsUser": 5, "procMount": "Unmasked"},
    }
    context = confine(container, strict=1000)["securityContext"]
    assert context == strict_context(1000) | {field: "theirs"}
