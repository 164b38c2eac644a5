"""A certificate authority of the tests, and certificates of servers that are valid for `localhost` alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "localhost"
_LIFE = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class Authority:
    """Files of an authority and of one server's certificate.

    Attributes:
        ca: the authority's certificate, PEM.
        certificate: the server's, PEM.
        key: the server's private key, PEM (PKCS 8, not encrypted).
        keystore: key and certificates in one file, as a broker reads them.
    """

    ca: Path
    certificate: Path
    key: Path
    keystore: Path


def make_authority(folder: Path) -> Authority:
    """Make an authority and a certificate for `localhost`, which the address 127.0.0.1 does not match."""
    folder.mkdir(parents=True, exist_ok=True)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = _name("tests of noonmark")
    ca = _builder(root, root, ca_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    issued = _builder(_name(HOST), root, key.public_key()).add_extension(
        x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False
    )
    ca_pem = _pem(ca.sign(ca_key, hashes.SHA256()))
    certificate_pem = _pem(issued.sign(ca_key, hashes.SHA256()))
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    made = Authority(*(folder / name for name in ("ca.pem", "server.pem", "server.key", "keystore.pem")))
    made.ca.write_bytes(ca_pem)
    made.certificate.write_bytes(certificate_pem)
    made.key.write_bytes(key_pem)
    made.keystore.write_bytes(key_pem + certificate_pem + ca_pem)
    return made


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(hours=1),
        not_valid_after=now + _LIFE,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
