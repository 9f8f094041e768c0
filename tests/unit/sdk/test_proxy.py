"""Which proxy leads to a cluster: the one that kubectl would take."""

import pytest
from sandpod._proxy import choose

PROXY = {"HTTPS_PROXY": "http://proxy:3128"}


def chosen(server: str, **environ: str) -> str | None:
    return choose(server=server, configured="", environ=environ)


def test_the_kubeconfigs_own_proxy_beats_everything() -> None:
    found = choose(server="https://127.0.0.1", configured="socks5://x:1", environ={**PROXY, "NO_PROXY": "*"})
    assert found == "socks5://x:1"


@pytest.mark.parametrize("server", ["https://localhost:6443", "https://127.0.0.1:6443", "https://[::1]:6443"])
def test_a_cluster_on_this_machine_is_never_reached_through_a_proxy(server: str) -> None:
    assert chosen(server, **PROXY) is None


def test_the_scheme_decides_which_variable_counts() -> None:
    assert chosen("https://a.example", HTTPS_PROXY="s", HTTP_PROXY="h") == "http://s"
    assert chosen("http://a.example", HTTPS_PROXY="s", http_proxy="h") == "http://h"
    assert chosen("https://a.example", HTTP_PROXY="h") is None


@pytest.mark.parametrize(
    ("server", "rules", "direct"),
    [
        ("https://a.example", "*", True),
        ("https://a.example", "example", True),
        ("https://a.example", ".example", True),
        ("https://example", ".example", False),
        ("https://a.example", "b.example, a.example", True),
        ("https://ba.example", "a.example", False),
        ("https://a.example:6443", "a.example:6443", True),
        ("https://a.example:6443", "a.example:443", False),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://11.1.2.3", "10.0.0.0/8", False),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://10.1.2.3:6443", "10.1.2.3:443", False),
        ("https://[fd00::1]", "fd00::/8", True),
        ("https://[fd00::1]", "[fd00::1]", True),
        ("https://10.1.2.3", "example", False),
        ("https://a.example", "", False),
        ("https://a.example", "*.example", True),
    ],
)
def test_exceptions_are_read_as_go_reads_them(server: str, rules: str, direct: bool) -> None:
    assert (chosen(server, **PROXY, NO_PROXY=rules) is None) == direct
