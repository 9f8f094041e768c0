"""Changes that wait for a subscriber: equal ones once, in order, bounded, with what is lost counted."""

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.watch.pending import Change, Pending

CHANGES = st.lists(
    st.builds(
        Change, st.sampled_from(["create", "modify", "delete"]), st.sampled_from("abcdef"), st.booleans()
    )
)


def test_an_equal_change_keeps_its_place_and_gets_the_later_time() -> None:
    pending = Pending()
    pending.add(Change("modify", "/a", False), at="1")
    pending.add(Change("modify", "/b", False), at="2")
    pending.add(Change("modify", "/a", False), at="3")
    assert pending.take() == [(Change("modify", "/a", False), "3"), (Change("modify", "/b", False), "2")]
    assert pending.take() == []


@given(changes=CHANGES, most=st.integers(1, 8))
def test_nothing_is_lost_without_being_counted(changes: list[Change], most: int) -> None:
    pending = Pending(most=most)
    for change in changes:
        pending.add(change, at="now")
    kept = [change for change, _ in pending.take()]
    assert kept == list(dict.fromkeys(changes))[:most]
    assert pending.lost == sum(change not in kept for change in changes)


@given(changes=CHANGES)
def test_a_full_one_takes_what_it_holds_already(changes: list[Change]) -> None:
    pending = Pending(most=1)
    first = Change("create", "/first", False)
    pending.add(first, at="1")
    pending.add(first, at="2")
    assert pending.lost == 0
    assert pending.take() == [(first, "2")]
