"""The merge of a partial pod spec into a whole one."""

import copy

from hypothesis import given
from hypothesis import strategies as st
from sandpod_operator.objects import Json
from sandpod_operator.resources.merge import merge, overridden

NAMES = st.sampled_from(["a", "b", "sandbox"])
SCALARS = st.sampled_from(["x", "y", 1, 2, True])
CONTAINERS: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "image": SCALARS,
        "env": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"value": SCALARS}),
            unique_by=lambda item: item["name"],
        ),
        "args": st.lists(SCALARS),
        "resources": st.dictionaries(NAMES, st.dictionaries(NAMES, SCALARS)),
        "ports": st.lists(
            st.fixed_dictionaries({"containerPort": st.integers(1, 3)}),
            unique_by=lambda item: item["containerPort"],
        ),
    },
)
SPECS: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {},
    optional={
        "containers": st.lists(CONTAINERS, unique_by=lambda item: item["name"]),
        "volumes": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"emptyDir": st.just({})}),
            unique_by=lambda item: item["name"],
        ),
        "nodeSelector": st.dictionaries(NAMES, SCALARS),
        "tolerations": st.lists(st.dictionaries(NAMES, SCALARS)),
        "hostname": SCALARS,
    },
)


@given(SPECS)
def test_merging_nothing_changes_nothing(base: Json) -> None:
    assert merge(base, {}) == base


@given(SPECS)
def test_merging_a_spec_into_itself_changes_nothing(base: Json) -> None:
    assert merge(base, base) == base


@given(SPECS, SPECS)
def test_merging_twice_is_merging_once(base: Json, patch: Json) -> None:
    once = merge(base, patch)

    assert merge(once, patch) == once


@given(SPECS, SPECS)
def test_everything_that_the_patch_says_is_in_the_result(base: Json, patch: Json) -> None:
    assert list(overridden(patch, merge(base, patch))) == []


@given(SPECS, SPECS)
def test_lists_of_named_things_have_every_name_once(base: Json, patch: Json) -> None:
    merged = merge(base, patch)
    names = [each["name"] for each in merged.get("containers", [])]

    assert len(names) == len(set(names))
    wanted = {each["name"] for spec in (base, patch) for each in spec.get("containers", [])}
    assert set(names) == wanted


@given(SPECS, SPECS)
def test_neither_side_is_changed(base: Json, patch: Json) -> None:
    before = copy.deepcopy((base, patch))
    merge(base, patch)

    assert (base, patch) == before


def test_named_things_are_merged_and_other_lists_replaced() -> None:
    base: Json = {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["old"]}]}
    patch: Json = {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["new"]}]}

    assert merge(base, patch)["containers"] == [
        {"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}], "args": ["new"]}
    ]


def test_a_null_and_a_delete_take_away_and_a_replace_replaces() -> None:
    base: Json = {
        "hostname": "h",
        "volumes": [{"name": "a"}, {"name": "b"}],
        "affinity": {"nodeAffinity": {}, "podAffinity": {}},
    }
    patch: Json = {
        "hostname": None,
        "volumes": [{"name": "a", "$patch": "delete"}],
        "affinity": {"$patch": "replace", "podAntiAffinity": {}},
    }

    assert merge(base, patch) == {"volumes": [{"name": "b"}], "affinity": {"podAntiAffinity": {}}}
