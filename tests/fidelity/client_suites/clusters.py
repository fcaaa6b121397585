"""Starts the three brokers on which a suite runs: of Bridgehead, or of a live Kafka 3.9.1.

Both clusters have the same listeners and users, certificates made in the same way, and the
properties that the suites set on their own brokers. Only properties `bridgehead.*` and properties
of transactions differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridgehead.admin import (
    AdminClient,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    ScramMechanism,
    ScramUpsertion,
)
from bridgehead.cluster import Cluster
from bridgehead.cluster.certificates import Authority
from bridgehead.cluster.java import find_java
from bridgehead.cluster.ports import Ports
from bridgehead.cluster.zookeeper import EmbeddedZooKeeper
from tests.fidelity.client_suites.reasons import BRIDGEHEAD, KAFKA
from tests.fidelity.real_kafka import kafka_brokers

_BROKERS: Final = (1, 2, 3)
_PROTOCOLS: Final = ("SASL_PLAINTEXT", "SSL")
# The users of the suites: "sasl_user" of confluent-kafka, "alice" of kafka-python.
_PASSWORDS: Final = {"sasl_user": "sasl_user", "alice": "alice-secret"}
_PACKAGE: Final = "org.apache.kafka.common.security"
_PROPERTIES: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "auto.create.topics.enable": "true",
    "num.partitions": "4",
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
}
# Only Kafka has transactions.
_OF_KAFKA: Final = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@dataclass(frozen=True)
class Listeners:
    """The bootstrap servers of a cluster by security protocol, and its authority's certificate."""

    servers: Mapping[str, str]
    authority: Path


Start = Callable[[Path], AbstractContextManager[Listeners]]


@contextmanager
def bridgehead(folder: Path) -> Iterator[Listeners]:
    """Run three brokers of Bridgehead."""
    properties, authority = _secured(folder)
    listeners = ("PLAINTEXT", *_PROTOCOLS)
    properties |= {
        "listeners": ",".join(f"{listener}://127.0.0.1:0" for listener in listeners),
        "bridgehead.data.plane": "true",
        # The suites read their own writes, from any broker.
        "bridgehead.metadata.blocking": "cluster",
    }
    with Cluster(len(_BROKERS), data_dir=folder / "bridgehead", properties=properties) as cluster:
        servers = {
            listener: ",".join(cluster.bootstrap_server(broker, listener) for broker in _BROKERS)
            for listener in listeners
        }
        _prepare(servers["PLAINTEXT"])
        yield Listeners(servers, authority)


@contextmanager
def kafka(folder: Path) -> Iterator[Listeners]:
    """Run three brokers of a live Kafka."""
    properties, authority = _secured(folder)
    ports = Ports()
    more = {broker: {protocol: ports.choose() for protocol in _PROTOCOLS} for broker in _BROKERS}
    zookeeper = EmbeddedZooKeeper(folder / "zookeeper", [ports.choose()], java=find_java())
    with (
        zookeeper,
        kafka_brokers(
            folder / "kafka",
            zookeeper.connect,
            _BROKERS,
            one_by_one=True,
            properties=properties | _OF_KAFKA,
            more_listeners=more,
        ) as plaintext,
    ):
        servers = {"PLAINTEXT": plaintext}
        for protocol in _PROTOCOLS:
            servers[protocol] = ",".join(
                f"127.0.0.1:{more[broker][protocol]}" for broker in _BROKERS
            )
        _prepare(plaintext)
        yield Listeners(servers, authority)


SYSTEMS: Final[Mapping[str, Start]] = {BRIDGEHEAD: bridgehead, KAFKA: kafka}


def _secured(folder: Path) -> tuple[dict[str, str], Path]:
    """Return the properties of the brokers, and the certificate file of their authority."""
    authority = Authority(folder / "tls")
    certificate = authority.issue_brokers(["127.0.0.1", "localhost"]).read_text()
    end = "-----END PRIVATE KEY-----\n"
    key, _, chain = certificate.partition(end)
    users = " ".join(f'user_{name}="{password}"' for name, password in _PASSWORDS.items())
    properties = _PROPERTIES | {
        "ssl.keystore.key": key + end,
        "ssl.keystore.certificate.chain": chain,
        "ssl.truststore.certificates": authority.certificate_file.read_text(),
    }
    for mechanism, module in (
        ("plain", f"{_PACKAGE}.plain.PlainLoginModule required {users};"),
        ("scram-sha-256", f"{_PACKAGE}.scram.ScramLoginModule required;"),
        ("scram-sha-512", f"{_PACKAGE}.scram.ScramLoginModule required;"),
    ):
        properties[f"listener.name.sasl_plaintext.{mechanism}.sasl.jaas.config"] = module
    return properties, authority.certificate_file


def _prepare(servers: str) -> None:
    """Set SCRAM passwords, and `min.insync.replicas` as a dynamic default of all brokers.

    A new Kafka 4.1 cluster has this dynamic default, too.
    """
    mechanisms = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    passwords = [
        ScramUpsertion(name, mechanism, password)
        for mechanism in mechanisms
        for name, password in _PASSWORDS.items()
    ]
    # confluent-kafka's test of configs expects this config on every topic (KIP-966).
    cluster_wide = ConfigResource(ConfigResourceType.BROKER, "")
    with AdminClient({"bootstrap.servers": servers}) as admin:
        errors = [
            *admin.alter_user_scram_credentials(passwords).values(),
            *admin.incremental_alter_configs(
                {cluster_wide: [AlterConfigOp("min.insync.replicas", "1")]}
            ).values(),
        ]
    assert not any(errors), errors
