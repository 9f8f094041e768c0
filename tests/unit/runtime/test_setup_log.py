"""The log of a setup: what is kept of it, and how readers come through it."""

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.budget import Budget
from sandpod_runtime.lifecycle.setup_log import SetupLog


def log(limit: int = 1000) -> SetupLog:
    return SetupLog(memory=Budget(1 << 30), limit=limit)


def read(found: SetupLog, *, most: int) -> bytes:
    offset, pieces = 0, list[bytes]()
    while offset < found.total:
        piece, offset = found.read(offset, most=most)
        assert piece
        pieces.append(piece)
    return b"".join(pieces)


@given(pieces=st.lists(st.binary(min_size=1, max_size=300), max_size=20), most=st.integers(1, 200))
def test_a_reader_gets_all_that_is_kept_and_is_told_what_is_not(pieces: list[bytes], most: int) -> None:
    found = log()
    for piece in pieces:
        found.write(piece)
    written = b"".join(pieces)
    whole = read(found, most=most)
    if len(written) <= 1000:
        assert whole == written
    else:
        cut = len(written) - 1000
        note = b"\n[%d bytes of output were cut here]\n" % cut
        assert whole == written[:500] + note + written[-500:]
    assert found.whole() == whole


@given(pieces=st.lists(st.binary(min_size=1, max_size=300), max_size=20), lag=st.integers(1, 5))
def test_a_follower_sees_each_byte_once_or_learns_that_it_came_too_late(
    pieces: list[bytes], lag: int
) -> None:
    found = log(limit=2000)
    seen, offset = b"", 0
    for number, piece in enumerate(pieces):
        found.write(piece)
        while number % lag == 0 and offset < found.total:
            more, offset = found.read(offset, most=100)
            seen += more
    while offset < found.total:
        more, offset = found.read(offset, most=100)
        seen += more
    written = b"".join(pieces)
    assert seen == written or b"bytes of output were cut here" in seen
    assert seen.endswith(written[-100:])


def test_after_the_end_nothing_is_kept() -> None:
    found = log()
    found.write(b"said")
    found.close()
    found.write(b"late")
    assert found.whole() == b"said"


def test_a_note_has_a_line_of_its_own() -> None:
    found = log()
    found.write(b"no newline")
    found.note("Step 1 ended.")
    found.note("So did all.")
    assert found.whole() == b"no newline\nStep 1 ended.\nSo did all.\n"


def test_its_end_is_so_many_characters_of_text() -> None:
    found = log()
    found.write("äöü€".encode() * 100)
    assert found.end(10) == ("äöü€" * 100)[-10:]
    assert log().end(10) == ""
