"""Certificates for the channel between brokers: when they are replaced, and who can read them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from bridgehead.cluster.broker_certificates import broker_host, ensure_certificates, files_of


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_certificate_contains_the_broker_and_its_user(tmp_path: Path) -> None:
    """The key of the authority is not stored."""
    folder = tmp_path / "channel"
    ensure_certificates(folder, [1, 2], "inter")
    (authority,) = x509.load_pem_x509_certificates(files_of(folder, 1).authority.read_bytes())
    # RFC 5280 requires the key usage and the key identifiers, and Python 3.13 checks them.
    usage = authority.extensions.get_extension_for_class(x509.KeyUsage).value
    key_id = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert usage.key_cert_sign
    for broker_id in (1, 2):
        (certificate,) = x509.load_pem_x509_certificates(
            files_of(folder, broker_id).certificate.read_bytes()
        )
        (user,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert user.value == "inter"
        assert names.get_values_for_type(x509.DNSName) == [broker_host(broker_id)]
        certificate.verify_directly_issued_by(authority)
        issuer = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        assert issuer.key_identifier == key_id.digest
    assert {path.name for path in folder.glob("*.key")} == {"broker-1.key", "broker-2.key"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_certificates_are_kept_until_the_settings_change(tmp_path: Path) -> None:
    """All certificates are replaced if a broker is added, the user changes or a file is missing."""
    ensure_certificates(tmp_path, [1, 2], "broker")
    before = contents(tmp_path)
    ensure_certificates(tmp_path, [2, 1], "broker")
    assert contents(tmp_path) == before
    for brokers, user in (([1, 2, 3], "broker"), ([1, 2, 3], "inter")):
        ensure_certificates(tmp_path, brokers, user)
        assert contents(tmp_path)["ca.pem"] != before["ca.pem"]
        before = contents(tmp_path)
    files_of(tmp_path, 3).key.unlink()
    ensure_certificates(tmp_path, [1, 2, 3], "inter")
    assert contents(tmp_path)["ca.pem"] != before["ca.pem"]


@pytest.mark.parametrize(
    "record", ['{"until": 1}', '{"for": {"brokers": [1], "user": "broker"}}', "no json", "[]"]
)
def test_expiring_older_or_damaged_certificates_are_replaced(tmp_path: Path, record: str) -> None:
    ensure_certificates(tmp_path, [1], "broker")
    record_file = tmp_path / "made.json"
    if record.startswith("{"):
        record = json.dumps({**json.loads(record_file.read_text()), **json.loads(record)})
    record_file.write_text(record)
    before = contents(tmp_path)["ca.pem"]
    ensure_certificates(tmp_path, [1], "broker")
    assert contents(tmp_path)["ca.pem"] != before
