"""Which identities a certificate lets a broker use, and which Envelopes need no certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridgehead.cluster import broker_certificates
from bridgehead.cluster.broker_certificates import makes_certificates
from bridgehead.cluster.settings import ClusterSettings
from cluster_model.principal import ANONYMOUS, KafkaPrincipal
from controller.envelopes.open import check_sender
from envelope.channel_security import (
    ChannelFiles,
    ChannelSecurityError,
    PeerIdentity,
    broker_host,
    identify,
    load_security,
)
from envelope.messages import Hello, RequestIdentity
from node.config import NodeConfigError, read_config

BROKER = KafkaPrincipal("User", "broker")
GOOD = "broker.id=1\nzookeeper.connect=127.0.0.1:2181\n"
ALL_THREE = "".join(f"bridgehead.grpc.{n}=/{n}\n" for n in ("certificate", "key", "authority"))


def fields(name: bytes | None, *hosts: bytes) -> Mapping[str, Sequence[bytes]]:
    """The content of gRPC's `auth_context`."""
    named = {} if name is None else {"x509_common_name": [name]}
    return {**named, "x509_subject_alternative_name": list(hosts)}


def test_a_certificate_names_a_principal_and_broker_ids() -> None:
    identity = identify(fields(b"broker", b"localhost", b"broker-2.bridgehead", b"broker-12.x"))
    assert identity == PeerIdentity(BROKER, frozenset({2}))
    assert (identity.may_be(2), identity.may_be(12), identity.may_be(1)) == (True, False, False)


@pytest.mark.parametrize(
    "seen",
    [
        {},
        fields(None, b"broker-2.bridgehead"),
        fields(b"", b"broker-2.bridgehead"),
        fields(b"broker"),
        fields(b"broker", b"broker-2.bridgehead.example.org", b"xbroker-2.bridgehead"),
        fields(b"broker", b"broker--2.bridgehead", b"broker-.bridgehead", b"\xff\xfe"),
    ],
)
def test_a_certificate_without_name_or_broker_id_has_no_identity(
    seen: Mapping[str, Sequence[bytes]],
) -> None:
    assert identify(seen) is None


def test_certificates_and_the_channel_use_the_same_host_name_for_a_broker() -> None:
    assert broker_host(7) == broker_certificates.broker_host(7)


@dataclass
class Sender:
    """A broker at the other end of the channel."""

    hello: Hello
    principal: KafkaPrincipal = BROKER
    host: str = "127.0.0.1"
    connection_id: str | None = None


@pytest.mark.parametrize(
    ("identity", "allowed", "message"),
    [
        (RequestIdentity(2, "life", 5), True, None),
        (RequestIdentity(2, "life", 5), False, "lacks CLUSTER_ACTION"),
        (RequestIdentity(3, "life", 5), True, "of broker 3, not 2"),
        (RequestIdentity(2, "earlier", 5), True, "another incarnation of broker 2 than the stream"),
    ],
)
def test_a_sender_may_use_only_its_own_identity(
    identity: RequestIdentity, allowed: bool, message: str | None
) -> None:
    may: Callable[..., bool] = lambda _sender: allowed  # noqa: E731
    rejected = check_sender(Sender(Hello(2, "life")), identity, may)
    assert (rejected is None) == (message is None)
    if rejected is not None and message is not None:
        assert rejected.error.name == "CLUSTER_AUTHORIZATION_FAILED"
        assert message in rejected.reason


def test_envelopes_without_certificates_are_by_default_accepted_on_loopback_only() -> None:
    elsewhere = GOOD + "bridgehead.grpc.listener=0.0.0.0:0\n"
    assert read_config(GOOD).inter_broker_principal == ANONYMOUS
    with pytest.raises(NodeConfigError, match="set bridgehead"):
        read_config(elsewhere)
    assert read_config(elsewhere + ALL_THREE).inter_broker_principal == BROKER
    assert read_config(elsewhere + "bridgehead.allow.remote.plaintext=true").channel_files is None
    with pytest.raises(NodeConfigError, match="set all three"):
        read_config(GOOD + "bridgehead.grpc.key=/k\n")


def test_the_error_names_a_certificate_file_that_cannot_be_used(tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("nothing")
    for path, message in ((text, "not a PEM file"), (tmp_path / "none.pem", "cannot be read")):
        with pytest.raises(ChannelSecurityError, match=message):
            load_security(ChannelFiles(str(path), str(path), str(path)))


@pytest.mark.parametrize(
    ("properties", "of_one_node", "generated"),
    [
        ({}, {}, True),
        ({"bridgehead.grpc.tls": "false"}, {}, False),
        ({}, {"bridgehead.grpc.tls": "false"}, False),
        ({}, {"bridgehead.grpc.certificate": "/own.pem"}, False),
    ],
)
def test_certificates_are_generated_for_all_brokers_or_none(
    tmp_path: Path, properties: dict[str, str], of_one_node: dict[str, str], generated: bool
) -> None:
    settings = ClusterSettings(
        data_dir=tmp_path, properties=properties, node_properties={2: of_one_node}
    )
    assert makes_certificates(settings) is generated
