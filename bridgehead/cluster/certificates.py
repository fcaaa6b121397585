"""Generates the certificates of CA, brokers and users, for TLS between clients and brokers.

    DIR/tls/           mode 0700, every file in it 0600
        ca.pem ca.key  the authority, generated once
        brokers.pem    a key and a certificate for the addresses of all brokers
        users/NAME.pem key and certificate of a user, CN=NAME

At every start, brokers and users get new certificates, which are valid for a year. The authority's
certificate is valid for ten years.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bridgehead.cluster.data_directory import write_private

_YEAR: Final = datetime.timedelta(days=365)
# Certificates become valid an hour before now, because clocks may be a little behind.
_EARLIER: Final = datetime.timedelta(hours=1)
PEM: Final = serialization.Encoding.PEM


class Authority:
    """The authority in a folder, generated on first use."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError or ValueError: the folder or its contents cannot be used."""
        self.folder = folder
        self.certificate_file = folder / "ca.pem"
        self.brokers_file = folder / "brokers.pem"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        key_file = folder / "ca.key"
        if key_file.exists():
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
            assert isinstance(key, ec.EllipticCurvePrivateKey)
            self._key = key
            self._certificate = x509.load_pem_x509_certificate(self.certificate_file.read_bytes())
            if not _has_key_usage(self._certificate):
                # Made by an earlier version. Clients that trust the old certificate trust what the
                # same key signs.
                self._make_certificate()
        else:
            self._key = ec.generate_private_key(ec.SECP256R1())
            self._make_certificate()
            write_private(key_file, key_text(self._key))

    def issue_brokers(self, hosts: Iterable[str]) -> Path:
        """Generate the brokers' certificate for these addresses; return its file."""
        return self._issue(self.brokers_file, "brokers", hosts)

    def issue_user(self, name: str) -> Path:
        """Generate a user's certificate; return its file."""
        return self._issue(self.folder / "users" / f"{quote(name, safe='')}.pem", name, ())

    def _make_certificate(self) -> None:
        name = common_name("Bridgehead, for this data directory only")
        self._certificate = authority_certificate(name, self._key, 10 * _YEAR)
        write_private(self.certificate_file, self._certificate.public_bytes(PEM))

    def _issue(self, file: Path, name: str, hosts: Iterable[str]) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        issuer = self._certificate.subject, self._key
        builder = certificate_builder(common_name(name), key, issuer, _YEAR).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        names = [_host_name(host) for host in dict.fromkeys(hosts)]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_private(file, key_text(key) + certificate.public_bytes(PEM))
        return file


def authority_certificate(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, life: datetime.timedelta
) -> x509.Certificate:
    """Return a certificate that an authority signs for itself.

    Its key usage is required by clients that follow RFC 5280 strictly, as Python 3.13 does.
    """
    usage = x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=False,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _builder(name, name, key.public_key(), life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _has_key_usage(certificate: x509.Certificate) -> bool:
    return any(isinstance(extension.value, x509.KeyUsage) for extension in certificate.extensions)


def certificate_builder(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: tuple[x509.Name, ec.EllipticCurvePrivateKey],
    life: datetime.timedelta,
) -> x509.CertificateBuilder:
    """Return a builder with what the certificates of all brokers and users have."""
    issuer_name, issuer_key = issuer
    return (
        _builder(subject, issuer_name, key.public_key(), life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    life: datetime.timedelta,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + life)
    )


def common_name(name: str) -> x509.Name:
    """Return the name CN=name."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM."""
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
