"""Exact replacements, against str.replace, and what is said of those that do not fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.files import replacing
from sandpod_runtime.files.replacing import Edit, TooLargeError, UnfitError, replaced

short = st.text("ab \n", max_size=30)
edits = st.lists(st.tuples(st.text("ab \n", min_size=1, max_size=4), short, st.booleans()), max_size=4)


def occurrences(text: str, wanted: str) -> int:
    return sum(text.startswith(wanted, at) for at in range(len(text)))


@given(text=short, wanted=edits)
def test_edits_are_made_one_after_the_other_or_not_at_all(
    text: str, wanted: list[tuple[str, str, bool]]
) -> None:
    given_edits = [Edit(old=old.encode(), new=new.encode(), everywhere=all_) for old, new, all_ in wanted]
    expected, unfit = text, None
    for index, (old, new, all_) in enumerate(wanted):
        found = occurrences(expected, old)
        if found == 0 or (found > 1 and not all_):
            unfit = index
            break
        expected = expected.replace(old, new)
    if unfit is None:
        assert replaced(text.encode(), given_edits)[0].decode() == expected
        return
    with pytest.raises(UnfitError) as caught:
        replaced(text.encode(), given_edits)
    assert caught.value.index == unfit


def unfit(text: str, old: str) -> UnfitError:
    with pytest.raises(UnfitError) as caught:
        replaced(text.encode(), [Edit(old=old.encode(), new=b"x")])
    return caught.value


def test_the_lines_of_all_places_are_told() -> None:
    error = unfit("one\ntwo\none\n\none", "one")
    assert (error.found, error.lines) == (3, [1, 3, 5])


def test_a_text_that_overlaps_itself_is_not_unique() -> None:
    assert unfit("aaa", "aa").found == 2


def test_other_white_space_is_a_near_miss() -> None:
    [near] = unfit("def f():\n\treturn  1\n", "def f():\n    return 1").near
    assert (near.line, near.difference) == (1, "differs only in white space")


def test_windows_line_ends_are_a_near_miss() -> None:
    assert unfit("a\r\nb\r\n", "a\nb\n").near[0].line == 1


def test_another_case_is_a_near_miss() -> None:
    [near] = unfit("\nSELECT 1;\n", "select 1;").near
    assert (near.line, near.difference) == (2, "differs only in case")


def test_where_several_lines_stop_to_fit_is_told() -> None:
    [near] = unfit("a\nb\nc\n", "a\nb\nd\n").near
    assert (near.line, near.text) == (3, "c")
    assert "'d'" in near.difference


def test_a_result_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacing, "LARGEST", 10)
    with pytest.raises(TooLargeError):
        replaced(b"aaaa", [Edit(old=b"a", new=b"bbb", everywhere=True)])


@given(text=st.binary(max_size=80), old=st.binary(min_size=1, max_size=20))
def test_near_misses_are_found_in_anything(text: bytes, old: bytes) -> None:
    for near in replacing.near_misses(text, old):
        assert 1 <= near.line <= text.count(b"\n") + 2
