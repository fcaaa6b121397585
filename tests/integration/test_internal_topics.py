"""Real nodes create internal and missing topics, and find coordinators."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import confluent_kafka.admin
from confluent_kafka import ConsumerGroupState
from kafka import KafkaAdminClient

from bridgehead.cluster import Cluster
from bridgehead.cluster.properties import parse_properties
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from bridgehead.kafka_wire.messages.find_coordinator import FindCoordinatorRequest
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.raw_client.blocking import Connection
from bridgehead.raw_client.codec import decode_json, encode_message
from tests.integration.conftest import StartCluster
from tests.integration.processes import wait_until
from tests.integration.test_forwarding_metrics import events_of, metrics_of

T = TypeVar("T")
METADATA, FIND_COORDINATOR, CREATE_ACLS, DESCRIBE_CONFIGS = 3, 10, 30, 32
ACL_TOPIC, ACL_GROUP, CREATE, DESCRIBE = 2, 3, 5, 8
RECORDINGS = Path(__file__).parent.parent / "recordings"
GROUP, TRANSACTION = 0, 1
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
FEW = {"offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "3"}
REDIRECTED = "num_messages_redirected_count_total"
KEYS = tuple(f"key-{n}" for n in range(20))
_numbers = itertools.count()


class RawClient:
    """A raw connection to one broker, anonymous or logged in with the password `<user>-secret`."""

    def __init__(self, cluster: Cluster, broker_id: int, user: str | None = None) -> None:
        listener = "SASL_PLAINTEXT" if user else None
        self._connection = Connection(cluster.bootstrap_server(broker_id, listener))
        if user:
            assert self._connection.log_in(user, f"{user}-secret")

    def call(self, key: int, version: int, message: Any) -> dict[str, Any]:
        request = encode_message(key, version, message, next(_numbers), "raw")
        response = self._connection.exchange(request)
        assert isinstance(response, bytes), response
        return decode_json(key, version, response)

    def coordinators(self, key_type: int, *keys: str) -> list[dict[str, Any]]:
        message = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        coordinators: list[dict[str, Any]] = self.call(FIND_COORDINATOR, 6, message)["coordinators"]
        return coordinators

    def topics(self, *names: str, create: bool = False) -> dict[str, dict[str, Any]]:
        topics = [MetadataRequestTopic(name=name) for name in names]
        message = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
        response = self.call(METADATA, 12, message)
        return {topic["name"]: topic for topic in response["topics"]}

    def own_configs(self, name: str) -> dict[str, str]:
        resource = DescribeConfigsResource(resource_type=2, resource_name=name)
        resource.configuration_keys = None
        (result,) = self.call(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest([resource]))["results"]
        return {c["name"]: c["value"] for c in result["configs"] if c["configSource"] == 1}


def coordinators_once_found(client: RawClient, key_type: int) -> list[dict[str, Any]]:
    """Poll until every group or transactional id in KEYS has a coordinator."""
    return wait_until(
        lambda: client.coordinators(key_type, *KEYS),
        lambda coordinators: codes(coordinators) == {0},
    )


def codes(coordinators: list[dict[str, Any]]) -> set[int]:
    return {response["errorCode"] for response in coordinators}


def test_finding_a_coordinator_creates_its_internal_topic(
    start_brokers: StartCluster, tmp_path: Path
) -> None:
    """The client can use any broker. After the creation, all brokers name the same coordinators."""
    cluster = start_brokers(data_dir=tmp_path, controller=1, properties=FEW)
    clients = {broker: RawClient(cluster, broker) for broker in (1, 2, 3)}
    for broker, key_type, topic, partitions in (
        (2, GROUP, OFFSETS, 5),
        (1, TRANSACTION, TRANSACTIONS, 3),
    ):
        assert codes(clients[broker].coordinators(key_type, *KEYS)) == {15}
        coordinators = {
            name: coordinators_once_found(client, key_type) for name, client in clients.items()
        }
        assert codes(coordinators[1]) == {0}
        assert coordinators[1] == coordinators[2] == coordinators[3]
        assert len({response["nodeId"] for response in coordinators[1]}) > 1
        described = clients[3].topics(topic)[topic]
        assert (described["isInternal"], len(described["partitions"])) == (True, partitions)
        assert {len(p["replicaNodes"]) for p in described["partitions"]} == {3}
    assert clients[1].own_configs(OFFSETS) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert clients[1].own_configs(TRANSACTIONS) == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
    redirected = {broker: metrics_of(cluster, broker)[REDIRECTED] for broker in (1, 2, 3)}
    cluster.stop()
    events = [event for broker in (1, 2, 3) for event in events_of(tmp_path, broker)]
    created = {e["request_id"]: e for e in events if e["kind"] == "topics_auto_created"}
    # A broker that does not know the topic yet requests its creation again; this has no effect.
    assert {tuple(e["topics"]) for e in created.values()} == {(OFFSETS,), (TRANSACTIONS,)}
    by = Counter(e["node"] for e in created.values())
    assert redirected == {1: 0, 2: by["2"], 3: by["3"]}
    assert by["2"] >= 1
    decided = {e["request_id"]: e for e in events if e["kind"] == "request_decided"}
    assert {decided[created_topic]["principal"] for created_topic in created} == {"User:broker"}
    causes = {e["request_id"]: e["api_key"] for e in events if e["kind"] == "request_received"}
    assert {causes[e["cause"]] for e in created.values()} == {FIND_COORDINATOR}


def test_metadata_auto_creates_missing_topics(start_brokers: StartCluster) -> None:
    """As in Kafka, a forwarding broker first returns UNKNOWN_TOPIC_OR_PARTITION.

    The controller's broker first returns LEADER_NOT_AVAILABLE.
    """
    properties = {"num.partitions": "2", "default.replication.factor": "2"}
    cluster = start_brokers(controller=1, properties=properties)
    clients = {broker: RawClient(cluster, broker) for broker in (1, 2, 3)}
    for broker, code in ((2, 3), (1, 5)):
        new, client = f"new-{broker}", clients[broker]
        topics = client.topics(new, "bad/name", create=True)
        assert {name: topic["errorCode"] for name, topic in topics.items()} == {
            new: code,
            "bad/name": 17,
        }
        for any_client in clients.values():
            topic = wait_until(
                partial(described, any_client, new), lambda response: response["errorCode"] == 0
            )
            assert [len(p["replicaNodes"]) for p in topic["partitions"]] == [2, 2]
    assert clients[3].topics("absent")["absent"]["errorCode"] == 3
    clients[3].topics("created", create=True)
    wait_until(
        lambda: clients[3].topics("created")["created"], lambda response: response["errorCode"] == 0
    )
    assert clients[3].topics("absent", "created")["absent"]["errorCode"] == 3


def test_only_the_controllers_broker_explains_why_auto_creation_fails(
    start_brokers: StartCluster,
) -> None:
    """With replication factor 4 on three brokers, broker 1 returns INVALID_REPLICATION_FACTOR.

    Broker 1 is the controller. The other brokers return UNKNOWN_TOPIC_OR_PARTITION. No broker finds
    a coordinator.
    """
    properties = {"default.replication.factor": "4", "offsets.topic.replication.factor": "4"}
    cluster = start_brokers(controller=1, properties=properties)
    controller, other = RawClient(cluster, 1), RawClient(cluster, 2)
    for _ in range(3):
        assert controller.topics("t", create=True)["t"]["errorCode"] == 38
        assert other.topics("t", create=True)["t"]["errorCode"] == 3
        assert codes(controller.coordinators(GROUP, "g")) == {15}
        assert codes(other.coordinators(GROUP, "g")) == {15}
    assert controller.topics(OFFSETS)[OFFSETS]["errorCode"] == 3


def test_internal_topics_need_neither_auto_creation_nor_forwarding(
    start_brokers: StartCluster,
) -> None:
    properties = {
        "auto.create.topics.enable": "false",
        "bridgehead.forwarding.enable": "false",
        **FEW,
    }
    cluster = start_brokers(controller=1, properties=properties)
    client = RawClient(cluster, 2)
    assert client.topics("t", create=True)["t"]["errorCode"] == 3
    coordinators = wait_until(
        lambda: client.coordinators(GROUP, "g"), lambda responses: codes(responses) == {0}
    )
    assert codes(coordinators) == {0}
    assert client.topics("t", create=True)["t"]["errorCode"] == 3


def described(client: RawClient, name: str) -> dict[str, Any]:
    return dict(client.topics(name)[name])


def test_concurrent_auto_creation_creates_each_topic_once(start_brokers: StartCluster) -> None:
    """Forty clients at three brokers request the same 30 topics and two coordinators."""
    cluster = start_brokers(controller=1, properties=FEW)
    names = [f"storm-{number}" for number in range(30)]
    errors: list[int] = []

    def run(number: int) -> None:
        client = RawClient(cluster, number % 3 + 1)
        for key_type in (GROUP, TRANSACTION):
            errors.extend(
                coordinator["errorCode"] for coordinator in client.coordinators(key_type, "g")
            )
        errors.extend(topic["errorCode"] for topic in client.topics(*names, create=True).values())

    threads = [threading.Thread(target=run, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert set(errors) <= {0, 3, 5, 15}
    client, everything = RawClient(cluster, 3), [*names, OFFSETS, TRANSACTIONS]
    created = wait_until(
        lambda: client.topics(*everything),
        lambda topics: {topic["errorCode"] for topic in topics.values()} == {0},
    )
    assert {topic["errorCode"] for topic in created.values()} == {0}
    assert len({topic["topicId"] for topic in created.values()}) == 32
    assert codes(coordinators_once_found(client, TRANSACTION)) == {0}


def test_a_drafted_broker_waits_for_auto_creation(start_brokers: StartCluster) -> None:
    """The first FindCoordinator returns the coordinator; Metadata returns LEADER_NOT_AVAILABLE."""
    drafted = {"listener.name.plaintext.bridgehead.dialect": "drafted"}
    cluster = start_brokers(controller=1, properties={**FEW, **drafted})
    for broker, key_type in ((2, GROUP), (1, TRANSACTION)):
        assert codes(RawClient(cluster, broker).coordinators(key_type, *KEYS)) == {0}
    assert RawClient(cluster, 3).topics("t", create=True)["t"]["errorCode"] == 5


def test_a_drafted_broker_stops_waiting_when_auto_creation_fails(
    start_brokers: StartCluster,
) -> None:
    """The request fails as soon as the controller rejects the creation."""
    drafted = {"listener.name.plaintext.bridgehead.dialect": "drafted"}
    too_many = {"offsets.topic.replication.factor": "4"}
    cluster = start_brokers(controller=1, properties={**drafted, **too_many})
    began = time.monotonic()
    assert codes(RawClient(cluster, 2).coordinators(GROUP, "g")) == {15}
    assert time.monotonic() - began < 20


def allow(admin: RawClient, kind: int, name: str, operation: int) -> None:
    """Allow alice one operation."""
    creation = AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=3,
    )
    (result,) = admin.call(CREATE_ACLS, 3, CreateAclsRequest(creations=[creation]))["results"]
    assert result["errorCode"] == 0, result


def test_auto_creation_runs_with_the_clients_rights(
    start_brokers: StartCluster, tmp_path: Path
) -> None:
    """User topics need alice's CREATE. For internal topics the broker's own rights are enough."""
    text = (RECORDINGS / "secured.properties").read_text(encoding="utf-8")
    cluster = start_brokers(
        data_dir=tmp_path,
        controller=1,
        properties={**dict(parse_properties(text)), **FEW},
    )
    admin, alice = RawClient(cluster, 1, "admin"), RawClient(cluster, 2, "alice")
    assert codes(alice.coordinators(GROUP, "g")) == {30}
    assert alice.topics("t", create=True)["t"]["errorCode"] == 29
    allow(admin, ACL_GROUP, "g", DESCRIBE)
    allow(admin, ACL_TOPIC, "t", DESCRIBE)
    seen = wait_until(lambda: alice.topics("t")["t"], lambda topic: topic["errorCode"] == 3)
    assert seen["errorCode"] == 3
    assert alice.topics("t", create=True)["t"]["errorCode"] == 29
    coordinators = wait_until(
        lambda: alice.coordinators(GROUP, "g"), lambda responses: codes(responses) == {0}
    )
    assert codes(coordinators) == {0}
    assert alice.topics(OFFSETS, create=True)[OFFSETS]["errorCode"] == 29
    allow(admin, ACL_TOPIC, "t", CREATE)
    created = wait_until(
        lambda: alice.topics("t", create=True)["t"], lambda topic: not topic["errorCode"]
    )
    assert created["errorCode"] == 0
    cluster.stop()
    decided = [
        (event["principal"], element)
        for event in events_of(tmp_path, 1)
        if event["kind"] == "request_decided" and event["request_id"].endswith(".topics")
        for element, error in event["elements"]
        if error == 0
    ]
    assert decided == [("User:broker", OFFSETS), ("User:alice", "t")]


def test_real_clients_find_no_groups(start_brokers: StartCluster) -> None:
    """The list of groups is empty. The coordinator describes an unknown group as DEAD."""
    servers = start_brokers(properties=FEW).bootstrap_servers
    confluent = confluent_kafka.admin.AdminClient({"bootstrap.servers": servers})
    listed = confluent.list_consumer_groups().result(60)
    assert (listed.valid, listed.errors) == ([], [])
    described = confluent.describe_consumer_groups(["g"])["g"].result(30)
    assert (described.state, described.members) == (ConsumerGroupState.DEAD, [])
    python = KafkaAdminClient(bootstrap_servers=servers.split(","))
    try:
        assert python.list_groups() == []
        groups = python.describe_groups(["g"])
        assert json.dumps(groups, default=str).count("Dead") == 1
    finally:
        python.close()
