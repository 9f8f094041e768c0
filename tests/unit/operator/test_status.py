"""The status as a whole: what is in it, what counts as a change, and how it is written."""

from datetime import timedelta

import pytest
from sandpod_crds.models import Sandbox, SandboxStatus, SetupStatus
from sandpod_operator.conditions import honored
from sandpod_operator.decide import decide
from sandpod_operator.objects import Json
from sandpod_operator.reasons import SENTENCES, Reason, sentence
from sandpod_operator.status import status_patch

from tests.support.operator_api import merge_patch
from tests.support.operator_objects import (
    INSTALLATION,
    KEY,
    NAMES,
    NOW,
    bound,
    pod,
    running,
    sandbox,
    situation,
    starting,
    up,
)


def decided(
    status: Json, *, spec: Json | None = None, later: float = 0, generation: int = 1, name: str = KEY.name
) -> SandboxStatus:
    """What becomes of the status of a sandbox that runs."""
    found = pod(spec, up(since=-90), name=name)
    given = situation(sandbox(spec, status, generation=generation), found, answer=bound())
    status_then = decide(given, now=NOW + timedelta(seconds=later), installation=INSTALLATION).status
    assert status_then is not None
    return status_then


def condition(status: SandboxStatus, kind: str) -> Json:
    return next(c for c in status.to_json()["conditions"] if c["type"] == kind)


def test_the_time_of_a_condition_moves_only_when_it_flips() -> None:
    flipped = decided(starting(), later=7)
    assert condition(flipped, "Ready")["lastTransitionTime"] == "2026-11-18T12:00:07Z"
    assert condition(flipped, "Isolated")["lastTransitionTime"] == "2026-11-18T11:58:30Z"

    # Another reason and another generation, the same status.
    reworded = decided(running(startFailures=1), spec={"network": {}}, later=99, generation=2)
    assert condition(reworded, "Ready")["lastTransitionTime"] == "2026-11-18T11:58:30Z"
    assert condition(reworded, "Ready")["observedGeneration"] == 2
    assert reworded.observed_generation == 2


def test_a_patch_says_every_field_so_that_nothing_old_stays() -> None:
    patch = status_patch(SandboxStatus(phase=None, pod_name="box"))

    assert patch["podName"] == "box"
    assert {name for name, value in patch.items() if value is None} == set(patch) - {"podName"}
    assert {"podUID", "podIP", "nextStartAt", "startFailures", "conditions", "sessions"} <= set(patch)


def test_a_setup_that_runs_again_has_no_end_from_the_one_before() -> None:
    # A merge patch goes into what is there, and leaves alone what it does not name.
    old = SandboxStatus(setup=SetupStatus(result="Failed", message="make: no rule", finished_at=NOW))
    new = SandboxStatus(setup=SetupStatus(result="Running"))
    written = merge_patch(merge_patch({}, status_patch(old)), status_patch(new))

    assert SandboxStatus.model_validate(written) == new


def test_what_is_written_and_read_again_is_no_change() -> None:
    written = decided(starting())
    read = {name: value for name, value in status_patch(written).items() if value is not None}
    given = situation(sandbox(status=read), pod(status=up(since=-90)), answer=bound())

    assert decide(given, now=NOW, installation=INSTALLATION).status is None


def test_conditions_of_others_are_kept() -> None:
    theirs = {"type": "example.com/Audited", "status": "True", "reason": "Yes", "message": ""}
    status = starting()
    status["conditions"].append(theirs)

    assert condition(decided(status), "example.com/Audited")["reason"] == "Yes"


@pytest.mark.parametrize(
    ("spec", "kind", "reason", "words"),
    [
        ({"isolation": "Strict"}, "Isolated", "Unchecked", "when it starts"),
        ({"user": "root", "templateRef": {"name": "t"}}, "SpecHonored", "NotImplemented", "user (root needs"),
        (
            {"podTemplate": {"spec": {"restartPolicy": "Always"}}},
            "SpecHonored",
            "Overridden",
            "podTemplate.spec.restartPolicy",
        ),
    ],
)
def test_what_has_no_effect_is_said(spec: Json, kind: str, reason: str, words: str) -> None:
    found = condition(decided(starting(), spec=spec), kind)

    assert (found["status"], found["reason"]) == ("False", reason)
    assert words in found["message"]


@pytest.mark.parametrize(
    "spec",
    [{}, {"keepAlive": True}, {"paused": False}, {"isolation": "Standard"}, {"podTemplate": {"spec": {}}}],
)
def test_what_has_its_effect_is_said_too(spec: Json) -> None:
    given = Sandbox.model_validate(sandbox(spec)).spec

    assert honored(given, overridden=(), restart_pending=None).holds


def test_several_things_without_effect_are_all_named() -> None:
    spec = {"user": "root", "templateRef": {"name": "t"}, "podTemplate": {"spec": {"hostNetwork": True}}}
    found = condition(decided(starting(), spec=spec), "SpecHonored")

    assert found["reason"] == "NotImplemented"
    assert "user (root needs" in found["message"]
    assert "podTemplate.spec.hostNetwork" in found["message"]


@pytest.mark.parametrize("reason", list(SENTENCES))
def test_every_sentence_ends_and_holds_no_gap(reason: Reason) -> None:
    said = sentence(reason, names=NAMES, detail="no room {here}")

    assert said.endswith(".")
    assert ".." not in said
    assert "{" not in said.replace("{here}", "")


# About nodes and volumes, which are in no namespace.
OF_THE_CLUSTER = ("taint node ", "uncordon", "describe pv ")


@pytest.mark.parametrize("reason", list(SENTENCES))
def test_every_command_in_a_sentence_says_in_which_namespace(reason: Reason) -> None:
    _, *commands = sentence(reason, names=NAMES, detail="node-1").split("kubectl ")
    for command in commands:
        assert "-n team" in command or command.startswith(OF_THE_CLUSTER)


def test_a_pod_that_was_taken_from_a_pool_is_called_by_its_own_name() -> None:
    found = decided(starting(podName="warm-1"), name="warm-1")

    assert condition(found, "Ready")["message"] == "The runtime answers in the pod warm-1."


def test_every_reason_has_a_sentence() -> None:
    # These are put together from what they find.
    made = {Reason.NOT_IMPLEMENTED, Reason.OVERRIDDEN, Reason.RESTART_PENDING}

    assert set(SENTENCES) == set(Reason) - made
