"""A real KRaft controller of Kafka 3.9.1 migrates the metadata of our nodes, and gives it back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from confluent_kafka import Consumer, KafkaError, Message, Producer
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from bridgehead.admin import AdminClient
from bridgehead.cluster.cluster import Cluster
from bridgehead.cluster.ports import Ports
from judge.evidence.reading import read_sealed
from judge.history import History
from judge.verdicts import judge
from tests.fidelity.kraft_controller import KraftController, ended
from tests.fidelity.real_kafka import reason_to_skip
from tests.integration.admin_clients import ConfluentAdmin
from tests.integration.conftest import StartCluster
from tests.integration.processes import wait_until
from tests.integration.zookeeper_peers import kazoo_client

SESSION_MS = 6200
LEVEL = "3.8"  # not the default
LEADING_ID = 3071
WRITER_PROPERTIES = ("W1", "W2", "W4", "W5", "W6", "D1", "D6", "D11")


def migrating(voters: str) -> dict[str, str]:
    """Return the properties of nodes that migrate. Every value differs from its default."""
    return {
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": voters,
        "controller.listener.names": "QUORUM",
        "listener.security.protocol.map": "QUORUM:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.protocol.version": LEVEL,
        "broker.heartbeat.interval.ms": "700",
        "broker.session.timeout.ms": str(SESSION_MS),
        "offsets.topic.num.partitions": "3",
    }


class Records:
    """Produces numbered records all the time, with acks=all; remembers the acknowledged ones."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.acknowledged: set[int] = set()
        self.errors: list[KafkaError] = []
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "acks": "all", "enable.idempotence": True}
        )
        self._number = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stopping.wait(0.02):
            self._producer.produce(
                self._topic, str(self._number).encode(), on_delivery=self._delivered
            )
            self._number += 1
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
            return
        value = message.value()
        assert isinstance(value, bytes)
        self.acknowledged.add(int(value))

    def __enter__(self) -> Records:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(30) == 0

    def wait_for_more(self) -> None:
        """Return once records produced from now on are acknowledged."""
        first = self._number + 1
        wait_until(lambda: max(self.acknowledged, default=-1) > first, bool, timeout_s=30)

    def consumed(self, group: str) -> set[int]:
        """Consume, as a group, until every acknowledged record was read."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([self._topic])
        read: set[int] = set()
        deadline = time.monotonic() + 40
        while not self.acknowledged <= read and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                value = message.value()
                assert isinstance(value, bytes)
                read.add(int(value))
        consumer.commit(asynchronous=False)
        consumer.close()
        return read


def migrations(cluster: Cluster) -> list[dict[str, Any]]:
    states = [broker["state"] for broker in cluster.status()["brokers"]]
    return [state["migration"] for state in states if state is not None]


def follow_kraft(cluster: Cluster) -> bool:
    return all(
        migration["controller_is_kraft"] and not migration["fenced"]
        for migration in migrations(cluster)
    )


class Security(NamedTuple):
    """The properties of a secured listener of the controllers."""

    nodes: Mapping[str, str]
    controllers: Mapping[str, str]


PLAINTEXT = Security({}, {})


def sasl_ssl() -> Security:
    """Return TLS with an own authority, and a password of the nodes and one of the controller."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    pkcs8 = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    trust = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.cert_pem.bytes().decode(),
    }
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required "
    nodes = {**trust, "plain.sasl.jaas.config": f'{login}username="node" password="of nodes";'}
    users = 'username="kraft" password="of kraft" user_kraft="of kraft" user_node="of nodes";'
    controllers = {
        **trust,
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": login + users,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": pkcs8,
        "ssl.keystore.certificate.chain": issued.cert_chain_pems[0].bytes().decode(),
    }
    return Security(
        {
            **{f"listener.name.quorum.{name}": value for name, value in nodes.items()},
            "listener.security.protocol.map": "QUORUM:SASL_SSL,PLAINTEXT:PLAINTEXT",
            "sasl.mechanism.controller.protocol": "PLAIN",
        },
        {
            **{f"listener.name.controller.{name}": value for name, value in controllers.items()},
            "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT",
            "sasl.mechanism.controller.protocol": "PLAIN",
        },
    )


