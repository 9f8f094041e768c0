"""Who we are: tokens, token files, passwords, and what credential plugins print."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from sandpod import _plugin
from sandpod._auth import Authenticator
from sandpod._plugin import parse
from sandpod._target import Plugin, Target
from sandpod.errors import CredentialError

V1 = "client.authentication.k8s.io/v1"
SERVER = "https://a:6443"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def plugin(*lines: str, **fields: Any) -> Plugin:
    """A real program: these lines of Python."""
    return Plugin(api_version=V1, command=sys.executable, args=("-c", "\n".join(lines)), **fields)


def printing(**status: Any) -> str:
    document = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
    return f"print('''{json.dumps(document)}''')"


def authorization(target: Target, **options: Any) -> str:
    return dict(Authenticator(target, **options).headers()).get("Authorization", "")


def test_a_token_is_sent_as_it_is() -> None:
    assert authorization(Target(server=SERVER, token="t")) == "Bearer t"


def test_a_password_is_sent_the_basic_way() -> None:
    assert authorization(Target(server=SERVER, username="a", password="b")) == "Basic YTpi"


def test_nothing_is_sent_by_who_has_nothing() -> None:
    assert Authenticator(Target(server=SERVER)).headers() == []


def test_a_token_file_is_read_again_once_a_minute(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text("old\n")
    auth = Authenticator(Target(server=SERVER, token_file=str(path), token="not this"), clock=clock)
    assert auth.headers() == [("Authorization", "Bearer old")]
    path.write_text("new\n")
    clock.now += 30
    assert auth.headers() == [("Authorization", "Bearer old")]
    clock.now += 31
    assert auth.headers() == [("Authorization", "Bearer new")]


def test_after_a_refusal_the_token_file_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    auth = Authenticator(Target(server=SERVER, token_file=str(path)))
    auth.headers()
    path.write_text("new")
    assert auth.forget()
    assert auth.headers() == [("Authorization", "Bearer new")]


def test_a_fixed_token_that_was_refused_is_not_tried_again() -> None:
    auth = Authenticator(Target(server=SERVER, token="t"))
    auth.headers()
    assert not auth.forget()


def test_a_missing_token_file_is_named() -> None:
    with pytest.raises(CredentialError, match="/nowhere/token"):
        Authenticator(Target(server=SERVER, token_file="/nowhere/token")).headers()


def test_a_plugin_is_asked_once_until_its_credential_expires(tmp_path: Path) -> None:
    runs, clock = tmp_path / "runs", Clock()
    count = f"open({str(runs)!r}, 'a').write('x')"
    target = Target(
        server=SERVER, plugin=plugin(count, printing(token="p", expirationTimestamp="1970-01-12T13:56:40Z"))
    )
    auth = Authenticator(target, clock=clock)
    for _ in range(3):
        assert auth.headers() == [("Authorization", "Bearer p")]
    assert runs.read_text() == "x"
    clock.now = 1_004_200.0 - 4
    auth.headers()
    assert runs.read_text() == "xx"


def test_after_a_refusal_the_plugin_is_asked_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    auth = Authenticator(
        Target(server=SERVER, plugin=plugin(f"open({str(runs)!r}, 'a').write('x')", printing(token="p")))
    )
    auth.headers()
    assert auth.forget()
    auth.headers()
    assert runs.read_text() == "xx"


def test_a_token_in_the_kubeconfig_spares_the_plugin() -> None:
    target = Target(server=SERVER, token="t", plugin=plugin("raise SystemExit(1)"))
    assert authorization(target) == "Bearer t"


def test_a_plugin_may_give_a_certificate() -> None:
    target = Target(server=SERVER, plugin=plugin(printing(clientCertificateData="C", clientKeyData="K")))
    auth = Authenticator(target)
    assert auth.certificate() == ("C", "K")
    assert auth.headers() == []


def test_a_plugin_learns_what_it_is_asked_for(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    target = Target(
        server=SERVER,
        ca_data="PEM",
        cluster_extension={"audience": "x"},
        plugin=plugin(
            "import os",
            f"open({str(seen)!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'] + os.environ['REGION'])",
            printing(token="p"),
            env=(("REGION", "north"),),
            provide_cluster_info=True,
        ),
    )
    authorization(target)
    info, end = json.JSONDecoder().raw_decode(seen.read_text())
    assert seen.read_text()[end:] == "north"
    assert info == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": SERVER,
                "certificate-authority-data": "UEVN",
                "config": {"audience": "x"},
            },
        },
    }


def test_a_plugin_that_fails_says_so_itself_and_we_say_which_it_was(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(CredentialError, match="exit code 3") as caught:
        authorization(
            Target(server=SERVER, plugin=plugin("import sys; print('expired', file=sys.stderr); sys.exit(3)"))
        )
    assert "log in again" in str(caught.value)
    assert capfd.readouterr().err == "expired\n"


def test_a_plugin_that_is_not_installed_comes_with_its_hint() -> None:
    missing = Plugin(api_version=V1, command="no-such-plugin", install_hint="Get it at the shop.")
    with pytest.raises(CredentialError, match=r"not installed\. Get it at the shop\."):
        authorization(Target(server=SERVER, plugin=missing))


def test_a_plugin_that_needs_a_person_is_not_started_without_one() -> None:
    target = Target(server=SERVER, plugin=plugin(printing(token="p"), interactive_mode="Always"))
    with pytest.raises(CredentialError, match="not a terminal"):
        _plugin.run(target, plugin("", interactive_mode="Always"), may_read_stdin=False)
    with pytest.raises(CredentialError, match="not a terminal"):
        authorization(target, may_read_stdin=False)


def credential(**changes: Any) -> bytes:
    return json.dumps(
        {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}, **changes}
    ).encode()


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"a token",
        b"[]",
        credential(kind="Token"),
        credential(apiVersion="client.authentication.k8s.io/v1beta1"),
        credential(status=None),
        credential(status={}),
        credential(status={"clientCertificateData": "C"}),
        credential(status={"token": "t", "expirationTimestamp": "tomorrow"}),
    ],
)
def test_what_is_not_a_credential_is_refused(output: bytes) -> None:
    with pytest.raises(CredentialError, match="printed something that is not a credential"):
        parse(output, plugin=Plugin(api_version=V1, command="x"))


def test_impersonation_goes_along() -> None:
    target = Target(server=SERVER, token="t", impersonate=(("Impersonate-User", "jane"),))
    assert Authenticator(target).headers() == [("Impersonate-User", "jane"), ("Authorization", "Bearer t")]
