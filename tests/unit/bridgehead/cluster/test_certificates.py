"""Certificates that are generated for a cluster."""

from __future__ import annotations

import datetime
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bridgehead.cluster.certificates import PEM, Authority


def handshake(server_file: Path, client_file: Path, authority: Path, host: str) -> str:
    """Return the client's name that the server sees in an in-memory handshake with mutual TLS.

    Both sides follow RFC 5280 strictly, which is the default since Python 3.13.
    """
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(server_file)
    server_context.verify_mode = ssl.CERT_REQUIRED
    server_context.load_verify_locations(authority)
    client_context = ssl.create_default_context(cafile=authority)
    client_context.load_cert_chain(client_file)
    server_context.verify_flags |= ssl.VERIFY_X509_STRICT
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    sides = [client, server]
    while sides:
        side = sides.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            sides.append(side)
    certificate = server.getpeercert()
    assert certificate is not None
    subject: Any = certificate["subject"]
    ((_, name),) = subject[0]
    return str(name)


@pytest.mark.parametrize("host", ["127.0.0.1", "kafka.example.org"])
def test_brokers_and_users_authenticate_each_other(tmp_path: Path, host: str) -> None:
    authority = Authority(tmp_path / "tls")
    brokers = authority.issue_brokers(["127.0.0.1", "kafka.example.org"])
    alice = authority.issue_user("alice")
    assert handshake(brokers, alice, authority.certificate_file, host) == "alice"
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(brokers, alice, authority.certificate_file, "elsewhere.example.org")


def test_user_certificate_is_invalid_for_servers(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    alice = authority.issue_user("alice")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(alice, alice, authority.certificate_file, "127.0.0.1")


def test_authority_is_kept_and_users_of_another_authority_are_rejected(tmp_path: Path) -> None:
    alice = Authority(tmp_path / "tls").issue_user("alice")
    again = Authority(tmp_path / "tls")
    brokers = again.issue_brokers(["127.0.0.1"])
    assert handshake(brokers, alice, again.certificate_file, "127.0.0.1") == "alice"
    stranger = Authority(tmp_path / "other").issue_user("alice")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(brokers, stranger, again.certificate_file, "127.0.0.1")


def test_authority_of_an_earlier_version_gets_a_new_certificate_for_the_same_key(
    tmp_path: Path,
) -> None:
    """Its certificate had no key usage. Clients that trust it can connect as before."""
    folder = tmp_path / "tls"
    current = Authority(folder)
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(current.certificate_file.read_bytes())
    name, now = certificate.subject, datetime.datetime.now(datetime.UTC)
    earlier = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    current.certificate_file.write_bytes(earlier.public_bytes(PEM))
    renewed = Authority(folder)
    brokers, alice = renewed.issue_brokers(["127.0.0.1"]), renewed.issue_user("alice")
    assert handshake(brokers, alice, renewed.certificate_file, "127.0.0.1") == "alice"
    x509.load_pem_x509_certificates(brokers.read_bytes())[0].verify_directly_issued_by(earlier)


def test_files_are_private(tmp_path: Path) -> None:
    """The umask has no effect, and user names are escaped in file names."""
    authority = Authority(tmp_path / "tls")
    authority.issue_brokers(["127.0.0.1"])
    authority.issue_user("../../etc/passwd")
    authority.issue_brokers(["127.0.0.1"])
    for path in (tmp_path / "tls").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert sorted(entry.name for entry in (tmp_path / "tls" / "users").iterdir()) == [
        "..%2F..%2Fetc%2Fpasswd.pem"
    ]
