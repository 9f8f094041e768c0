"""A program of its own: reads a certificate and says when to replace it, or makes a new one. It runs for a
moment and ends, because the library that it needs would stay in the operator's memory for ever.

In and out is one JSON object. In: dnsNames, and current (tls.crt, tls.key, ca.crt) if there is one. Out:
current's renewAt when it is good; else tls.crt, tls.key, ca.crt and their renewAt.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Json = dict[str, Any]

LIFE = timedelta(days=365)
# Of its life, how much has to be left. The CA goes with the leaf: its key is thrown away at once.
RENEW_WITH_LEFT = LIFE / 3
# Clocks of a cluster differ.
SKEW = timedelta(minutes=10)


def main() -> None:
    request = json.load(sys.stdin)
    now = datetime.now(UTC)
    json.dump(answer(request["dnsNames"], request.get("current") or {}, now=now), sys.stdout)


def answer(dns_names: list[str], current: dict[str, str], *, now: datetime) -> Json:
    renew_at = renewal(dns_names, current, now=now)
    if renew_at is not None and now < renew_at:
        return {"renewAt": renew_at.isoformat()}
    made = make(dns_names, now=now)
    # The old CA stays trusted until the next renewal: whoever still shows its certificate is believed
    # meanwhile.
    made["ca.crt"] += "".join(pem(ca) for ca in authorities(current)[:1] if ca.not_valid_after_utc > now)
    return {**made, "renewAt": (now + LIFE - RENEW_WITH_LEFT).isoformat()}


def renewal(dns_names: list[str], current: dict[str, str], *, now: datetime) -> datetime | None:
    """When the current certificate has to be replaced; None when it is not usable."""
    try:
        leaf = x509.load_pem_x509_certificates(current["tls.crt"].encode())[0]
        key = serialization.load_pem_private_key(current["tls.key"].encode(), password=None)
        leaf.verify_directly_issued_by(authorities(current)[0])
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (KeyError, IndexError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return None
    if not set(dns_names) <= set(names.get_values_for_type(x509.DNSName)):
        return None
    if spki(key.public_key()) != spki(leaf.public_key()) or leaf.not_valid_before_utc > now:
        return None
    return leaf.not_valid_after_utc - RENEW_WITH_LEFT


def make(dns_names: list[str], *, now: datetime) -> dict[str, str]:
    ca_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"sandpod-ca-{int(now.timestamp())}")])
    authority_id = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        builder(ca_name, ca_name, ca_key.public_key(), now=now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(ca=True), critical=True)
        .add_extension(authority_id, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    leaf_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, dns_names[0][:64])])
    leaf = (
        builder(leaf_name, ca_name, key.public_key(), now=now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in dns_names]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {"tls.crt": pem(leaf) + pem(ca), "tls.key": private.decode(), "ca.crt": pem(ca)}


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFE)
    )


def usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def authorities(current: dict[str, str]) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(current.get("ca.crt", "").encode())
    except ValueError:
        return []


def spki(key: Any) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


if __name__ == "__main__":
    main()