@contextmanager
def migrated(
    start_cluster: StartCluster, folder: Path, count: int = 1, security: Security = PLAINTEXT
) -> Iterator[tuple[Cluster, list[KraftController]]]:
    """Three nodes and a quorum of `count` controllers, which are formatted, but not started."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    ports = [Ports().choose() for _ in range(count)]
    ids = [LEADING_ID + number for number in range(count)]
    voters = ",".join(f"{node_id}@127.0.0.1:{at}" for node_id, at in zip(ids, ports, strict=True))
    ours = start_cluster(
        data_dir=folder / "nodes", properties={**migrating(voters), **security.nodes}
    )
    assert ours.cluster_id is not None
    quorum = [
        KraftController(
            folder / f"controller-{node_id}",
            node_id,
            port,
            ours.zookeeper_connect,
            voters=voters,
            properties={"broker.session.timeout.ms": str(SESSION_MS), **security.controllers},
        )
        for node_id, port in zip(ids, ports, strict=True)
    ]
    with ended(*quorum):
        for controller in quorum:
            controller.format(ours.cluster_id, LEVEL)
        yield ours, quorum


def judged(folder: Path) -> dict[str, str]:
    """Return the verdicts on who writes to ZooKeeper, and on what is kept."""
    judgements = judge(History(read_sealed(folder)))
    return {
        judgement.row.property: str(judgement.row.verdict)
        for judgement in judgements
        if judgement.row.property in WRITER_PROPERTIES
    }


@pytest.mark.kafka
@pytest.mark.long
def test_metadata_goes_to_kraft_and_back(tmp_path: Path, start_cluster: StartCluster) -> None:
    """Records are produced all the time; writes go to the controller that is active."""
    with migrated(start_cluster, tmp_path) as (ours, (kraft,)):
        admin, zookeeper = ConfluentAdmin(ours.bootstrap_servers), ours.zookeeper_connect
        admin.create("numbers", 5, 3, {"min.insync.replicas": "2"})
        epoch = read_epoch(zookeeper)
        with Records(ours.bootstrap_servers, "numbers") as records:
            records.wait_for_more()
            kraft.start()
            kraft.wait_for_dual_write()
            wait_until(lambda: follow_kraft(ours), timeout_s=20)
            assert read_controller(zookeeper) == (LEADING_ID, 1)
            assert read_epoch(zookeeper) == epoch + 1
            records.wait_for_more()
            write_through(admin, zookeeper)
            assert clients_see(ours.bootstrap_servers) <= {1, 2, 3}

            ours.stop_node(2)  # It asks the controller to move its leaderships.
            assert "broker 2 has requested and been granted a controlled shutdown" in kraft.log
            assert "request from broker 2 to shut down has been granted" in kraft.log
            records.wait_for_more()
            ours.start_node(2)
            wait_until(lambda: follow_kraft(ours), timeout_s=30)
            records.wait_for_more()

            roll_back(kraft, zookeeper)
            admin.create("after-rollback", 2, 3, {})
            assert read_controller(zookeeper)[1] == -1
            assert read_epoch(zookeeper) == epoch + 2
            assert not any(migration["controller_is_kraft"] for migration in migrations(ours))
            records.wait_for_more()
        assert records.errors == []
        assert records.acknowledged <= records.consumed("readers")
        assert admin.names() >= {"numbers", "by-kraft", "after-rollback"}
        assert admin.configs("by-kraft")["retention.ms"] == "7654321"
        admin.close()
        folder = ours.evidence_dir
        ours.stop()
    assert judged(folder) == dict.fromkeys(WRITER_PROPERTIES, "PASS")


def write_through(admin: ConfluentAdmin, zookeeper: str) -> None:
    """Write through our brokers; the KRaft controller writes to ZooKeeper."""
    admin.create("by-kraft", 3, 3, {"retention.ms": "1234567"})
    admin.create("deleted", 1, 2, {})
    admin.alter("by-kraft", {"retention.ms": "7654321"}, legacy=False)
    admin.create_partitions("by-kraft", 4)
    admin.delete("deleted")
    with kazoo_client(zookeeper) as client:
        wait_until(
            lambda: client.exists("/brokers/topics/by-kraft/partitions/3/state"), bool, timeout_s=9
        )
        wait_until(lambda: client.exists("/brokers/topics/deleted"), lambda stat: stat is None)
        (state, _) = client.get("/brokers/topics/by-kraft/partitions/0/state")
        assert json.loads(state)["controller_epoch"] == 1, "the epoch of KRaft, not of ZooKeeper"
    wait_until(lambda: admin.configs("by-kraft")["retention.ms"], lambda ms: ms == "7654321")
    assert admin.partitions("by-kraft") == 4


def clients_see(bootstrap_servers: str) -> set[int]:
    """Return the controllers that clients see: brokers, at random."""
    with AdminClient({"bootstrap.servers": bootstrap_servers}) as admin:
        clusters = [admin.describe_cluster() for _ in range(20)]
    ids = {cluster.controller.id for cluster in clusters if cluster.controller is not None}
    assert len(ids) > 1
    return ids


def read_controller(zookeeper: str) -> tuple[int, int]:
    """Return the node id and the KRaft epoch in /controller."""
    with kazoo_client(zookeeper) as client:
        content = json.loads(client.get("/controller")[0])
    return content["brokerid"], content["kraftControllerEpoch"]


def read_epoch(zookeeper: str) -> int:
    with kazoo_client(zookeeper) as client:
        return int(client.get("/controller_epoch")[0])


def roll_back(kraft: KraftController, zookeeper: str) -> None:
    """Return to ZooKeeper as Kafka's documentation says."""
    kraft.stop()
    with kazoo_client(zookeeper) as client:
        client.delete("/controller")
        client.delete("/migration")


