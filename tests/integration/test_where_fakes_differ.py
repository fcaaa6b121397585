"""Our cluster behaves like Kafka where in-memory fakes of Kafka do not.

Each test checks one known difference between kfake, the most complete fake, and Kafka.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.raw_client.blocking import call_once
from bridgehead.raw_client.codec import topic_body
from tests.integration.processes import wait_until

LIST_OFFSETS, METADATA, FIND_COORDINATOR, CREATE_TOPICS, DESCRIBE_CONFIGS = 2, 3, 10, 19, 32
ALTER_CONFIGS, CREATE_PARTITIONS, ALTER_QUOTAS, DESCRIBE_QUOTAS = 33, 37, 49, 48
names = (f"topic-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers in three racks; broker 1 is the controller."""
    racks = {broker: {"broker.rack": f"rack-{broker}"} for broker in (1, 2, 3)}
    with Cluster(brokers=3, controller=1, node_properties=racks) as running:
        yield running


def call(cluster: Cluster, key: int, version: int, body: dict[str, Any], broker: int = 2) -> Any:
    """Call a broker; by default broker 2, which is not the controller."""
    return call_once(cluster.bootstrap_server(broker), key, version, body)


def create(
    cluster: Cluster,
    *topics: str,
    replicas: list[list[int]] | None = None,
    configs: dict[str, str] | None = None,
    timeout_ms: int = 10_000,
) -> list[tuple[str, str | None]]:
    """Create topics with equal settings; return each topic's error name and message."""
    assignment = dict(enumerate(replicas)) if replicas else None
    rows = [
        topic_body(name, None, None if assignment else 3, assignment, configs) for name in topics
    ]
    body = {"topics": rows, "timeoutMs": timeout_ms, "validateOnly": False}
    response = call(cluster, CREATE_TOPICS, 7, body)
    return [(ErrorCode(t["errorCode"]).name, t["errorMessage"]) for t in response["topics"]]


def described(cluster: Cluster, *topics: str) -> Any:
    body = {
        "topics": [{"topicId": "A" * 22, "name": name} for name in topics],
        "allowAutoTopicCreation": False,
        "includeTopicAuthorizedOperations": False,
    }
    return call(cluster, METADATA, 12, body)


@pytest.mark.parametrize("name", ["with space", "x" * 300, "", ".", "umläut"])
def test_an_invalid_topic_name_is_rejected_with_a_message(cluster: Cluster, name: str) -> None:
    ((code, text),) = create(cluster, name)
    assert code == "INVALID_TOPIC_EXCEPTION"
    assert text


def test_an_invalid_config_is_rejected_with_a_message(cluster: Cluster) -> None:
    for configs in ({"no.such.config": "1"}, {"retention.ms": "soon"}, {"cleanup.policy": "burn"}):
        ((code, text),) = create(cluster, next(names), configs=configs)
        assert code == "INVALID_CONFIG"
        assert next(iter(configs)) in str(text)


def test_creation_and_partition_errors_carry_kafkas_messages(cluster: Cluster) -> None:
    name = next(names)
    assert create(cluster, name) == [("NONE", None)]
    assert create(cluster, name) == [("TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists.")]
    grow = {"topics": [{"name": name, "count": 1, "assignments": None}]}
    body = {**grow, "timeoutMs": 1000, "validateOnly": False}
    (result,) = call(cluster, CREATE_PARTITIONS, 3, body)["results"]
    assert result["errorMessage"] == "Topic already has 1 partitions."


def test_a_duplicate_topic_fails_only_itself(cluster: Cluster) -> None:
    """The other topics of the request are created."""
    twice, once = next(names), next(names)
    responses = create(cluster, twice, once, twice)
    assert sorted(code for code, _ in responses) == ["INVALID_REQUEST", "INVALID_REQUEST", "NONE"]
    assert [t["errorCode"] for t in described(cluster, once, twice)["topics"]] == [0, 3]


def test_a_replica_assignment_is_validated_and_used(cluster: Cluster) -> None:
    """Unknown brokers, duplicates and uneven replica counts are rejected."""
    for bad in ([[9]], [[1, 1]], [[1, 2], [3]]):
        ((code, text),) = create(cluster, next(names), replicas=bad)
        assert code == "INVALID_REPLICA_ASSIGNMENT"
        assert text
    name, wanted = next(names), [[3, 1], [1, 2], [2, 3]]
    assert create(cluster, name, replicas=wanted) == [("NONE", None)]
    (topic,) = described(cluster, name)["topics"]
    partitions = sorted(topic["partitions"], key=lambda p: p["partitionIndex"])
    assert [p["replicaNodes"] for p in partitions] == wanted
    assert [p["leaderId"] for p in partitions] == [3, 1, 2]


def test_metadata_reports_racks_and_internal_topics(cluster: Cluster) -> None:
    call(cluster, FIND_COORDINATOR, 1, {"key": "group", "keyType": 0})
    name = next(names)
    create(cluster, name)
    response = described(cluster, name, "__consumer_offsets")
    racks = {broker["nodeId"]: broker["rack"] for broker in response["brokers"]}
    assert racks == {1: "rack-1", 2: "rack-2", 3: "rack-3"}
    assert [topic["isInternal"] for topic in response["topics"]] == [False, True]


