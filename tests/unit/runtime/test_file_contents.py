"""Contents, ranges and permissions as clients spell them."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.errors import Fault
from sandpod_runtime.files import contents, ranges
from sandpod_runtime.files.accounts import parsed
from sandpod_runtime.files.modes import permission_bits, symbolic


@given(data=st.binary(max_size=100))
def test_base64_is_read_exactly(data: bytes) -> None:
    assert b"".join(contents.from_base64(base64.b64encode(data).decode())) == data


def test_long_base64_is_read_in_pieces() -> None:
    data = bytes(range(256)) * 4096
    parts = contents.from_base64(base64.b64encode(data).decode())
    assert len(parts) > 1
    assert b"".join(parts) == data


@pytest.mark.parametrize("text", ["YQ", "YQ=", "Y", "YQ==\n", "Y Q==", "YQ==YQ==", "-_-_", "ÿÿÿÿ", "===="])
def test_what_is_not_exactly_base64_is_refused(text: str) -> None:
    with pytest.raises(Fault) as caught:
        contents.from_base64(text)
    [problem] = caught.value.body()["context"]["validationErrors"]  # type: ignore[index]
    assert (problem["field"], problem["code"]) == ("content", "INVALID_BASE64")


def test_padding_in_the_middle_of_long_base64_is_refused() -> None:
    with pytest.raises(Fault):
        contents.from_base64("A" * (4 * 65_536 - 4) + "YQ==" + "AAAA")


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "utf-16"])
def test_a_text_is_written_as_python_would(charset: str) -> None:
    text = "grüße\n" * 60_000
    assert b"".join(contents.from_text(text, charset=charset)) == text.encode(charset)


def test_a_character_that_a_charset_lacks_is_named() -> None:
    with pytest.raises(Fault, match="€"):
        contents.from_text("5 €", charset="latin-1")


@given(size=st.integers(0, 50), first=st.integers(0, 60), last=st.integers(0, 60))
def test_a_range_is_what_a_slice_is(size: int, first: int, last: int) -> None:
    data = bytes(range(size))
    try:
        found = ranges.wanted(f"bytes={first}-{last}", size=size)
    except ranges.UnsatisfiableError:
        assert first >= size
        assert first <= last
        return
    begin, end = found or (0, size)
    assert data[begin:end] == (data[first : last + 1] if first <= last else data)


@pytest.mark.parametrize(
    ("header", "part"),
    [
        (None, None),
        ("bytes=2-", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-30", (0, 10)),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("lines=1-2", None),
        ("bytes=²-3", None),
        ("bytes=" + "9" * 40 + "-", None),
    ],
)
def test_ranges_are_understood_or_ignored(header: str | None, part: tuple[int, int] | None) -> None:
    assert ranges.wanted(header, size=10) == part


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_range_behind_the_end_is_refused(header: str) -> None:
    with pytest.raises(ranges.UnsatisfiableError):
        ranges.wanted(header, size=10)


@pytest.mark.parametrize(
    "date", ["", "yesterday", "Mon, 99 Xxx 0000", "Fri, 31 Dec 9999 23:59:59 -2359", "1"]
)
def test_a_date_that_is_none_changes_nothing(date: str) -> None:
    found = ranges.is_known(if_none_match=None, if_modified_since=date, etag='"a"', modified=2**40)
    assert found is False


@given(seconds=st.floats(-1e18, 1e18))
def test_any_time_of_a_file_can_stand_in_a_header(seconds: float) -> None:
    assert ranges.http_date(seconds).endswith("GMT")


@pytest.mark.parametrize(
    ("given_mode", "bits"),
    [("644", 0o644), ("0755", 0o755), ("0o600", 0o600), (420, 0o644), ("0", 0), ("7777", 0o7777)],
)
def test_permissions_are_octal_text_or_a_number(given_mode: str | int, bits: int) -> None:
    assert permission_bits(given_mode) == bits


@pytest.mark.parametrize("given_mode", ["", "8", "rwx", "-1", "77777", "0x1f", "٣", -1, 0o10000])
def test_other_permissions_are_refused(given_mode: str | int) -> None:
    with pytest.raises(Fault, match="mode"):
        permission_bits(given_mode)


def test_a_mode_has_nine_characters() -> None:
    assert symbolic(0o100644) == "rw-r--r--"
    assert symbolic(0o104755) == "rwxr-xr-x"


@given(data=st.binary(max_size=200))
def test_any_passwd_file_can_be_read(data: bytes) -> None:
    parsed(data)


def test_the_first_name_of_a_number_counts() -> None:
    assert parsed(b"root:x:0:0::/:\ntoor:x:0:0::/:\nbroken\nme:x:1000:1::/:") == {0: "root", 1000: "me"}
