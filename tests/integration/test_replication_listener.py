"""Without an inter-broker or PLAINTEXT listener, brokers open a listener for replication."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

from bridgehead.cluster import Cluster
from bridgehead.cluster.broker_certificates import files_of

TOPIC = "orders"


def test_brokers_replicate_and_clients_cannot_connect(new_chroot: Callable[[], str]) -> None:
    """The listener for clients requires SASL, and ANONYMOUS has no rights."""
    with Cluster(
        zookeeper=new_chroot(),
        listeners={"CLIENTS": {"protocol": "SASL_PLAINTEXT", "mechanisms": ["PLAIN"]}},
        users={"admin": {"password": "secret", "super": True}},
    ) as cluster:
        client = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "secret",
        }
        topic = NewTopic(TOPIC, 1, 3, config={"min.insync.replicas": "3"})
        admin = AdminClient(client)
        admin.create_topics([topic])[TOPIC].result(30)
        errors: list[object] = []
        producer = confluent_kafka.Producer({**client, "acks": "all"})
        producer.produce(TOPIC, b"x", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(60) == 0
        assert errors == [None]
        host, _, port = cluster.bootstrap_server(2, "REPLICATION").rpartition(":")
        context = ssl.create_default_context(
            cafile=files_of(cluster.data_dir / "channel", 1).authority
        )
        context.check_hostname = False
        with (
            socket.create_connection((host, int(port))) as plain,
            context.wrap_socket(plain) as secure,
            contextlib.suppress(ssl.SSLError, ConnectionError),
        ):
            secure.settimeout(30)
            # In TLS 1.3 the client's handshake ends before the server rejects the client.
            assert secure.recv(1) == b""
