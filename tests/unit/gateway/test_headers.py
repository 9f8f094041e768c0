"""Which headers cross the gateway."""

from hypothesis import given
from hypothesis import strategies as st
from sandpod_gateway.headers import to_client, to_runtime


def test_nothing_that_says_who_the_client_is_reaches_the_runtime() -> None:
    theirs = [
        (b"Authorization", b"Bearer secret"),
        (b"COOKIE", b"session=secret"),
        (b"X-Remote-User", b"admin"),
        (b"x-remote-group", b"system:masters"),
        (b"X-Remote-Extra-Scopes", b"all"),
        (b"Impersonate-User", b"admin"),
        (b"X-Sandpod-Credential", b"guessed"),
        (b"x_sandpod_credential", b"guessed"),
        (b"X-Sandpod-Bind-Token", b"guessed"),
        (b"Proxy-Authorization", b"Basic x"),
        (b"X-Forwarded-For", b"10.0.0.1"),
        (b"X-Forwarded-Host", b"evil.example"),
        (b"Forwarded", b"for=10.0.0.1"),
        (b"X-Real-IP", b"10.0.0.1"),
        (b"X-Special-User", b"admin"),
        (b"X-Special-Extra-Scopes", b"all"),
    ]

    assert to_runtime(theirs, identity_headers=("x-special-user", "x-special-extra-")) == []


def test_headers_of_the_request_itself_reach_the_runtime_as_they_were_written() -> None:
    theirs = [
        (b"content-TYPE", b"application/json"),
        (b"X-Trace-Id", b"tr_1"),
        (b"Accept", b"a"),
        (b"Accept", b"b"),
    ]

    assert to_runtime(theirs) == [
        b"content-TYPE: application/json\r\n",
        b"X-Trace-Id: tr_1\r\n",
        b"Accept: a\r\n",
        b"Accept: b\r\n",
    ]


def test_headers_about_one_connection_end_with_it() -> None:
    theirs = [
        (b"Connection", b"keep-alive, X-Private"),
        (b"Connection", b"x-more"),
        (b"Keep-Alive", b"timeout=5"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Length", b"5"),
        (b"TE", b"trailers"),
        (b"Trailer", b"X-Sum"),
        (b"Upgrade", b"h2c"),
        (b"X-Private", b"1"),
        (b"X-More", b"2"),
        (b"X-Kept", b"3"),
    ]

    assert to_runtime(theirs) == [b"X-Kept: 3\r\n"]
    assert to_client(theirs) == [b"X-Kept: 3\r\n"]


def test_the_runtime_can_neither_set_cookies_nor_show_its_credential_to_the_client() -> None:
    answer = [(b"Set-Cookie", b"a=b; Domain=example"), (b"X-Sandpod-Credential", b"x"), (b"ETag", b'"1"')]

    assert to_client(answer) == [b'ETag: "1"\r\n']


def test_an_answer_with_control_characters_in_a_header_is_no_answer() -> None:
    assert to_client([(b"X-A", b"b\rSet-Cookie: c")]) is None
    assert to_client([(b"X-A", b"b\nSet-Cookie: c")]) is None
    assert to_client([(b"X-A", b"\x00")]) is None
    assert to_client([(b"X A", b"b")]) is None
    assert to_client([(b"", b"b")]) is None


def test_text_of_other_languages_in_a_header_passes() -> None:
    assert to_client([(b"X-Name", "caf\u00e9".encode())]) == ["X-Name: caf\u00e9\r\n".encode()]


@given(st.lists(st.tuples(st.binary(), st.binary())))
def test_no_header_that_reaches_the_client_can_end_early(answer: list[tuple[bytes, bytes]]) -> None:
    for line in to_client(answer) or []:
        assert line.endswith(b"\r\n")
        assert not set(line[:-2]) & {0, 10, 13}
