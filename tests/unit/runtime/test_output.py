"""Keeping output within a bound, and putting it into a reply."""

import base64
import json

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.budget import Budget
from sandpod_runtime.process.output import FLOOR, Capture, Ring
from sandpod_runtime.process.rendering import base64_pieces, json_string, text_pieces

CHUNKS = st.lists(st.binary(max_size=60), max_size=30)
PLENTY = 1 << 40


def captured(chunks: list[bytes], *, limit: int, budget: int = PLENTY) -> Capture:
    capture = Capture(limit=limit, budget=Budget(budget))
    for chunk in chunks:
        assert capture.write(chunk) is True
    return capture


def kept_bytes(capture: Capture) -> bytes:
    return bytes(capture.head) + b"".join(bytes(part) for part in capture.tail)


@given(chunks=CHUNKS, capacity=st.integers(0, 100))
def test_a_ring_holds_the_last_bytes(chunks: list[bytes], capacity: int) -> None:
    ring = Ring(capacity, grant=lambda count: count)
    for chunk in chunks:
        ring.write(memoryview(chunk))
    whole = b"".join(chunks)
    assert b"".join(bytes(part) for part in ring.pieces()) == whole[len(whole) - min(capacity, len(whole)) :]


@given(chunks=CHUNKS, capacity=st.integers(1, 100), allowed=st.integers(0, 100))
def test_a_ring_that_may_not_grow_holds_the_last_bytes_of_what_it_may(
    chunks: list[bytes], capacity: int, allowed: int
) -> None:
    left = allowed

    def grant(count: int) -> int:
        nonlocal left
        granted = min(left, count)
        left -= granted
        return granted

    ring = Ring(capacity, grant=grant)
    for chunk in chunks:
        ring.write(memoryview(chunk))
    whole = b"".join(chunks)
    size = min(capacity, allowed, len(whole))
    assert b"".join(bytes(part) for part in ring.pieces()) == whole[len(whole) - size :]


@given(chunks=CHUNKS, limit=st.integers(0, 400))
def test_a_capture_keeps_the_beginning_and_the_end_and_counts_the_rest(
    chunks: list[bytes], limit: int
) -> None:
    whole = b"".join(chunks)
    capture = captured(chunks, limit=limit)
    kept = kept_bytes(capture)
    assert len(kept) == min(limit, len(whole))
    assert capture.cut == len(whole) - len(kept)
    assert whole.startswith(bytes(capture.head))
    assert whole.endswith(kept[len(capture.head) :])
    if not capture.cut:
        assert kept == whole


@given(chunks=CHUNKS)
def test_whether_output_ends_a_line_is_known_whatever_was_cut(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    capture = captured([chunk for chunk in chunks if chunk], limit=3)
    assert capture.ends_line is (whole == b"" or whole.endswith(b"\n"))


def test_a_capture_takes_from_the_budget_and_gives_all_of_it_back() -> None:
    budget = Budget(1_000_000)
    capture = Capture(limit=500_000, budget=budget)
    capture.write(b"x" * 800_000)
    assert not budget.take(1_000_000 - 500_000 + FLOOR + 1)
    capture.release()
    assert budget.take(1_000_000)


def test_when_the_budget_is_spent_a_capture_still_keeps_both_ends() -> None:
    budget = Budget(0)
    capture = Capture(limit=1 << 20, budget=budget)
    for number in range(100_000):
        capture.write(b"%06d\n" % number)
    text = "".join(text_pieces(capture))
    assert text.startswith("000000\n000001\n")
    assert text.endswith("099998\n099999\n")
    assert capture.kept == FLOOR
    assert capture.cut == 700_000 - FLOOR


def test_two_captures_share_a_budget() -> None:
    budget = Budget(100_000)
    first, second = (Capture(limit=1 << 20, budget=budget) for _ in range(2))
    for _ in range(100):
        first.write(b"x" * 1000)
        second.write(b"y" * 1000)
    assert first.kept + second.kept <= 100_000 + 2 * FLOOR


@given(chunks=CHUNKS)
def test_text_is_what_decoding_the_whole_would_give(chunks: list[bytes]) -> None:
    capture = captured(chunks, limit=10_000)
    assert "".join(text_pieces(capture)) == b"".join(chunks).decode(errors="replace")


@given(text=st.text(min_size=1, max_size=300), limit=st.integers(0, 200))
def test_cut_text_has_no_broken_character_and_says_how_much_is_missing(text: str, limit: int) -> None:
    text = text.replace("\ufffd", "")
    data = text.encode()
    shown = "".join(text_pieces(captured([data], limit=limit)))
    if len(data) <= limit:
        assert shown == text
        return
    assert "\ufffd" not in shown
    start = shown.index("\n[")
    note, _, end = shown[start + 2 :].partition(" bytes of output were cut here]\n")
    while not note.isdecimal():  # the text has brackets of its own
        start = shown.index("\n[", start + 1)
        note, _, end = shown[start + 2 :].partition(" bytes of output were cut here]\n")
    assert text.startswith(shown[:start])
    assert text.endswith(end)
    assert int(note) == len(data) - len(shown[:start].encode()) - len(end.encode())


@given(chunks=CHUNKS, limit=st.integers(0, 400), note=st.binary(max_size=10))
def test_base64_is_what_was_kept_and_the_note(chunks: list[bytes], limit: int, note: bytes) -> None:
    capture = captured(chunks, limit=limit)
    text = "".join(base64_pieces(capture, note=note))
    assert base64.b64decode(text, validate=True) == kept_bytes(capture) + note


@given(pieces=st.lists(st.text(max_size=20), max_size=10))
def test_a_json_string_may_be_written_in_pieces(pieces: list[str]) -> None:
    assert json.loads(b"".join(json_string(iter(pieces)))) == "".join(pieces)


def test_large_outputs_come_in_pieces_of_a_bounded_size() -> None:
    capture = captured([b"x" * 1_000_000], limit=10_000_000)
    assert max(len(piece) for piece in text_pieces(capture)) <= 200_000
    assert max(len(piece) for piece in base64_pieces(capture, note=b"")) <= 270_000
