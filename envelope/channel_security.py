"""Mutual TLS on the channel between brokers: a certificate identifies the peer.

The common name in a broker's certificate is the name of the broker's principal: a broker with the
common name `broker` is User:broker, for example in `super.users`. The certificate's host names,
`broker-ID.bridgehead`, name the broker ids that the broker may use. All Envelopes of a stream must
have the broker id of its Hello. The broker connects only to the controller that ZooKeeper names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from cluster_model.principal import ANONYMOUS, KafkaPrincipal

_BROKER_HOST: Final = re.compile(r"broker-(\d{1,10})\.bridgehead")


class ChannelSecurityError(Exception):
    """The certificates cannot be used. The text is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class ChannelFiles:
    """PEM files: this broker's certificate and key, and the CA of all brokers."""

    certificate: str
    key: str
    authority: str


@dataclass(frozen=True, slots=True)
class ChannelSecurity:
    """A node's credentials as broker and as controller. The repr shows no key."""

    server: grpc.ServerCredentials
    client: grpc.ChannelCredentials


@dataclass(frozen=True, slots=True)
class PeerIdentity:
    """The identity in a certificate. `broker_ids` is None without TLS."""

    principal: KafkaPrincipal = ANONYMOUS
    broker_ids: frozenset[int] | None = None

    def may_be(self, broker_id: int) -> bool:
        """Return whether the peer may use this broker id."""
        return self.broker_ids is None or broker_id in self.broker_ids


def broker_host(broker_id: int) -> str:
    """Return the host name of a broker id in certificates."""
    return f"broker-{broker_id}.bridgehead"


def load_security(files: ChannelFiles) -> ChannelSecurity:
    """Read the files.

    Raises:
        ChannelSecurityError: a file cannot be read, or is not a PEM file.
    """
    certificate, key, authority = map(_read, (files.certificate, files.key, files.authority))
    return ChannelSecurity(
        server=grpc.ssl_server_credentials(
            [(key, certificate)], root_certificates=authority, require_client_auth=True
        ),
        client=grpc.ssl_channel_credentials(authority, key, certificate),
    )


def _read(path: str) -> bytes:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ChannelSecurityError(
            f"{path} cannot be read ({error.strerror}): name PEM files in bridgehead.grpc.*, or "
            "remove these properties: `bridgehead up` then creates the files."
        ) from None
    if b"-----BEGIN " not in content:
        raise ChannelSecurityError(f"{path} is not a PEM file: name one in bridgehead.grpc.*.")
    return content


def identify(certificate_fields: Mapping[str, Sequence[bytes]]) -> PeerIdentity | None:
    """Return the identity in gRPC's `auth_context`.

    None if the certificate has no common name or names no broker.
    """
    (name,) = certificate_fields.get("x509_common_name") or (b"",)
    hosts = (
        _BROKER_HOST.fullmatch(alternative.decode("utf-8", "replace"))
        for alternative in certificate_fields.get("x509_subject_alternative_name") or ()
    )
    broker_ids = frozenset(int(host[1]) for host in hosts if host is not None)
    if not name or not broker_ids:
        return None
    return PeerIdentity(KafkaPrincipal("User", name.decode("utf-8", "replace")), broker_ids)
