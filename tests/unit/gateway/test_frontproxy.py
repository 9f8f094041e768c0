"""Who the API server's front proxy says is calling, and when it is believed."""

from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from sandpod_gateway.errors import NotConfigured, Unauthenticated
from sandpod_gateway.frontproxy import Trust, identify
from sandpod_gateway.identity import Identity

CONFIG = {
    "requestheader-client-ca-file": "-----BEGIN CERTIFICATE-----",
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
TRUST = Trust.from_config_map(CONFIG)


def certificate(name: str) -> dict[str, Any]:
    """As Python's ssl module shows a verified one."""
    return {"subject": ((("organizationName", "kubernetes"),), (("commonName", name),))}


def headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


FRONT_PROXY = certificate("front-proxy-client")


def test_user_uid_groups_and_extra_come_from_the_headers() -> None:
    found = identify(
        headers(
            ("x-remote-user", "jane"),
            ("X-Remote-Uid", "42"),
            ("X-Remote-Group", "devs"),
            ("X-Remote-Group", "system:authenticated"),
            ("X-Remote-Extra-Scopes", "one"),
            ("X-Remote-Extra-Scopes", "two"),
            ("X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id", "JTI=1"),
        ),
        certificate=FRONT_PROXY,
        trust=TRUST,
    )

    assert found == Identity(
        user="jane",
        uid="42",
        groups=("devs", "system:authenticated"),
        extra=(("authentication.kubernetes.io/credential-id", ("JTI=1",)), ("scopes", ("one", "two"))),
    )


@pytest.mark.parametrize(
    ("name", "key"), [("a%2Fb", "a/b"), ("caf%c3%a9", "caf\u00e9"), ("50%", "50%"), ("a%zz%2f", "a%zz%2f")]
)
def test_a_key_of_extra_is_decoded_unless_it_is_no_encoding(name: str, key: str) -> None:
    found = identify(
        headers(("X-Remote-User", "jane"), (f"X-Remote-Extra-{name}", "v")),
        certificate=FRONT_PROXY,
        trust=TRUST,
    )

    assert found.extra == ((key, ("v",)),)


@pytest.mark.parametrize("shown", [None, {}, certificate("somebody-else"), {"subject": ()}])
def test_identity_headers_of_anybody_else_are_refused(shown: dict[str, Any] | None) -> None:
    with pytest.raises(Unauthenticated):
        identify(headers(("X-Remote-User", "admin")), certificate=shown, trust=TRUST)


def test_without_allowed_names_every_certificate_of_the_ca_is_the_front_proxy() -> None:
    trust = Trust.from_config_map({**CONFIG, "requestheader-allowed-names": "[]"})

    found = identify(headers(("X-Remote-User", "jane")), certificate=certificate("any"), trust=trust)

    assert found.user == "jane"


@pytest.mark.parametrize("given", [(), (("X-Remote-User", ""),), (("X-Remote-Group", "devs"),)])
def test_a_request_without_a_user_is_refused(given: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(Unauthenticated):
        identify(headers(*given), certificate=FRONT_PROXY, trust=TRUST)


def test_an_identity_that_is_not_text_is_refused() -> None:
    broken = b"jane\xff".decode("utf-8", "surrogateescape")
    for pairs in (
        (("X-Remote-User", broken),),
        (("X-Remote-User", "jane"), ("X-Remote-Group", broken)),
        (("X-Remote-User", "jane"), ("X-Remote-Extra-A", broken)),
        (("X-Remote-User", "jane"), ("X-Remote-Extra-%ff", "v")),
    ):
        with pytest.raises(Unauthenticated):
            identify(headers(*pairs), certificate=FRONT_PROXY, trust=TRUST)


def test_other_header_names_of_the_cluster_are_used() -> None:
    trust = Trust.from_config_map({**CONFIG, "requestheader-username-headers": '["X-First", "X-Second"]'})

    found = identify(
        headers(("X-Second", "jane"), ("X-Remote-User", "admin")), certificate=FRONT_PROXY, trust=trust
    )

    assert found.user == "jane"
    assert "x-first" in trust.header_prefixes()


def test_a_uid_header_counts_only_where_the_cluster_names_it() -> None:
    config = {key: value for key, value in CONFIG.items() if key != "requestheader-uid-headers"}

    found = identify(
        headers(("X-Remote-User", "jane"), ("X-Remote-Uid", "0")),
        certificate=FRONT_PROXY,
        trust=Trust.from_config_map(config),
    )

    assert found.uid == ""


@pytest.mark.parametrize(
    "change",
    [
        {"requestheader-client-ca-file": " "},
        {"requestheader-allowed-names": "front-proxy-client"},
        {"requestheader-allowed-names": '{"a": 1}'},
        {"requestheader-group-headers": "[1]"},
    ],
)
def test_a_cluster_without_a_usable_front_proxy_is_said_to_be_so(change: dict[str, str]) -> None:
    with pytest.raises(NotConfigured):
        Trust.from_config_map({**CONFIG, **change})
