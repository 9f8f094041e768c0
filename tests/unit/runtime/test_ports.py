"""The kernel's table of sockets, and where a probe may be led."""

import socket
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_runtime.ports.listening import Socket, ancestors, parsed, shown_address
from sandpod_runtime.ports.probe import encoded, local_target

HEAD = b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def line(address: str, port: int, *, state: str = "0A", uid: int = 1000, inode: int = 42) -> bytes:
    return (
        f"   0: {address}:{port:04X} {'0' * len(address)}:0000 {state} 00000000:00000000 00:00000000 "
        f"00000000  {uid}        0 {inode} 1 00000000f6a1782e 100 0 0 10 0\n"
    ).encode()


def words(packed: bytes) -> str:
    """As a machine of little-endian numbers prints them."""
    return "".join(packed[at : at + 4][::-1].hex().upper() for at in range(0, len(packed), 4))


@given(port=st.integers(1, 65535), uid=st.integers(0, 2**32 - 1), inode=st.integers(0, 2**40))
def test_a_listening_socket_is_read_from_its_line(port: int, uid: int, inode: int) -> None:
    table = HEAD + line("0100007F", port, uid=uid, inode=inode) + line("00000000", 1, state="01")
    assert parsed(table, family=socket.AF_INET) == [
        Socket(address="127.0.0.1", port=port, uid=uid, inode=inode)
    ]


@given(st.ip_addresses(v=4))
def test_addresses_of_version_4_come_back(address: object) -> None:
    packed = socket.inet_pton(socket.AF_INET, str(address))
    assert shown_address(bytes.fromhex(words(packed)), family=socket.AF_INET) == str(address)


@given(st.ip_addresses(v=6))
def test_addresses_of_version_6_come_back(address: object) -> None:
    packed = socket.inet_pton(socket.AF_INET6, str(address))
    shown = shown_address(bytes.fromhex(words(packed)), family=socket.AF_INET6)
    mapped = getattr(address, "ipv4_mapped", None)
    assert ip_address(shown) == (mapped or address)


@given(st.binary() | st.lists(st.binary(max_size=20), max_size=12).map(b" ".join))
def test_no_table_is_too_strange(text: bytes) -> None:
    for family in (socket.AF_INET, socket.AF_INET6):
        parsed(HEAD + text, family=family)
        parsed(HEAD + line("0100007F", 80)[: len(text)] + text, family=family)


def test_ancestors_end_at_the_root_and_in_a_circle() -> None:
    assert ancestors(4, {4: 3, 3: 1, 1: 0}) == (3, 1)
    assert ancestors(4, {4: 3, 3: 4}) == (3, 4)
    assert ancestors(4, {}) == ()


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/next?x=1#y", ("127.0.0.1", 8080, "/next?x=1")),
        ("next", ("127.0.0.1", 8080, "/a/next")),
        ("http://localhost:9000", (None, 9000, "/")),
        ("http://[::1]:9000/b", ("::1", 9000, "/b")),
        ("http://127.9.9.9/", ("127.9.9.9", 80, "/")),
        ("//evil.example/x", None),
        ("http://evil.example/", None),
        ("http://localhost.evil.example/", None),
        ("http://169.254.169.254/latest", None),
        ("http://127.0.0.1@evil.example/", None),
        ("http://0.0.0.0/", None),
        ("https://localhost/", None),
        ("ftp://localhost/", None),
        ("file:///etc/passwd", None),
        ("http://localhost:99999/", None),
        ("http://[::1", None),
    ],
)
def test_redirects_are_followed_within_loopback_only(
    location: str, target: tuple[str | None, int, str] | None
) -> None:
    assert local_target(location, host="127.0.0.1", port=8080, path="/a/b") == target


@given(st.text() | st.text("htps:/.@127001localhost[]%evil?#\\"))
def test_no_redirect_leads_away(location: str) -> None:
    target = local_target(location, host="::1", port=8080, path="/")
    if target is not None:
        address, _, path = target
        assert address is None or ip_address(address).is_loopback
        assert path.startswith("/")


@given(st.text())
def test_a_path_is_one_word_of_ascii(path: str) -> None:
    try:
        found = encoded(path)
    except UnicodeEncodeError:
        return  # half of a surrogate pair, which no JSON brings
    assert found.isascii()
    assert found.startswith("/")
    assert not set(found) & set(" \r\n#\0")
