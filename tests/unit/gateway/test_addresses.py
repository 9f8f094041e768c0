"""Which addresses the gateway connects to."""

import pytest
from sandpod_gateway.addresses import control_address, host_header, may_dial
from sandpod_gateway.errors import BrokenOff


@pytest.mark.parametrize(
    "address", ["10.244.0.7", "172.18.0.2", "192.168.1.9", "203.0.113.5", "fd00::7", "2001:db8::1"]
)
def test_the_address_of_a_pod_is_dialled_at_the_control_port(address: str) -> None:
    assert control_address(address) == (address, 3000)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "0.0.0.0",
        "::",
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "fd00::1%eth0",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "2002:7f00:1::",
        "localhost",
        "metadata.internal",
        "10.0.0.1:80",
        "10.0.0.1@evil.example",
        "0x7f000001",
        "2130706433",
        "127.1",
        "010.0.0.1",
        "",
        " 10.0.0.1",
    ],
)
def test_client_supplied_addresses_loopback_and_link_local_are_not_dialled(address: str) -> None:
    assert not may_dial(address)
    with pytest.raises(BrokenOff):
        control_address(address)


def test_an_ipv6_address_stands_in_brackets_in_the_host_header() -> None:
    assert host_header(("fd00::7", 3000)) == b"[fd00::7]:3000"
    assert host_header(("10.0.0.1", 3000)) == b"10.0.0.1:3000"
