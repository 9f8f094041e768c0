"""What exposing a port, taking it back and rotating its token write into a Sandbox."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds.names import ANNOTATION_TOKEN_VERSION
from sandpod_gateway.errors import BadRequest, Conflict, Invalid, NotFound
from sandpod_gateway.ports import Wish, expose, listed, retired, rotate, unexpose

Json = dict[str, Any]


def sandbox(*own: Json, inherited: tuple[Json, ...] = (), retired: str = "") -> Json:
    return {
        "metadata": {
            "name": "hello",
            "uid": "u",
            "resourceVersion": "7",
            "annotations": {ANNOTATION_TOKEN_VERSION: retired} if retired else {},
        },
        "spec": {"ports": list(own)} if own else {},
        "status": {"ports": [{**each, "inherited": True, "url": "http://old"} for each in inherited]},
    }


def after(before: Json, patch: Json | None) -> Json:
    """As the API server merges it."""
    if patch is None:
        return before
    metadata = {**before["metadata"], **patch["metadata"]}
    metadata["annotations"] = before["metadata"]["annotations"] | patch["metadata"].get("annotations", {})
    return {**before, "metadata": metadata, "spec": {**before["spec"], **patch["spec"]}}


def test_a_new_port_is_written_behind_the_others_on_condition_that_nothing_has_changed() -> None:
    first = {"port": 9000, "name": "api"}

    assert expose(sandbox(first), Wish(port=8080, name="web", access="Private")) == {
        "metadata": {"uid": "u", "resourceVersion": "7"},
        "spec": {"ports": [first, {"port": 8080, "name": "web", "access": "Private"}]},
    }


def test_what_is_exposed_like_this_already_is_not_written_again() -> None:
    before = sandbox({"port": 8080, "name": "web", "tokenVersion": 3})

    assert expose(before, Wish(port=8080)) is None
    assert expose(before, Wish(port=8080, name="web", access="Token")) is None


def test_what_is_not_said_stays_as_it_is() -> None:
    before = sandbox({"port": 8080, "name": "web", "tokenVersion": 3}, {"port": 9000})

    patch = expose(before, Wish(port=8080, access="Private"))

    assert patch is not None
    assert patch["spec"]["ports"] == [
        {"port": 8080, "name": "web", "tokenVersion": 3, "access": "Private"},
        {"port": 9000},
    ]


def test_a_templates_private_port_stays_private_when_it_is_renamed_or_rotated() -> None:
    before = sandbox(inherited=({"port": 8080, "access": "Private"},))

    for patch in (expose(before, Wish(port=8080, name="web")), rotate(before, 8080)):
        assert patch is not None
        assert patch["spec"]["ports"][0]["access"] == "Private"


def test_a_templates_port_cannot_be_taken_back() -> None:
    with pytest.raises(Conflict, match="exposed by the sandbox's template"):
        unexpose(sandbox(inherited=({"port": 8080},)), 8080)


def test_a_port_that_is_not_exposed_cannot_be_taken_back_or_rotated() -> None:
    for change in (unexpose, rotate):
        with pytest.raises(NotFound, match="port 8080 is not exposed"):
            change(sandbox({"port": 9000}), 8080)


def test_a_token_that_was_worthless_once_is_never_good_again() -> None:
    now = sandbox({"port": 8080})
    now = after(now, rotate(now, 8080))
    assert listed(now)[0]["tokenVersion"] == 2
    now = after(now, unexpose(now, 8080))
    assert listed(now) == []
    now = after(now, expose(now, Wish(port=8080)))
    assert listed(now)[0]["tokenVersion"] == 3
    now = after(now, expose(now, Wish(port=9000)))
    now = after(now, unexpose(now, 8080))
    now = after(now, unexpose(now, 9000))
    assert retired(now) == 3


def test_a_sandbox_that_is_being_deleted_is_left_alone() -> None:
    before = sandbox()
    before["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"

    with pytest.raises(Conflict, match="being deleted"):
        expose(before, Wish(port=8080))


@pytest.mark.parametrize("text", ["", "-1", "nine", "٣", "1" * 50])
def test_whatever_stands_in_the_annotation_does_no_harm(text: str) -> None:
    assert retired(sandbox(retired=text)) == 0


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        ({}, Invalid, "port must be a number"),
        ({"port": "8080"}, Invalid, "port must be a number"),
        ({"port": True}, Invalid, "port must be a number"),
        ({"port": 3000}, Invalid, "Sandpod's own"),
        ({"port": 80}, Invalid, "from 1024"),
        ({"port": 65536}, Invalid, "to 65535"),
        ({"port": 8080, "name": 5}, Invalid, "name must be"),
        ({"port": 8080, "access": "Public"}, Invalid, "Token or Private"),
        ({"port": 8080, "acess": "Private"}, BadRequest, "acess"),
    ],
)
def test_a_wish_that_cannot_be_is_refused_with_what_can(
    body: Json, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Wish.from_object(body)


PORTS = st.integers(min_value=8000, max_value=8004)
STEPS = st.lists(
    st.tuples(st.sampled_from(["expose", "rotate", "unexpose"]), PORTS, st.sampled_from([None, "Private"]))
)


@given(STEPS)
def test_no_two_times_of_being_exposed_share_a_token(steps: list[tuple[str, int, str | None]]) -> None:
    now, dead = sandbox(), set[tuple[int, int]]()
    for step, port, access in steps:
        before = {(each["port"], each["tokenVersion"]) for each in listed(now)}
        try:
            if step == "expose":
                now = after(now, expose(now, Wish(port=port, access=access)))
            else:
                now = after(now, rotate(now, port) if step == "rotate" else unexpose(now, port))
        except NotFound:
            continue
        alive = {(each["port"], each["tokenVersion"]) for each in listed(now)}
        dead |= before - alive
        assert not alive & dead
