"""Reassignments and elections on real nodes that are killed and restarted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridgehead.cluster import Cluster
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from bridgehead.kafka_wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from bridgehead.kafka_wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.raw_client.asynchronous import AsyncConnection
from tests.integration.processes import wait_until

CREATE, METADATA, ALTER, LIST, ELECT = (19, 5), (3, 8), (45, 0), (46, 0), (43, 2)
PROPERTIES = {"zookeeper.session.timeout.ms": "2000"}


def call(address: str, api: tuple[int, int], message: Any) -> Any:
    """Send a request on a new connection."""

    async def go() -> Any:
        connection = await AsyncConnection.open(address)
        response = await connection.call(*api, message)
        connection.close()
        return response

    return asyncio.run(go())


def running(address: str) -> list[Any]:
    response = call(address, LIST, ListPartitionReassignmentsRequest(topics=None))
    assert response.error_code == 0
    return [
        (p.replicas, p.adding_replicas, p.removing_replicas)
        for topic in response.topics
        for p in topic.partitions
    ]


def replicas(address: str) -> tuple[int, list[int], list[int]]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="moved")])
    (topic,) = call(address, METADATA, request).topics
    (partition,) = topic.partitions
    return partition.leader_id, partition.replica_nodes, sorted(partition.isr_nodes)


def create(address: str, *brokers: int) -> None:
    assignment = [CreatableReplicaAssignment(0, list(brokers))]
    topic = CreatableTopic("moved", -1, -1, assignment)
    created = call(address, CREATE, CreateTopicsRequest([topic], 10_000))
    assert created.topics[0].error_code == 0


def elect_preferred(address: str) -> int:
    requested = [TopicPartitions("moved", [0])]
    response = call(address, ELECT, ElectLeadersRequest(0, requested, 10_000))
    code: int = response.replica_election_results[0].partition_result[0].error_code
    return code


@pytest.mark.long
def test_a_reassignment_waits_for_a_dead_broker_through_a_change_of_controller() -> None:
    """The dead broker is already a replica. The next controller completes the reassignment."""
    with Cluster(brokers=4, controller=1, properties=PROPERTIES) as cluster:
        through = cluster.bootstrap_server(2)
        create(through, 4, 3)
        cluster.kill_node(3)
        wait_until(lambda: replicas(through) == (4, [4, 3], [4]))

        partition = ReassignablePartition(0, [2, 3])
        alter = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("moved", [partition])])
        response = call(through, ALTER, alter)
        assert response.responses[0].partitions[0].error_code == 0
        assert running(through) == [([2, 3, 4], [2], [4])]
        wait_until(lambda: replicas(through) == (4, [2, 3, 4], [2, 4]))

        cluster.kill_controller()
        cluster.wait_for_controller(other_than=1)
        assert running(through) == [([2, 3, 4], [2], [4])]
        cluster.start_node(3)
        wait_until(lambda: not running(through))
        wait_until(lambda: replicas(through) == (2, [2, 3], [2, 3]))


@pytest.mark.long
def test_a_preferred_leader_is_elected_after_its_restart() -> None:
    """The controller's broker knows the new leader when the response is sent."""
    with Cluster(brokers=3, controller=1, properties=PROPERTIES) as cluster:
        controller, through = cluster.bootstrap_server(1), cluster.bootstrap_server(2)
        create(through, 3, 2)
        assert elect_preferred(through) == ErrorCode.ELECTION_NOT_NEEDED
        cluster.kill_node(3)
        wait_until(lambda: replicas(through) == (2, [3, 2], [2]))
        assert elect_preferred(through) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        cluster.start_node(3)
        wait_until(lambda: replicas(through) == (2, [3, 2], [2, 3]))
        assert elect_preferred(through) == ErrorCode.NONE
        assert replicas(controller)[0] == 3
