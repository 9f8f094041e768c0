"""Preview URLs: what is written can be read again, and nothing else can be read."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandpod_crds import keys
from sandpod_crds.previews import MAX_LABEL, PreviewAddress, Site

SITE = Site(domain="preview.example.com", scheme="https")
TOKEN = "abcdefghijklmnopqr27"
ALPHANUMERIC = string.ascii_lowercase + string.digits
PORTS = st.integers(1024, 65535).filter(lambda port: port != 3000)
NAMES = st.from_regex(
    r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?){0,3}", fullmatch=True
)


@given(PORTS, NAMES, st.text(min_size=1, max_size=36))
def test_every_port_of_every_sandbox_has_a_host_that_fits_and_reads_back(
    port: int, name: str, uid: str
) -> None:
    token = keys.preview_token(key=bytes(32), sandbox_uid=uid, port=port, version=1)
    address = PreviewAddress.of(port=port, sandbox=name, token=token)
    assert len(address.label) <= MAX_LABEL
    assert set(address.label) <= {*ALPHANUMERIC, "-"}
    assert SITE.address_in(SITE.host(address)) == address


@pytest.mark.parametrize(
    "label",
    [
        f"08080-app-{TOKEN}",
        f"+8080-app-{TOKEN}",
        f"-8080-app-{TOKEN}",
        f"8_080-app-{TOKEN}",
        f"٨٠٨٠-app-{TOKEN}",
        f"8080.0-app-{TOKEN}",
        f"0x1f90-app-{TOKEN}",
        f"80-app-{TOKEN}",
        f"1023-app-{TOKEN}",
        f"65536-app-{TOKEN}",
        f"99999-app-{TOKEN}",
        f"3000-app-{TOKEN}",
    ],
)
def test_a_port_is_canonical_decimal_and_never_the_control_port(label: str) -> None:
    assert SITE.address_in(f"{label}.preview.example.com") is None


@pytest.mark.parametrize(
    "host",
    [
        "preview.example.com",
        f"8080-app-{TOKEN}.preview.example.com.evil.example",
        f"8080-app-{TOKEN}.evil.example",
        f"8080-app-{TOKEN}.x.preview.example.com",
        f"8080-app-{TOKEN}xpreview.example.com",
        f"8080-{TOKEN}.preview.example.com",
        f"8080-APP-{TOKEN}.preview.example.com",
        f"8080-app-{TOKEN[:-1]}.preview.example.com",
        f"8080-app-{TOKEN}\n.preview.example.com",
        f"8080-{'a' * 40}-{TOKEN}.preview.example.com",
    ],
)
def test_a_host_that_is_not_exactly_a_previews_is_none(host: str) -> None:
    assert SITE.address_in(host) is None


def test_a_hyphenated_name_is_split_at_the_last_hyphen() -> None:
    address = SITE.address_in(f"8080-8081-my-app-{TOKEN}.preview.example.com")
    assert address == PreviewAddress(port=8080, name="8081-my-app", token=TOKEN)


@given(st.text(max_size=80))
def test_whatever_stands_before_the_domain_is_read_without_an_error(label: str) -> None:
    address = SITE.address_in(f"{label}.preview.example.com")
    assert address is None or address.label == label


def test_a_url_names_the_port_only_when_it_is_not_the_schemes_own() -> None:
    address = PreviewAddress.of(port=8080, sandbox="app", token=TOKEN)
    assert SITE.url(address) == f"https://8080-app-{TOKEN}.preview.example.com/"
    assert Site(port=8080).url(address) == f"http://8080-app-{TOKEN}.sandpod.localhost:8080/"
    assert Site(port=80).url(address) == f"http://8080-app-{TOKEN}.sandpod.localhost/"