@pytest.mark.kafka
@pytest.mark.long
def test_nodes_follow_the_next_controller_of_the_quorum(
    tmp_path: Path, start_cluster: StartCluster
) -> None:
    """Three controllers; the active one is killed in dual write. No broker is fenced for long."""
    with migrated(start_cluster, tmp_path, count=3) as (ours, quorum):
        for controller in quorum:
            controller.start()
        active = wait_until(lambda: writer_of(quorum), timeout_s=80)
        assert active is not None
        admin = ConfluentAdmin(ours.bootstrap_servers)
        admin.create("before", 2, 3, {})
        active.kill()
        others = [controller for controller in quorum if controller is not active]
        wait_until(lambda: writer_of(others), timeout_s=60)
        admin.create("after", 2, 3, {})
        with kazoo_client(ours.zookeeper_connect) as client:
            state = "/brokers/topics/after/partitions/1/state"
            wait_until(lambda: client.exists(state), bool, timeout_s=20)
        wait_until(lambda: follow_kraft(ours), timeout_s=20)
        admin.close()


@pytest.mark.kafka
@pytest.mark.long
def test_nodes_log_in_to_a_controller_with_tls_and_a_password(
    tmp_path: Path, start_cluster: StartCluster
) -> None:
    """Registration, heartbeats and forwarded requests use the login of the controllers' listener.

    A controller that knows no such password accepts none of them.
    """
    secure = sasl_ssl()
    jaas = "listener.name.controller.plain.sasl.jaas.config"
    stranger = secure.controllers[jaas].replace("of nodes", "of others")
    wrong = Security(secure.nodes, {**secure.controllers, jaas: stranger})
    with migrated(start_cluster, tmp_path / "wrong", security=wrong) as (ours, (kraft,)):
        kraft.start()
        kraft.wait_for("Failed authentication with", times=3)
        assert "to BECOME_CONTROLLER state" not in kraft.log
        ours.stop()
    with migrated(start_cluster, tmp_path / "right", security=secure) as (ours, (kraft,)):
        kraft.start()
        kraft.wait_for_dual_write()
        wait_until(lambda: follow_kraft(ours), timeout_s=20)
        admin = ConfluentAdmin(ours.bootstrap_servers)
        admin.create("by-kraft", 2, 3, {"retention.ms": "1234567"})
        with kazoo_client(ours.zookeeper_connect) as client:
            state = "/brokers/topics/by-kraft/partitions/1/state"
            wait_until(lambda: client.exists(state), bool, timeout_s=20)
        admin.close()


def writer_of(quorum: list[KraftController]) -> KraftController | None:
    """Return the controller that has reached dual write."""
    return next((controller for controller in quorum if controller.is_dual_writer), None)
