"""Followers log in to the inter-broker listener, and need CLUSTER_ACTION."""

from __future__ import annotations

import confluent_kafka
import pytest
import trustme
from confluent_kafka.admin import AdminClient, NewTopic

from bridgehead.cluster import Cluster, ClusterError
from tests.integration.processes import wait_until

TOPIC = "orders"


def properties(super_users: str) -> dict[str, str]:
    """Clients are anonymous; brokers log in with SASL over TLS."""
    ca = trustme.CA()
    broker = ca.issue_cert("127.0.0.1", "localhost")
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "bridgehead.data.plane": "true",
        "replica.lag.time.max.ms": "3000",
        "replica.fetch.backoff.ms": "200",
        "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:SASL_SSL",
        "inter.broker.listener.name": "BROKERS",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.brokers.plain.sasl.jaas.config": f"{module} required "
        'username="replicator" password="secret" user_replicator="secret";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": broker.cert_chain_pems[0].bytes().decode(),
        "ssl.keystore.key": broker.private_key_pem.bytes().decode(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": ca.cert_pem.bytes().decode(),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": super_users,
    }


@pytest.mark.long
@pytest.mark.parametrize("authorized", [True, False])
def test_a_follower_needs_cluster_action_to_replicate(authorized: bool) -> None:
    allowed = "User:ANONYMOUS;User:broker" + (";User:replicator" if authorized else "")
    with Cluster(brokers=3, properties=properties(allowed)) as cluster:
        servers = {
            "bootstrap.servers": ",".join(
                cluster.bootstrap_server(number, "CLIENTS") for number in (1, 2, 3)
            ),
            "log_level": 0,
        }
        admin = AdminClient(servers)
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(30)
        errors: list[object] = []
        producer = confluent_kafka.Producer({**servers, "acks": "all"})
        producer.produce(TOPIC, b"x", on_delivery=lambda error, _: errors.append(error))

        def in_sync() -> int:
            (partition,) = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions.values()
            return len(partition.isrs)

        if not authorized:
            wait_until(in_sync, lambda count: count == 1)
        assert producer.flush(30) == 0
        assert errors == [None]
        assert in_sync() == (3 if authorized else 1)


def sasl_only(login: str) -> dict[str, str]:
    """One listener, for clients and brokers. `login` has the JAAS options of a broker's login."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "bridgehead.data.plane": "true",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} required {login} "
        'user_replicator="secret" user_alice="secret";',
    }


@pytest.mark.long
def test_brokers_with_only_a_sasl_listener_replicate() -> None:
    login = 'username="replicator" password="secret"'
    with Cluster(brokers=3, properties=sasl_only(login)) as cluster:
        client = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "secret",
        }
        admin = AdminClient(client)
        admin.create_topics([NewTopic(TOPIC, 1, 3)])[TOPIC].result(30)
        errors: list[object] = []
        producer = confluent_kafka.Producer({**client, "acks": "all"})
        producer.produce(TOPIC, b"x", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(30) == 0
        assert errors == [None]


@pytest.mark.long
def test_broker_that_cannot_log_in_to_the_others_does_not_start() -> None:
    with (
        pytest.raises(ClusterError, match="Brokers cannot log in to listener SASL_PLAINTEXT"),
        Cluster(brokers=1, properties=sasl_only("")),
    ):
        pass
