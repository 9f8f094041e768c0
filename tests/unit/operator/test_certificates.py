"""The gateway's certificate: one that a TLS client accepts, replaced in time, trusted at every moment."""

import asyncio
import base64
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sandpod_crds.errors import Forbidden, NotFound
from sandpod_operator import x509
from sandpod_operator.certificates import Certificates
from sandpod_operator.errors import CertificateFailed
from sandpod_operator.metrics import Metrics
from sandpod_operator.objects import Json

from tests.support.operator_api import Api
from tests.support.operator_objects import INSTALLATION

NAMES = ["sandpod-gateway.sandpod-system.svc", "sandpod-gateway.sandpod-system.svc.cluster.local"]
TODAY = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
SECRET = "/api/v1/namespaces/sandpod-system/secrets/sandpod-gateway-tls"
SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.run.sandpod.dev"


def cluster() -> Api:
    api = Api(now=lambda: datetime.now(UTC))
    api.put(SERVICE, {"metadata": {"name": "v1alpha1.run.sandpod.dev"}, "spec": {}})
    api.calls.clear()
    return api


def certificates(api: Api, *, metrics: Metrics | None = None) -> Certificates:
    return Certificates(
        cluster=api,
        settings=INSTALLATION.settings,
        metrics=metrics or Metrics(),
        now=lambda: datetime.now(UTC),
    )


def decoded(secret: Json) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}


async def test_a_tls_client_that_trusts_the_ca_accepts_the_certificate(tmp_path: Path) -> None:
    made = x509.make(NAMES, now=datetime.now(UTC))
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    client = ssl.create_default_context(cadata=made["ca.crt"])
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result(await reader.readline())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server) as listening:
        port = listening.sockets[0].getsockname()[1]
        for name in NAMES[:1]:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=name)
            writer.write(b"hello\n")
            assert await asyncio.wait_for(heard, 5) == b"hello\n"
            writer.close()
            await writer.wait_closed()


def test_a_good_certificate_is_left_alone() -> None:
    made = x509.make(NAMES, now=TODAY)
    found = x509.answer(NAMES, made, now=TODAY + timedelta(days=200))

    assert set(found) == {"renewAt"}
    assert datetime.fromisoformat(found["renewAt"]) > TODAY + timedelta(days=240)


def test_it_is_replaced_when_a_third_of_its_life_is_left_and_both_cas_are_trusted() -> None:
    old = x509.make(NAMES, now=TODAY)
    new = x509.answer(NAMES, old, now=TODAY + timedelta(days=250))

    assert new["tls.crt"] != old["tls.crt"]
    assert new["ca.crt"].endswith(old["ca.crt"])
    assert new["ca.crt"].count("BEGIN CERTIFICATE") == 2
    # The one before the last is forgotten.
    newest = x509.answer(NAMES, new, now=TODAY + timedelta(days=500))
    assert newest["ca.crt"].count("BEGIN CERTIFICATE") == 2
    assert old["ca.crt"] not in newest["ca.crt"]


@pytest.mark.parametrize("entry", ["tls.crt", "tls.key", "ca.crt"])
@pytest.mark.parametrize(
    "value", ["", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_broken_entry_is_replaced(entry: str, value: str) -> None:
    broken = {**x509.make(NAMES, now=TODAY), entry: value}

    assert "tls.crt" in x509.answer(NAMES, broken, now=TODAY)


def test_a_certificate_for_other_names_or_of_another_ca_or_key_is_replaced() -> None:
    made, other = x509.make(NAMES, now=TODAY), x509.make(NAMES, now=TODAY)

    assert "tls.crt" in x509.answer(["gateway.elsewhere.svc"], made, now=TODAY)
    assert "tls.crt" in x509.answer(NAMES, {**made, "ca.crt": other["ca.crt"]}, now=TODAY)
    assert "tls.crt" in x509.answer(NAMES, {**made, "tls.key": other["tls.key"]}, now=TODAY)


async def test_the_first_certificate_is_made_and_its_ca_told() -> None:
    api = cluster()
    renew_at = await certificates(api).ensure()

    secret = api.objects[SECRET]
    assert secret["type"] == "kubernetes.io/tls"
    assert api.objects[SERVICE]["spec"]["caBundle"] == secret["data"]["ca.crt"]
    assert renew_at > datetime.now(UTC) + timedelta(days=200)


async def test_what_fails_is_counted_by_its_reason() -> None:
    api, metrics = cluster(), Metrics()

    def refuse(_: int, call: str) -> None:
        raise Forbidden(403, "Forbidden", call)

    api.before = refuse
    running = asyncio.create_task(certificates(api, metrics=metrics).run())
    while not metrics.errors.value(part="certificates"):
        assert not running.done()
        await asyncio.sleep(0)
    running.cancel()

    assert metrics.errors.value(part="certificates", reason="Forbidden") == 1


async def test_looking_again_writes_nothing() -> None:
    api = cluster()
    await certificates(api).ensure()
    api.calls.clear()
    await certificates(api).ensure()

    assert {call.split()[0] for call in api.calls} == {"GET"}


async def test_a_secret_that_is_as_it_was_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    api = cluster()
    watched = certificates(api)
    renew_at = await watched.ensure()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    assert await watched.ensure() == renew_at


async def test_a_deleted_secret_and_a_lost_ca_are_mended_at_the_next_look() -> None:
    api = cluster()
    watched = certificates(api)
    await watched.ensure()
    api.change(SERVICE, {"spec": {"caBundle": None}})
    await watched.ensure()
    assert api.objects[SERVICE]["spec"]["caBundle"] == api.objects[SECRET]["data"]["ca.crt"]

    api.vanish(SECRET)
    await watched.ensure()
    assert api.objects[SERVICE]["spec"]["caBundle"] == api.objects[SECRET]["data"]["ca.crt"]


@pytest.mark.parametrize("answer", ["", "garbage", "{}", "[]", '{"renewAt": "soon"}', None])
async def test_whatever_the_program_for_certificates_does_is_one_kind_of_failure(
    answer: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "python"
    if answer is not None:
        program.write_text(f"#!/bin/sh\ncat >/dev/null\nprintf %s '{answer}'\n")
        program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    with pytest.raises(CertificateFailed):
        await certificates(cluster()).ensure()


async def test_a_new_ca_is_trusted_before_its_certificate_is_shown() -> None:
    api = cluster()
    await certificates(api).ensure()
    old = x509.make(NAMES, now=datetime.now(UTC) - timedelta(days=300))
    data = {name: base64.b64encode(text.encode()).decode() for name, text in old.items()}
    api.change(SECRET, {"data": data})
    api.calls.clear()
    await certificates(api).ensure()

    assert [call for call in api.calls if call.startswith("PATCH")] == [f"PATCH {SERVICE}", f"PATCH {SECRET}"]
    assert decoded(api.objects[SECRET])["ca.crt"].endswith(old["ca.crt"])


async def test_the_certificate_is_there_for_the_gateway_even_when_the_apiservice_is_not() -> None:
    api = cluster()
    api.vanish(SERVICE)
    with pytest.raises(NotFound):
        await certificates(api).ensure()

    assert SECRET in api.objects


def test_the_operator_itself_never_loads_the_library_for_certificates() -> None:
    code = "import sys, sandpod_operator.watching; print('cryptography' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert found.stdout.strip() == "False"
