"""Lines in bytes, against the plainest model of them."""

import re

from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.files import lines

data = st.binary(max_size=60) | st.text("ab\n\r", max_size=60).map(str.encode)


def split(content: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


@given(content=data, first=st.integers(1, 12), more=st.integers(0, 12) | st.none(), step=st.integers(1, 9))
def test_a_range_of_lines_is_the_same_however_the_file_is_read(
    content: bytes, first: int, more: int | None, step: int
) -> None:
    blocks = [content[start : start + step] for start in range(0, len(content), step)]
    last = None if more is None else first + more
    found = lines.span(blocks, first=first, last=last)
    assert content[found.begin : found.end] == b"".join(split(content)[first - 1 : last])
    assert found.total == len(split(content)) == lines.count(content)


@given(content=data, line=st.integers(1, 12), text=data)
def test_inserted_lines_stand_between_the_old_ones(content: bytes, line: int, text: bytes) -> None:
    old = split(content)
    found = lines.inserted(content, text, line=line)
    if line > len(old) + 1:
        assert found is None
        return
    assert found is not None

    def bare(some: list[bytes]) -> list[bytes]:
        return [each.rstrip(b"\r\n") for each in some]

    assert bare(split(found)) == bare(old[: line - 1]) + bare(split(text)) + bare(old[line - 1 :])


def test_a_newline_is_added_where_one_is_missing() -> None:
    assert lines.inserted(b"a\nb\n", b"x", line=2) == b"a\nx\nb\n"
    assert lines.inserted(b"a", b"x", line=2) == b"a\nx"
    assert lines.inserted(b"", b"x", line=1) == b"x"


def test_an_added_newline_is_of_the_files_kind() -> None:
    assert lines.inserted(b"a\r\nb\r\n", b"x", line=2) == b"a\r\nx\r\nb\r\n"
