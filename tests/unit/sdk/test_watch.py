"""The lines of a watch, in whatever pieces they arrive."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod import _requests
from sandpod._watch import EventLines, Expired
from sandpod.errors import SandpodError, Unavailable

REQUEST = _requests.watch(namespace="default", resource_version="1")


def event(text: str) -> dict[str, Any]:
    return {"type": "MODIFIED", "object": {"metadata": {"name": text}}}


@given(st.lists(st.text()), st.lists(st.integers(0, 10_000)))
def test_where_the_network_cuts_a_watch_makes_no_difference(texts: list[str], places: list[int]) -> None:
    events = [event(text) for text in texts]
    data = b"".join(json.dumps(each).encode() + b"\n" for each in events)
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    lines = EventLines(request=REQUEST)
    assert [each for start, end in pairwise(edges) for each in lines.feed(data[start:end])] == events


def test_a_version_that_is_too_old_means_to_begin_anew() -> None:
    line = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}})
    with pytest.raises(Expired):
        EventLines(request=REQUEST).feed(line.encode() + b"\n")


def test_another_error_in_a_watch_is_raised_as_what_it_is() -> None:
    line = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 500, "message": "etcd is away"}})
    with pytest.raises(Unavailable, match="etcd is away"):
        EventLines(request=REQUEST).feed(line.encode() + b"\n")


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(SandpodError, match="not JSON"):
        EventLines(request=REQUEST).feed(b"<html>\n")


def test_a_line_without_an_end_is_given_up() -> None:
    with pytest.raises(SandpodError, match="too large"):
        EventLines(request=REQUEST).feed(b"x" * (9 << 20))
