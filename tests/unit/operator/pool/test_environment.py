"""What a warm pod's bind brings, as the kubelet would have resolved it."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds.models import SandboxSpec
from sandpod_operator.objects import Json
from sandpod_operator.observations import Key
from sandpod_operator.pool.environment import (
    GOOD_FOR,
    Place,
    Reader,
    Unusable,
    may_read,
    references,
    resolve,
    subject_of,
)

from tests.support.operator_api import Api
from tests.support.operator_objects import NOW

SECRET, CONFIG = Place("Secret", "keys"), Place("ConfigMap", "settings")


def spec(*env: Json, env_from: tuple[Json, ...] = ()) -> SandboxSpec:
    return SandboxSpec.model_validate({"env": list(env), "envFrom": list(env_from)})


def secret(name: str, key: str, *, optional: bool = False) -> Json:
    selector = {"name": "keys", "key": key, "optional": optional}
    return {"name": name, "valueFrom": {"secretKeyRef": selector}}


def config(name: str, key: str) -> Json:
    return {"name": name, "valueFrom": {"configMapKeyRef": {"name": "settings", "key": key}}}


WHOLE_SECRET: Json = {"secretRef": {"name": "keys"}}
WHOLE_CONFIG: Json = {"prefix": "APP_", "configMapRef": {"name": "settings"}}


def test_what_has_to_be_read_is_named_once() -> None:
    wanted = spec(secret("A", "a"), secret("B", "b"), config("C", "c"), env_from=(WHOLE_SECRET, WHOLE_CONFIG))

    assert references(wanted) == {SECRET, CONFIG}


def test_what_the_pod_says_about_itself_is_not_read() -> None:
    field = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    amount = {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}

    assert references(spec({"name": "A", "value": "b"}, field, amount)) == set()


def test_values_secrets_and_config_maps() -> None:
    wanted = spec({"name": "A", "value": "plain"}, secret("B", "b"), config("C", "c"))

    values = resolve(wanted, {SECRET: {"b": "secret"}, CONFIG: {"c": "config"}})

    assert values == {"A": "plain", "B": "secret", "C": "config"}


def test_whole_objects_come_with_their_prefix_and_the_later_one_wins() -> None:
    wanted = spec(env_from=(WHOLE_SECRET, WHOLE_CONFIG, {"configMapRef": {"name": "settings"}}))

    values = resolve(wanted, {SECRET: {"A": "1", "B": "2"}, CONFIG: {"A": "3"}})

    assert values == {"A": "3", "B": "2", "APP_A": "3"}


def test_env_wins_over_env_from() -> None:
    field = {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    wanted = spec({"name": "A", "value": "plain"}, secret("B", "other"), field, env_from=(WHOLE_SECRET,))

    values = resolve(wanted, {SECRET: {"A": "1", "B": "2", "C": "3", "other": "4"}})

    # C is the kubelet's: it stands in the pod already.
    assert values == {"A": "plain", "B": "4", "other": "4"}


def test_names_that_are_no_variables_are_passed_over() -> None:
    values = resolve(spec(env_from=(WHOLE_SECRET,)), {SECRET: {"tls.crt": "x", "SANDPOD_X": "y", "OK": "z"}})

    assert values == {"OK": "z"}


@pytest.mark.parametrize(
    ("wanted", "found", "says"),
    [
        (spec(secret("A", "a")), {SECRET: None}, "the Secret keys has no entry a."),
        (spec(secret("A", "a")), {SECRET: {"b": "x"}}, "the Secret keys has no entry a."),
        (spec(secret("A", "a")), {SECRET: {"a": None}}, "the entry a of the Secret keys is not text."),
        (spec(env_from=(WHOLE_SECRET,)), {SECRET: None}, "the Secret keys does not exist."),
        (
            spec(env_from=(WHOLE_SECRET,)),
            {SECRET: {"A": None}},
            "the entry A of the Secret keys is not text.",
        ),
        (spec(config("A", "a")), {CONFIG: {}}, "the ConfigMap settings has no entry a."),
        (spec(secret("A", "a")), {SECRET: {"a": "x\0y"}}, "no process could take the variable A."),
        (spec(secret("A", "a")), {SECRET: {"a": "x" * 130_000}}, "no process could take the variable A."),
    ],
)
def test_what_is_missing_is_said(wanted: SandboxSpec, found: dict[Place, Any], says: str) -> None:
    with pytest.raises(Unusable, match=says):
        resolve(wanted, found)


def test_what_is_optional_may_be_missing() -> None:
    optional = {"secretRef": {"name": "keys", "optional": True}}
    wanted = spec(secret("A", "a", optional=True), {"name": "B", "value": "b"}, env_from=(optional,))

    assert resolve(wanted, {SECRET: None}) == {"B": "b"}


@given(st.dictionaries(st.text(max_size=8), st.none() | st.text(max_size=8), max_size=6))
def test_nothing_that_somebody_writes_into_a_secret_breaks_the_operator(found: dict[str, str | None]) -> None:
    try:
        values = resolve(spec(env_from=(WHOLE_SECRET,)), {SECRET: found})
    except Unusable:
        return
    assert set(values) <= set(found)


@pytest.mark.parametrize(
    ("allowed", "may"), [([], False), (["other"], False), (["team"], True), (["*"], True)]
)
def test_the_chart_says_where_may_be_read(allowed: list[str], may: bool) -> None:
    assert may_read("team", allowed=allowed) is may


async def test_an_environment_is_of_one_sandbox_and_one_spec() -> None:
    api, key, wanted = Api(now=lambda: NOW), Key("team", "box"), spec(secret("A", "a"))
    data = {"a": base64.b64encode(b"secret").decode()}
    api.put(
        "/api/v1/namespaces/team/secrets/keys", {"kind": "Secret", "metadata": {"name": "keys"}, "data": data}
    )
    reader = Reader(cluster=api)

    await reader.read(key, wanted, subject=subject_of("uid", wanted), now=NOW)

    found = reader.get(key)
    assert found is not None
    assert (found.values, found.subject) == ({"A": "secret"}, subject_of("uid", wanted))
    assert subject_of("uid", spec(secret("A", "b"))) != found.subject != subject_of("other", wanted)
    assert "secret" not in repr(found)

    reader.drop(key)
    assert reader.get(key) is None


async def test_what_no_bind_has_taken_is_forgotten() -> None:
    reader = Reader(cluster=Api(now=lambda: NOW))
    await reader.read(Key("team", "deleted"), spec(), subject="", now=NOW)

    await reader.read(Key("team", "next"), spec(), subject="", now=NOW + GOOD_FOR * 2)

    assert reader.get(Key("team", "deleted")) is None
    assert reader.get(Key("team", "next")) is not None


async def test_only_so_many_environments_are_kept() -> None:
    reader = Reader(cluster=Api(now=lambda: NOW))

    for number in range(1100):
        await reader.read(Key("team", str(number)), spec(), subject="", now=NOW)

    assert reader.get(Key("team", "0")) is None
    assert reader.get(Key("team", "1099")) is not None
