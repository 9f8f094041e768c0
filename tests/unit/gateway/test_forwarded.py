"""Who a client is when proxies stand in front, and from where a request with a cookie comes."""

from ipaddress import ip_network

import pytest
from aiohttp.test_utils import make_mocked_request
from sandpod_gateway.forwarded import Sender, sender_of
from sandpod_gateway.origins import is_own, origin_of

ELSEWHERE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def sender(peer: str, *headers: tuple[str, str]) -> Sender:
    request = make_mocked_request("GET", "/", headers=dict(headers))
    return sender_of(request, peer=peer, scheme="http", trusted=TRUSTED)


def test_what_anybody_says_of_himself_counts_for_nothing() -> None:
    said = sender("192.0.2.1", ("X-Forwarded-For", "10.0.0.9"), ("X-Forwarded-Proto", "https"))
    assert said == Sender(source="192.0.2.1", scheme="http")


@pytest.mark.parametrize(
    ("chain", "source"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("6.6.6.6, 192.0.2.1", "192.0.2.1"),
        ("6.6.6.6, 192.0.2.1, 10.0.0.7", "192.0.2.1"),
        ("2001:db8::1, fd00::7", "2001:db8::1"),
        ("10.0.0.8, 10.0.0.7", "10.0.0.8"),
        ("192.0.2.1, nonsense", "10.0.0.1"),
        ("192.0.2.1, nonsense, 10.0.0.7", "10.0.0.7"),
        ("", "10.0.0.1"),
        ("192.0.2.1\r\nX: y", "10.0.0.1"),
    ],
)
def test_the_source_is_the_last_address_that_is_no_proxy_of_ours(chain: str, source: str) -> None:
    assert sender("10.0.0.1", ("X-Forwarded-For", chain)).source == source
    assert sender("::ffff:10.0.0.1", ("X-Forwarded-For", chain)).source.removeprefix("::ffff:") == source


@pytest.mark.parametrize(
    ("said", "scheme"), [("https", "https"), ("HTTP, https", "https"), ("gopher", "http")]
)
def test_a_proxy_of_ours_says_by_which_scheme_somebody_came(said: str, scheme: str) -> None:
    assert sender("10.0.0.1", ("X-Forwarded-Proto", said)).scheme == scheme


def test_an_origin_is_written_as_browsers_write_it() -> None:
    assert origin_of(scheme="https", host="X.example:443") == "https://x.example"
    assert origin_of(scheme="http", host="x.example:443") == "http://x.example:443"
    assert origin_of(scheme="http", host="x.example:80") == "http://x.example"


@pytest.mark.parametrize(
    ("method", "headers", "own"),
    [
        ("GET", {}, True),
        ("GET", {"Sec-Fetch-Site": "none"}, True),
        ("GET", {"Sec-Fetch-Site": "same-origin"}, True),
        ("GET", {**ELSEWHERE, "Sec-Fetch-Dest": "document"}, True),
        # A frame in a neighbour's page, whose visitor clicks on what he does not see
        ("GET", {**ELSEWHERE, "Sec-Fetch-Dest": "iframe"}, False),
        ("GET", ELSEWHERE, False),
        ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, False),
        ("GET", {"Upgrade": "websocket"}, False),
        ("GET", {"Origin": "https://other.example"}, False),
        ("POST", {}, False),
        ("POST", {"Origin": "https://x.example"}, True),
        ("POST", {"Origin": "https://x.example:8443"}, False),
        ("POST", {"Origin": "null"}, False),
    ],
)
def test_a_cookie_counts_for_the_previews_own_pages(method: str, headers: dict[str, str], own: bool) -> None:
    request = make_mocked_request(method, "/", headers=headers)
    assert is_own(request, "https://x.example") is own
