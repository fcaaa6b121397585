"""Certificates for the channel between brokers: an authority, and a certificate and key per broker.

    DIR/channel/                 mode 0700, every file in it 0600
        ca.pem                   the authority; its key is not kept
        broker-ID.pem .key       a broker's certificate and its key
        made.json                version, brokers, user and expiry

The common name of a certificate is the inter-broker user, which `super.users` can name. The host
name of a certificate, `broker-ID.bridgehead`, identifies the broker; both ends of a connection
check the other's host name. The authority signs no client certificates.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bridgehead.cluster.data_directory import read_json, write_private
from bridgehead.cluster.settings import ClusterSettings

INTER_BROKER_USER: Final = "bridgehead.inter.broker.user"
_LIFE_DAYS: Final = 3650
_VERSION: Final = 2  # The authority of version 1 has no key usage, which Python 3.13 requires.
_RENEW_BEFORE_S: Final = 30 * 86_400


@dataclasses.dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The PEM files of one broker."""

    certificate: Path
    key: Path
    authority: Path


def broker_host(broker_id: int) -> str:
    """Return the host name in a broker's certificate."""
    return f"broker-{broker_id}.bridgehead"


def files_of(folder: Path, broker_id: int) -> CertificateFiles:
    """Return the paths of a broker's files in `folder`."""
    return CertificateFiles(
        folder / f"broker-{broker_id}.pem", folder / f"broker-{broker_id}.key", folder / "ca.pem"
    )


def makes_certificates(settings: ClusterSettings) -> bool:
    """Return whether the channel uses TLS and the user gives no certificates for it.

    A setting of one node counts for all, because either all nodes use TLS or none does.
    """
    given_properties = [settings.properties, *settings.node_properties.values()]
    wanted = all(
        given_property.get("bridgehead.grpc.tls", "true").lower() == "true"
        for given_property in given_properties
    )
    has_certificate = any(
        given_property.get("bridgehead.grpc.certificate") for given_property in given_properties
    )
    return wanted and not has_certificate


def channel_folder(settings: ClusterSettings) -> Path:
    """Return the folder of the certificates for the channel between a cluster's brokers."""
    return settings.data_dir.resolve() / "channel"


def ensure_cluster_certificates(settings: ClusterSettings) -> None:
    """Generate a cluster's certificates if needed. Raises OSError."""
    if makes_certificates(settings):
        user = settings.properties.get(INTER_BROKER_USER, "broker")
        ensure_certificates(channel_folder(settings), range(1, settings.brokers + 1), user)


def ensure_certificates(folder: Path, broker_ids: Sequence[int], user: str) -> None:
    """Generate every broker's files in `folder`, unless all exist, match and do not expire soon.

    The authority's key is not kept, so another broker or another user requires new certificates
    for all brokers.

    Raises:
        OSError: the folder cannot be written.
    """
    wanted = {"version": _VERSION, "user": user, "brokers": sorted(broker_ids)}
    record = read_json(folder / "made.json") or {}
    exist = all(
        path.exists()
        for broker_id in broker_ids
        for path in dataclasses.astuple(files_of(folder, broker_id))
    )
    is_valid = record.get("until", 0) > time.time() + _RENEW_BEFORE_S
    if exist and record.get("for") == wanted and is_valid:
        return
    (folder / "made.json").unlink(missing_ok=True)
    until = make_certificates(folder, dict.fromkeys(broker_ids, user))
    write_private(folder / "made.json", json.dumps({"for": wanted, "until": until}).encode())


def make_certificates(folder: Path, users: Mapping[int, str]) -> float:
    """Generate an authority, and a certificate for each broker; `users` has their common names.

    Return when all these certificates expire, in seconds since 1970.

    Raises:
        OSError: the folder cannot be written.
    """
    # Imported here: the import takes a quarter of a second and is needed once in ten years.
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    from bridgehead.cluster.certificates import (
        PEM,
        authority_certificate,
        certificate_builder,
        common_name,
        key_text,
    )

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    life = datetime.timedelta(days=_LIFE_DAYS)
    ca_key, ca_name = ec.generate_private_key(ec.SECP256R1()), common_name("Bridgehead brokers")
    authority = authority_certificate(ca_name, ca_key, life)
    write_private(folder / "ca.pem", authority.public_bytes(PEM))
    for broker_id, user in users.items():
        files, key = files_of(folder, broker_id), ec.generate_private_key(ec.SECP256R1())
        certificate = certificate_builder(
            common_name(user), key, (ca_name, ca_key), life
        ).add_extension(
            x509.SubjectAlternativeName([x509.DNSName(broker_host(broker_id))]), critical=False
        )
        signed = certificate.sign(ca_key, hashes.SHA256())
        write_private(files.certificate, signed.public_bytes(PEM))
        write_private(files.key, key_text(key))
    return time.time() + life.total_seconds()
