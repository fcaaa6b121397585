"""Builders of requests, and waiting for a reassignment (KIP-4 §Admin Client)."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead import admin
from bridgehead.admin import AlterConfigRequestBuilder, NewTopicsBuilder, TopicPartition
from bridgehead.admin.calls import acls, drafted, partitions
from bridgehead.admin.errors import InvalidCallError, KafkaTimeoutError
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.drafted.alter_topics import (
    AlterTopic,
    AlterTopicsRequest,
    PartitionReplicas,
)
from bridgehead.kafka_wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.unit.bridgehead.admin.world import World


def test_a_builder_returns_the_topics_in_order() -> None:
    configs = {"retention.ms": "5"}
    builder = NewTopicsBuilder().add("b", partitions=3, replication_factor=2, configs=configs)
    builder.add("a", assignment={1: [3, 1], 0: [2, 3]}, configs=configs).add("c", partitions=4)
    assert builder.build() == [
        admin.NewTopicWithReplication("b", 3, 2, configs),
        admin.NewTopicWithReplicaAssignments("a", {1: [3, 1], 0: [2, 3]}, configs),
        admin.NewTopicWithReplication("c", 4, -1),
    ]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": "there"}, "named twice"),
        ({"partitions": 0}, "partitions is 0; give 1 or more"),
        ({"replication_factor": -1}, "replication_factor is -1"),
        ({"partitions": 2, "assignment": {0: [1]}}, "an assignment or partitions, not both"),
        ({"replication_factor": 2, "assignment": {0: [1]}}, "or replication_factor, not both"),
        ({"assignment": {}}, "are 0, 1, 2 and so on, not empty"),
        ({"assignment": {0: [1], 2: [1]}}, "0, 1, 2 and so on, not 0, 2"),
        ({"assignment": {0: [1], 1: []}}, "give partition 0 different brokers"),
        ({"assignment": {0: []}}, "give partition 0 different brokers"),
        ({"assignment": {0: [2, 1], 1: [3, 3]}}, "give partition 1 different brokers"),
    ],
)
def test_a_builder_rejects_an_invalid_topic(fields: dict[str, Any], text: str) -> None:
    """KIP-4 §Create Topics Request 4: counts and an assignment exclude each other."""
    builder = NewTopicsBuilder().add("there")
    with pytest.raises(InvalidCallError) as rejected:
        builder.add(**{"name": "new", **fields})
    assert text in str(rejected.value)
    assert [topic.name for topic in builder.build()] == ["there"]


def test_a_builder_collects_the_changes_of_configs() -> None:
    builder = AlterConfigRequestBuilder().set("b", "x", "1").delete("a", "x").set("b", "y", "2")
    changes = builder.build()
    assert changes == {"b": {"x": "1", "y": "2"}, "a": {"x": None}}
    assert list(changes) == ["b", "a"]
    for again in (builder.set, lambda entity, name, _: builder.delete(entity, name)):
        with pytest.raises(InvalidCallError, match="x of 'a' is changed twice"):
            again("a", "x", "2")
    assert builder.build() == changes


def test_alter_topics_sends_the_numbers_and_the_replicas_of_each_alteration() -> None:
    """KIP-4 §Alter Topic Request: -1 and no replicas mean that nothing is changed."""
    world = World()
    requests: list[Any] = []
    for broker in world.brokers.values():
        broker.dialect = "drafted"
    world.everywhere(ApiKey.ALTER_TOPICS, lambda request, version: requests.append(request))
    number = world.start(
        drafted.alter_topics(
            [
                drafted.TopicAlteration("a", partitions=4),
                drafted.TopicAlteration("b", replication_factor=3),
                drafted.TopicAlteration("c", assignment={2: (3, 1), 5: (1, 2)}),
            ]
        )
    )
    world.core.cancel(number)
    moved = [PartitionReplicas(2, [3, 1]), PartitionReplicas(5, [1, 2])]
    assert requests == [
        AlterTopicsRequest(
            [AlterTopic("a", 4, -1, []), AlterTopic("b", -1, 3, []), AlterTopic("c", -1, -1, moved)]
        )
    ]


def test_create_acls_sends_every_part_of_each_acl() -> None:
    world = World()
    requests: list[Any] = []
    world.everywhere(ApiKey.CREATE_ACLS, lambda request, version: requests.append(request))
    read = acls.AclBinding(
        admin.ResourceType.GROUP,
        "readers",
        admin.PatternType.PREFIXED,
        "User:alice",
        "127.0.0.9",
        admin.AclOperation.READ,
        admin.AclPermissionType.DENY,
    )
    write = read._replace(
        resource_type=admin.ResourceType.TOPIC,
        resource_name="orders",
        operation=admin.AclOperation.WRITE,
        permission_type=admin.AclPermissionType.ALLOW,
    )
    world.core.cancel(world.start(acls.create_acls([read, write])))
    assert requests == [
        CreateAclsRequest(
            [
                AclCreation(3, "readers", 4, "User:alice", "127.0.0.9", 3, 2),
                AclCreation(2, "orders", 4, "User:alice", "127.0.0.9", 4, 3),
            ]
        )
    ]


def moving(world: World, *, until_ms: float, names: tuple[str, ...] = ("t",)) -> list[Any]:
    """Answer that two partitions of each topic move until a time; return the requests."""
    requests: list[Any] = []

    def listed(request: Any, version: int) -> ListPartitionReassignmentsResponse:
        requests.append(request)
        moves = [OngoingPartitionReassignment(number, [1, 2], [2], [1]) for number in (3, 5)]
        topics = [OngoingTopicReassignment(name, moves) for name in names]
        return ListPartitionReassignmentsResponse(topics=topics if world.now_ms < until_ms else [])

    world.everywhere(ApiKey.LIST_PARTITION_REASSIGNMENTS, listed)
    return requests


def test_a_client_waits_until_no_partition_is_reassigned() -> None:
    world = World()
    world.controller = 3
    requests = moving(world, until_ms=900)
    wanted = [TopicPartition("t", 3), TopicPartition("t", 5)]
    assert world.run(partitions.wait_for_reassignments(wanted, poll_ms=250)).is_success
    assert world.now_ms == 1_000
    asked = [line.split()[:2] for line in world.new_lines() if "List" in line]
    assert asked == [[str(at), "3"] for at in (0, 250, 500, 750, 1_000)]
    assert [(topic.name, topic.partition_indexes) for topic in requests[0].topics] == [
        ("t", [3, 5])
    ]


def test_waiting_for_all_partitions_asks_for_all() -> None:
    world = World()
    requests = moving(world, until_ms=0)
    assert world.run(partitions.wait_for_reassignments()).is_success
    assert [request.topics for request in requests] == [None]


def test_a_wait_that_times_out_names_the_partitions() -> None:
    world = World()
    moving(world, until_ms=10_000, names=("t", "other"))
    error = world.run(partitions.wait_for_reassignments(), timeout_ms=700).error
    assert isinstance(error, KafkaTimeoutError)
    assert "other-3, other-5, t-3 and 1 more are still being reassigned" in str(error)
    assert error.sent
    assert world.now_ms == 700
    wrong = world.run(partitions.wait_for_reassignments(poll_ms=0)).error
    assert isinstance(wrong, InvalidCallError)
