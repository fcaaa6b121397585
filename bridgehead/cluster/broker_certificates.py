"""Certificates for the channel between brokers: an authority of their own, one pair per broker.

    DIR/channel/                 mode 0700, every file in it 0600
        ca.pem                   the authority, whose key is thrown away
        broker-ID.pem .key       a broker's certificate and its key
        made.json                for whom, and until when

A certificate says two things: as whom the broker acts (the common name: the inter-broker user, so
that `super.users` can name it) and which broker it is (the host name `broker-ID.bridgehead`, which
both ends check). No client's certificate comes from this authority.
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
_RENEW_BEFORE_S: Final = 30 * 86_400


@dataclasses.dataclass(frozen=True, slots=True)
class CertificateFiles:
    """What one broker needs, as PEM files."""

    certificate: Path
    key: Path
    authority: Path


def broker_host(broker_id: int) -> str:
    """The name in a broker's certificate that says which broker it is."""
    return f"broker-{broker_id}.bridgehead"


def files_of(folder: Path, broker_id: int) -> CertificateFiles:
    """Where a broker's files lie below `folder`."""
    return CertificateFiles(
        folder / f"broker-{broker_id}.pem", folder / f"broker-{broker_id}.key", folder / "ca.pem"
    )


def makes_certificates(settings: ClusterSettings) -> bool:
    """Whether the brokers' certificates are made here: unless some are given, or none are wanted.

    What is said for one node alone counts for all: half a cluster with them cannot talk.
    """
    said = [settings.properties, *settings.node_properties.values()]
    wanted = all(each.get("bridgehead.grpc.tls", "true").lower() == "true" for each in said)
    given = any(each.get("bridgehead.grpc.certificate") for each in said)
    return wanted and not given


def channel_folder(settings: ClusterSettings) -> Path:
    """Where a cluster's files lie."""
    return settings.data_dir.resolve() / "channel"


def ensure_wanted(settings: ClusterSettings) -> None:
    """Has the files of a cluster for which they are made here. Raises OSError."""
    if makes_certificates(settings):
        user = settings.properties.get(INTER_BROKER_USER, "broker")
        ensure_certificates(channel_folder(settings), range(1, settings.brokers + 1), user)


def ensure_certificates(folder: Path, broker_ids: Sequence[int], user: str) -> None:
    """Has every broker's files in `folder`; makes all anew where one is missing or unlike.

    With the authority's key gone nobody can be added later: more brokers or another user mean new
    certificates for all.

    Raises:
        OSError: the folder cannot be written.
    """
    wanted = {"user": user, "brokers": sorted(broker_ids)}
    made = read_json(folder / "made.json") or {}
    there = all(
        path.exists()
        for broker_id in broker_ids
        for path in dataclasses.astuple(files_of(folder, broker_id))
    )
    if there and made.get("for") == wanted and made.get("until", 0) > time.time() + _RENEW_BEFORE_S:
        return
    (folder / "made.json").unlink(missing_ok=True)
    until = make_certificates(folder, dict.fromkeys(broker_ids, user))
    write_private(folder / "made.json", json.dumps({"for": wanted, "until": until}).encode())


def make_certificates(folder: Path, users: Mapping[int, str]) -> float:
    """Makes an authority and a certificate for each broker, by the user that it acts as.

    Returns until when they are good, in seconds since 1970.

    Raises:
        OSError: the folder cannot be written.
    """
    # Imported here: it costs a quarter of a second, and is needed once in ten years.
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    from bridgehead.cluster.certificates import PEM, certificate_builder, common_name, key_text

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    life = datetime.timedelta(days=_LIFE_DAYS)
    ca_key, ca_name = ec.generate_private_key(ec.SECP256R1()), common_name("Bridgehead brokers")
    authority = certificate_builder(ca_name, ca_name, ca_key.public_key(), life).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    write_private(folder / "ca.pem", authority.sign(ca_key, hashes.SHA256()).public_bytes(PEM))
    for broker_id, user in users.items():
        files, key = files_of(folder, broker_id), ec.generate_private_key(ec.SECP256R1())
        certificate = (
            certificate_builder(common_name(user), ca_name, key.public_key(), life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.DNSName(broker_host(broker_id))]), critical=False
            )
        )
        signed = certificate.sign(ca_key, hashes.SHA256())
        write_private(files.certificate, signed.public_bytes(PEM))
        write_private(files.key, key_text(key))
    return time.time() + life.total_seconds()
