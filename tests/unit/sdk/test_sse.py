"""Server-sent events, in whatever pieces they arrive."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod._sse import EventParser, EventTooLarge

BOUND = 100_000

# Lines of a stream: data, comments, other fields, junk; without line ends inside.
_text = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
_line = st.one_of(
    st.builds("data: {}".format, _text),
    st.builds("data:{}".format, _text),
    st.builds(": {}".format, _text),
    st.builds("event: {}".format, _text),
    st.just(""),
    st.just("data"),
)


def parsed(pieces: list[bytes]) -> list[bytes]:
    parser = EventParser(max_event_bytes=BOUND)
    return [event for piece in pieces for event in parser.feed(piece)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(st.lists(_line), st.lists(st.sampled_from(["\n", "\r\n", "\r"])), st.lists(st.integers(0, 10_000)))
def test_where_the_network_cuts_a_stream_makes_no_difference(
    lines: list[str], ends: list[str], places: list[int]
) -> None:
    closed = [line + (ends[at % len(ends)] if ends else "\n") for at, line in enumerate(lines)]
    data = "".join(closed).encode()
    assert (
        parsed(cut(data, places)) == parsed([data]) == parsed([data[at : at + 1] for at in range(len(data))])
    )


@given(st.lists(_text))
def test_every_event_arrives_whole_and_in_order(texts: list[str]) -> None:
    data = "".join(f"data: {text}\n\n" for text in texts).encode()
    assert parsed([data]) == [text.encode() for text in texts]


@given(st.binary(), st.lists(st.integers(0, 10_000)))
def test_no_bytes_crash_the_parser(data: bytes, places: list[int]) -> None:
    assert parsed(cut(data, places)) == parsed([data])


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": hb\n\ndata: a\n\n: hb\n\n", [b"a"]),
        (b"event: x\nid: 7\nretry: 1\ndata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data\n\n", [b""]),
        (b"data: cut o", []),
        (b"data: cut off\n", []),
        (b"dataset: a\n\n", []),
    ],
)
def test_the_standards_rules_hold(stream: bytes, events: list[bytes]) -> None:
    assert parsed([stream]) == events


def test_an_event_without_an_end_is_given_up_before_it_fills_the_memory() -> None:
    with pytest.raises(EventTooLarge):
        parsed([b"data: x"] * (BOUND // 6))


def test_many_lines_without_an_end_are_given_up_as_well() -> None:
    with pytest.raises(EventTooLarge):
        parsed([b"data: x\n"] * (BOUND // 6))


def test_a_stream_of_many_events_is_not_held_to_the_bound_of_one() -> None:
    assert len(parsed([b": hb\ndata: " + b"x" * 50 + b"\n\n"] * (BOUND // 50))) == BOUND // 50
