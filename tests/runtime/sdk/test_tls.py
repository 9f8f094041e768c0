"""Encrypted connections: whom we trust, under which name, and with which certificate we come."""

import base64
import datetime
import json
import select
import socket
import socketserver
import ssl
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from sandpod import Client, Sandbox
from sandpod.errors import ConfigError, Unavailable

from tests.support.api_server import ApiServer


@dataclass
class Issued:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def issue(name: str, *, by: Issued | None = None, dns: str = "") -> Issued:
    """A certificate; without an issuer an authority, of the bare kind that old clusters have."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if dns:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(dns)]), critical=False)
    return Issued(builder.sign(by.key if by else key, hashes.SHA256()), key)


@dataclass
class Place:
    """A cluster that wants to see a certificate, and is called `kube.internal` in its own."""

    api: ApiServer
    authority: Issued
    user: Issued
    folder: Path

    def client(self, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Client:
        path = self.folder / "kubeconfig"
        trusted = {
            "certificate-authority-data": base64.b64encode(self.authority.pem).decode(),
            "tls-server-name": "kube.internal",
        }
        known = {
            "client-certificate-data": base64.b64encode(self.user.pem).decode(),
            "client-key-data": base64.b64encode(self.user.key_pem).decode(),
        }
        config = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": self.api.url, **(cluster or trusted)}}],
            "users": [{"name": "test", "user": known if user is None else user}],
        }
        path.write_text(json.dumps(config))
        return Client(kubeconfig=path)


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    authority = issue("authority")
    server = issue("server", by=authority, dns="kube.internal")
    (tmp_path / "server.pem").write_bytes(server.pem + server.key_pem)
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    settings = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    settings.load_cert_chain(tmp_path / "server.pem")
    settings.load_verify_locations(tmp_path / "ca.pem")
    settings.verify_mode = ssl.CERT_REQUIRED
    with ApiServer(tls=settings) as api:
        yield Place(api, authority, issue("user", by=authority), tmp_path)


def test_certificates_inside_the_kubeconfig(place: Place) -> None:
    with place.client() as client:
        assert Sandbox.list(client=client) == []


def test_certificates_in_files(place: Place) -> None:
    (place.folder / "user.pem").write_bytes(place.user.pem)
    (place.folder / "user.key").write_bytes(place.user.key_pem)
    cluster = {"certificate-authority": "ca.pem", "tls-server-name": "kube.internal"}
    with place.client(
        cluster=cluster, user={"client-certificate": "user.pem", "client-key": "user.key"}
    ) as client:
        assert Sandbox.list(client=client) == []


def test_a_server_under_another_name_is_not_trusted(place: Place) -> None:
    data = base64.b64encode(place.authority.pem).decode()
    with (
        place.client(cluster={"certificate-authority-data": data}) as client,
        pytest.raises(ConfigError, match="not trusted"),
    ):
        Sandbox.list(client=client)


def test_a_server_of_another_authority_is_not_trusted(place: Place) -> None:
    other = base64.b64encode(issue("other").pem).decode()
    cluster = {"certificate-authority-data": other, "tls-server-name": "kube.internal"}
    with place.client(cluster=cluster) as client, pytest.raises(ConfigError, match="certificate-authority"):
        Sandbox.list(client=client)


def test_without_an_authority_the_systems_are_trusted_and_this_is_none_of_them(place: Place) -> None:
    with (
        place.client(cluster={"tls-server-name": "kube.internal"}) as client,
        pytest.raises(ConfigError, match="not trusted"),
    ):
        Sandbox.list(client=client)


@pytest.fixture
def proxy() -> Generator[tuple[str, list[str]]]:
    """An HTTP proxy's address, and the places that it was asked to connect to."""
    asked: list[str] = []

    class Tunnel(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline().decode().split()[1])
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            host, port = asked[-1].split(":")
            # Who does not like the certificate hangs up, which is not the tunnel's trouble.
            with suppress(ConnectionError), socket.create_connection((host, int(port))) as far:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                self.relay({self.connection: far, far: self.connection})

        def relay(self, ends: dict[socket.socket, socket.socket]) -> None:
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    if not (data := end.recv(65536)):
                        return
                    ends[end].sendall(data)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Tunnel) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


def test_the_kubeconfigs_proxy_is_used_and_the_name_is_still_checked(
    place: Place, proxy: tuple[str, list[str]]
) -> None:
    url, asked = proxy
    data = base64.b64encode(place.authority.pem).decode()
    trusted = {"certificate-authority-data": data, "proxy-url": url}
    with place.client(cluster={**trusted, "tls-server-name": "kube.internal"}) as client:
        assert Sandbox.list(client=client) == []
    assert asked == [place.api.url.removeprefix("https://")]
    with (
        place.client(cluster={**trusted, "tls-server-name": "other.internal"}) as client,
        pytest.raises(ConfigError, match="not trusted"),
    ):
        Sandbox.list(client=client)


@pytest.mark.parametrize(
    ("url", "kind"),
    [("http://127.0.0.1:1", Unavailable), ("socks5://127.0.0.1:1", ConfigError), ("x://y", ConfigError)],
)
def test_a_proxy_that_does_not_work_is_named(place: Place, url: str, kind: type[Exception]) -> None:
    cluster = {"insecure-skip-tls-verify": True, "proxy-url": url}
    with place.client(cluster=cluster) as client, pytest.raises(kind, match=url):
        Sandbox.list(client=client)


def test_whoever_insists_is_not_protected(place: Place) -> None:
    with place.client(cluster={"insecure-skip-tls-verify": True}) as client:
        assert Sandbox.list(client=client) == []


def test_coming_without_a_certificate_is_told(place: Place) -> None:
    with place.client(user={}) as client, pytest.raises(Unavailable, match="cannot be reached"):
        Sandbox.list(client=client)


@pytest.mark.parametrize("key", ["", "nonsense", "encrypted", "another"])
def test_a_key_that_does_not_fit_is_told(place: Place, key: str) -> None:
    encrypted = place.user.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    keys = {"encrypted": encrypted, "another": issue("x").key_pem}
    user = {
        "client-certificate-data": base64.b64encode(place.user.pem).decode(),
        "client-key-data": base64.b64encode(keys.get(key, key.encode())).decode(),
    }
    with place.client(user=user) as client, pytest.raises(ConfigError, match="cannot be used"):
        Sandbox.list(client=client)


def test_a_certificate_authority_that_is_none_is_told(place: Place) -> None:
    for cluster in (
        {"certificate-authority-data": base64.b64encode(b"nonsense").decode()},
        {"certificate-authority": "missing.pem"},
    ):
        with (
            place.client(cluster=cluster) as client,
            pytest.raises(ConfigError, match="No certificate authority"),
        ):
            Sandbox.list(client=client)