def test_timeout_0_returns_request_timed_out(cluster: Cluster) -> None:
    """The topic is created anyway."""
    name = next(names)
    assert create(cluster, name, timeout_ms=0) == [("REQUEST_TIMED_OUT", None)]
    assert create(cluster, name)[0][0] == "TOPIC_ALREADY_EXISTS"


def test_quota_keys_and_values_are_validated(cluster: Cluster) -> None:
    """Rejected quotas are not stored. test_mutation_quota.py covers enforcement."""

    def alter(key: str, value: float) -> str:
        entity = [{"entityType": "user", "entityName": "quota-user"}]
        ops = [{"key": key, "value": value, "remove": False}]
        body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
        (entry,) = call(cluster, ALTER_QUOTAS, 1, body)["entries"]
        return ErrorCode(entry["errorCode"]).name

    assert alter("no_such_rate", 1.0) == "INVALID_REQUEST"
    assert alter("producer_byte_rate", 0.5) == "INVALID_REQUEST"
    assert alter("consumer_byte_rate", 10.0) == "NONE"
    components = [{"entityType": "user", "matchType": 0, "match": "quota-user"}]
    response = call(cluster, DESCRIBE_QUOTAS, 1, {"components": components, "strict": True})
    (entry,) = response["entries"]
    assert entry["values"] == [{"key": "consumer_byte_rate", "value": 10.0}]


def test_an_ip_quota_accepts_a_resolvable_host_name(cluster: Cluster) -> None:
    """As in Kafka, the controller resolves the name but stores it as given."""

    def limit(name: str) -> int:
        entity = [{"entityType": "ip", "entityName": name}]
        ops = [{"key": "connection_creation_rate", "value": 5.0, "remove": False}]
        body = {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}
        (entry,) = call(cluster, ALTER_QUOTAS, 1, body)["entries"]
        return int(entry["errorCode"])

    assert [limit(name) for name in ("LocalHost", "no-such-host.invalid")] == [0, 42]
    components = [{"entityType": "ip", "matchType": 0, "match": "LocalHost"}]
    response = call(cluster, DESCRIBE_QUOTAS, 1, {"components": components, "strict": True})
    assert len(response["entries"]) == 1


def test_list_offsets_v0_returns_no_offset_before_the_log_was_created(cluster: Cluster) -> None:
    name = next(names)
    before_ms = int(time.time() * 1000) - 1
    create(cluster, name, replicas=[[2]])

    def offsets(timestamp: int) -> list[int]:
        partition = {"partitionIndex": 0, "timestamp": timestamp, "maxNumOffsets": 1}
        topics = [{"name": name, "partitions": [partition]}]
        response = call(cluster, LIST_OFFSETS, 0, {"replicaId": -1, "topics": topics})
        (result,) = response["topics"][0]["partitions"]
        assert result["errorCode"] == 0
        return list(result["oldStyleOffsets"])

    assert offsets(before_ms) == []
    assert offsets(int(time.time() * 1000) + 1) == [0]


@pytest.mark.parametrize(
    ("resource_type", "name", "at_least"), [(2, "", 35), (4, "1", 250)], ids=["topic", "broker"]
)
def test_all_configs_are_described(
    cluster: Cluster, resource_type: int, name: str, at_least: int
) -> None:
    name = name or next(names)
    if resource_type == 2:
        create(cluster, name)
    resource = {"resourceType": resource_type, "resourceName": name, "configurationKeys": None}
    body = {"resources": [resource], "includeSynonyms": True, "includeDocumentation": True}
    (result,) = call(cluster, DESCRIBE_CONFIGS, 4, body, broker=1)["results"]
    assert len(result["configs"]) >= at_least
    assert all(config["documentation"] for config in result["configs"][:20])


def test_every_broker_accepts_writes(cluster: Cluster) -> None:
    for broker in (1, 2, 3):
        name = next(names)
        create(cluster, name)
        configs = [{"name": "retention.ms", "value": "1000"}]
        resource = {"resourceType": 2, "resourceName": name, "configs": configs}
        body = {"resources": [resource], "validateOnly": False}
        (result,) = call(cluster, ALTER_CONFIGS, 2, body, broker=broker)["responses"]
        assert result["errorCode"] == 0


def test_metadata_names_the_new_controller_after_a_move(cluster: Cluster) -> None:
    assert described(cluster)["controllerId"] == 1
    cluster.move_controller(3)
    assert described(cluster)["controllerId"] == 3
    assert create(cluster, next(names)) == [("NONE", None)]
    cluster.move_controller(1)


@pytest.mark.long
def test_replicas_on_a_dead_broker_leave_the_isr(cluster: Cluster) -> None:
    """Another replica becomes leader. This must be the last test, because it kills broker 3."""
    name = next(names)
    create(cluster, name, replicas=[[3, 1, 2]])
    cluster.kill_node(3)
    seen: list[Any] = []

    def is_led_by_another() -> bool:
        (topic,) = described(cluster, name)["topics"]
        seen[:] = topic["partitions"]
        return bool(seen[0]["leaderId"] in (1, 2) and 3 not in seen[0]["isrNodes"])

    wait_until(is_led_by_another)
    assert seen[0]["replicaNodes"] == [3, 1, 2]
    assert sorted(seen[0]["isrNodes"]) == [1, 2]
