"""The sandboxes of a namespace by age."""

from hypothesis import given
from hypothesis import strategies as st
from sandpod_operator.census import Census
from sandpod_operator.objects import Json
from sandpod_operator.observations import Key


def sandbox(name: str, *, second: int, uid: str = "", namespace: str = "team", going: bool = False) -> Json:
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{namespace}-{name}",
        "creationTimestamp": f"2026-01-02T03:04:{second:02}Z",
    }
    if going:
        metadata["deletionTimestamp"] = "2026-01-02T04:00:00Z"
    return {"metadata": metadata}


def test_the_older_ones_of_the_same_namespace_come_first() -> None:
    census = Census()
    old, young = sandbox("b", second=1), sandbox("a", second=2)
    for each in (young, old, sandbox("c", second=0, namespace="other")):
        census.put(each)

    assert (census.older(old), census.older(young)) == (0, 1)
    assert (census.at("team", 0), census.at("team", 1)) == (Key("team", "b"), Key("team", "a"))


def test_of_the_same_second_the_names_decide() -> None:
    census = Census()
    first, second = sandbox("a", second=1), sandbox("b", second=1)
    census.put(second)
    census.put(first)

    assert (census.older(first), census.older(second)) == (0, 1)


def test_one_that_is_being_deleted_stands_in_nobodys_way() -> None:
    census = Census()
    census.put(sandbox("a", second=1))
    census.put(sandbox("b", second=2))
    census.put(sandbox("a", second=1, going=True))

    assert census.at("team", 0) == Key("team", "b")


def test_a_new_sandbox_of_an_old_name_is_young() -> None:
    census = Census()
    first, other, again = sandbox("a", second=1), sandbox("b", second=2), sandbox("a", second=3, uid="new")
    for each in (first, other, again):
        census.put(each)
    census.remove(first)

    assert (census.older(other), census.older(again)) == (0, 1)


def test_whoever_keeps_it_is_told_from_which_one_on_the_numbers_are_others() -> None:
    moves: list[tuple[str, int]] = []
    census = Census(moved=lambda namespace, number: moves.append((namespace, number)))
    a, b, c = (sandbox(name, second=second) for second, name in enumerate("abc"))
    for each in (c, a, a, b):
        census.put(each)
    assert moves == [("team", 0), ("team", 0), ("team", 1)]

    moves.clear()
    census.put(sandbox("b", second=1, going=True))
    census.remove(b)
    census.remove(c)
    assert moves == [("team", 1), ("team", 1)]


def test_places_that_nobody_has_are_nobodys() -> None:
    census = Census()

    assert census.at("team", 0) is None
    census.put(sandbox("a", second=1))
    assert census.at("team", 1) is None
    assert census.at("team", -1) is None


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef"), st.integers(0, 3), st.booleans())))
def test_it_always_counts_what_is_there(history: list[tuple[bool, str, int, bool]]) -> None:
    census, there = Census(), dict[str, Json]()
    for exists, name, second, going in history:
        each = sandbox(name, second=second, uid=f"{name}{second}", going=going)
        if exists:
            census.put(each)
            there[f"{name}{second}"] = each
        else:
            census.remove(each)
            there.pop(f"{name}{second}", None)
        if going:
            there.pop(f"{name}{second}", None)

    order = sorted(there.values(), key=lambda o: (o["metadata"]["creationTimestamp"], o["metadata"]["name"]))
    assert [census.older(each) for each in order] == list(range(len(order)))
    assert census.at("team", len(order)) is None
