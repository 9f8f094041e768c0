"""Where the API server is found: a kubeconfig with a token or a plugin; and what is said without."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from sandpod_crds.errors import NotConfigured
from sandpod_crds.kube_configuration import find_configuration

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not in a pod, no proxy, and no kubeconfig of whoever runs the tests."""
    for name in (
        "KUBERNETES_SERVICE_HOST",
        "https_proxy",
        "HTTPS_PROXY",
        "no_proxy",
        "NO_PROXY",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))


def write_kubeconfig(tmp_path: Path, user: Json) -> None:
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example.com:6443/"}}],
        "users": [{"name": "u", "user": user}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))


async def test_no_kubeconfig_is_said_with_what_to_set() -> None:
    with pytest.raises(NotConfigured, match="set KUBECONFIG"):
        await find_configuration()


@pytest.mark.parametrize("text", ["{", "[]", "current-context: gone\ncontexts: []\nclusters: []\n"])
async def test_a_broken_kubeconfig_is_one_error_and_no_riddle(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(NotConfigured):
        await find_configuration()


async def test_a_kubeconfig_with_a_token_is_used(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path, {"token": "secret"})
    configuration = await find_configuration()
    assert configuration.host == "https://api.example.com:6443"
    assert await configuration.get_api_key_with_prefix("BearerToken") == "Bearer secret"


@pytest.mark.parametrize(
    ("expiry", "runs"),
    [(None, 1), ("2000-01-01T00:00:00Z", 3), ("2999-01-01T00:00:00Z", 1)],
    ids=["without expiry", "expired", "good for long"],
)
async def test_a_plugin_is_asked_again_only_when_its_token_has_expired(
    tmp_path: Path, expiry: str | None, runs: int
) -> None:
    log = tmp_path / "runs"
    status = {"token": "t"} if expiry is None else {"token": "t", "expirationTimestamp": expiry}
    answer = json.dumps(
        {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    )
    script = f"open({str(log)!r}, 'a').write('x'); print({answer!r})"
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", script],
    }
    write_kubeconfig(tmp_path, {"exec": plugin})
    configuration = await find_configuration()
    for _ in range(2):
        assert await configuration.get_api_key_with_prefix("BearerToken") == "Bearer t"
    assert len(log.read_text()) == runs


async def test_a_proxy_of_the_environment_is_used_unless_the_host_is_excepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_kubeconfig(tmp_path, {"token": "secret"})
    monkeypatch.setenv("https_proxy", "http://proxy.example.com:3128")
    assert (await find_configuration()).proxy == "http://proxy.example.com:3128"
    monkeypatch.setenv("no_proxy", ".example.com")
    assert (await find_configuration()).proxy is None
