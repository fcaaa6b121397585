"""OffsetFetch, DescribeProducers and AlterReplicaLogDirs.

The expected values are from a live Kafka 3.9.1 with ZooKeeper. There the group "h" had a
coordinator, but no members.
"""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.kafka_wire.apis import UNSERVED
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages import (
    alter_replica_log_dirs,
    describe_log_dirs,
    describe_producers,
    offset_fetch,
)
from broker_proxy.apis.admin.alter_replica_log_dirs import AlterReplicaLogDirs
from broker_proxy.apis.admin.describe_log_dirs import DescribeLogDirs
from broker_proxy.apis.admin.log_dirs import LogDirs
from broker_proxy.apis.groups.group_ports import NoGroups
from broker_proxy.apis.groups.offset_fetch import OffsetFetch
from broker_proxy.apis.records.describe_producers import DescribeProducers
from broker_proxy.requests.routing import ROUTING_TABLES
from tests.unit.broker_proxy.client_requests import authorize_every_client
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker

KAFKA_LISTS = {*range(52), 56, 57, 58, 60, 61, *range(65, 70)}


def a_broker() -> CoordinatingBroker:
    """Broker 1 coordinates "h". Topic t has a partition on broker 1, one on 2, and one on both."""
    broker = CoordinatingBroker()
    broker.create("__consumer_offsets", (1,), (2,))
    broker.create("__transaction_state", (1,), (2,))
    broker.create("t", (1,), (2,), (2, 1))
    return broker


yes, no = authorize_every_client(True), authorize_every_client(False)


def test_every_api_of_kafka_is_served_or_listed_as_unserved() -> None:
    table = ROUTING_TABLES["shipped"]
    assert not set(table) & set(UNSERVED)
    assert set(table) | set(UNSERVED) >= KAFKA_LISTS
    assert set(table) <= KAFKA_LISTS


def offsets_of(group: str, *names: str) -> offset_fetch.OffsetFetchRequest:
    """Return a request that every version can encode. Without names it requests all offsets."""
    old = [offset_fetch.OffsetFetchRequestTopic(name, [0, 7]) for name in names]
    new = [offset_fetch.OffsetFetchRequestTopics(name, [0, 7]) for name in names]
    requested = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=new if names else None)
    return offset_fetch.OffsetFetchRequest(
        groups=[requested], group_id=group, topics=old if names else None
    )


def results_of(response: dict[str, Any], version: int) -> tuple[int | None, dict[str, set[Any]]]:
    """Return the group's error, and the distinct (offset, error) pairs of each topic."""
    group = response["groups"][0] if version >= 8 else response
    topics = {
        topic["name"]: {(p["committedOffset"], p["errorCode"]) for p in topic["partitions"]}
        for topic in group["topics"]
    }
    return group.get("errorCode"), topics


@pytest.mark.parametrize("version", range(10))
async def test_offset_fetch_needs_the_describe_right_on_group_and_topic(version: int) -> None:
    broker = a_broker()
    request = offsets_of("h", "t", "hidden")
    response = await broker.call(
        OffsetFetch(NoGroups(broker.coordinators), broker.coordinators, no), version, request
    )
    denied: tuple[int | None, Any] = (30, {}) if version >= 2 else (None, {})
    if version == 0:
        denied = (None, {"t": {(-1, 30)}, "hidden": {(-1, 30)}})
    assert results_of(response, version) == denied
    api = OffsetFetch(
        NoGroups(broker.coordinators),
        broker.coordinators,
        authorize_every_client(lambda _operation, _type, name: name != "hidden"),
    )
    _, topics = results_of(await broker.call(api, version, request), version)
    assert topics == {"t": {(-1, 0 if version else 3)}, "hidden": {(-1, 29)}}


async def test_offset_fetch_v0_fails_for_a_group_id_that_is_no_valid_znode_path() -> None:
    broker = a_broker()
    api = OffsetFetch(NoGroups(broker.coordinators), broker.coordinators, yes)
    topics = [
        offset_fetch.OffsetFetchRequestTopic("t", [0, 7]),
        offset_fetch.OffsetFetchRequestTopic("u", []),
    ]
    for group, there in (("", -1), ("𝄞", -1), ("a/b", 3)):
        request = offset_fetch.OffsetFetchRequest(group_id=group, topics=topics)
        ((topic),) = (await broker.call(api, 0, request))["topics"]
        assert [p["errorCode"] for p in topic["partitions"]] == [there, 3]


@pytest.mark.parametrize("version", range(10))
async def test_offset_fetch_omits_empty_topics_and_repeated_partitions(
    version: int,
) -> None:
    broker = a_broker()
    topics = [("t", []), ("u", [0, 0]), ("u", [1, 0])]
    request = offset_fetch.OffsetFetchRequest(
        group_id="h",
        topics=[
            offset_fetch.OffsetFetchRequestTopic(*described_topic) for described_topic in topics
        ],
        groups=[
            offset_fetch.OffsetFetchRequestGroup(
                group_id="h",
                topics=[
                    offset_fetch.OffsetFetchRequestTopics(*described_topic)
                    for described_topic in topics
                ],
            )
        ],
    )
    response = await broker.call(
        OffsetFetch(NoGroups(broker.coordinators), broker.coordinators, yes), version, request
    )
    ((topic),) = (response["groups"][0] if version >= 8 else response)["topics"]
    assert topic["name"] == "u"
    assert [partition["partitionIndex"] for partition in topic["partitions"]] == [0, 1]


async def test_describe_producers_responds_for_replicas_of_this_broker() -> None:
    broker = a_broker()
    requested = {"t": [0, 1, 2, 9], "none": [0], "bad/name": [0]}
    topics = [describe_producers.TopicRequest(name, numbers) for name, numbers in requested.items()]
    request = describe_producers.DescribeProducersRequest(topics=topics)
    response = await broker.call(DescribeProducers(1, broker.cache, yes), 0, request)
    outcomes = {
        topic["name"]: [(p["errorCode"], p["errorMessage"]) for p in topic["partitions"]]
        for topic in response["topics"]
    }
    assert outcomes["t"] == [(0, None), (6, None), (0, None), (3, None)]
    assert outcomes["none"] == [(3, "This server does not host this topic-partition.")]
    ((code, text),) = outcomes["bad/name"]
    assert (code, text.startswith("Topic name is invalid: 'bad/name'")) == (17, True)
    assert all(not p["activeProducers"] for t in response["topics"] for p in t["partitions"])
    response = await broker.call(DescribeProducers(1, broker.cache, no), 0, request)
    assert {p["errorCode"] for t in response["topics"] for p in t["partitions"]} == {29}


def moves(*wanted: tuple[str, str, list[int]]) -> alter_replica_log_dirs.AlterReplicaLogDirsRequest:
    """Return a request for moves, each given as (directory, topic, partitions)."""
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(
        dirs=[
            alter_replica_log_dirs.AlterReplicaLogDir(
                path, [alter_replica_log_dirs.AlterReplicaLogDirTopic(name, partitions)]
            )
            for path, name, partitions in wanted
        ]
    )


def codes_of(response: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {
        (topic["topicName"], p["partitionIndex"]): p["errorCode"]
        for topic in response["results"]
        for p in topic["partitions"]
    }


@pytest.mark.parametrize("version", range(3))
async def test_alter_replica_log_dirs_moves_this_brokers_replicas(version: int) -> None:
    broker = a_broker()
    log_dirs = LogDirs(("/a", "/b"), broker.cache, 1)
    api = AlterReplicaLogDirs(log_dirs, yes)
    request = moves(
        *(("/b", "t", [0, 1, 2, 9]), ("/b", "none", [0]), ("/nowhere", "none", [1])),
        *(("/a", "t", [2]), ("/a", "without", [])),
        *(("/nowhere", "n" * 213, [0, 10]), ("/nowhere", "n" * 214, [0])),
    )
    response = await broker.call(api, version, request)
    assert "without" not in {topic["topicName"] for topic in response["results"]}
    assert codes_of(response) == {
        ("t", 0): 0,
        ("t", 1): 9,
        ("t", 2): 0,
        ("t", 9): 3,
        ("none", 0): 3,
        ("none", 1): 57,
        ("n" * 213, 0): 57,
        ("n" * 213, 10): 17,  # the future replica's name is too long for a folder
        ("n" * 214, 0): 17,
    }
    everything = describe_log_dirs.DescribeLogDirsRequest(topics=None)
    outcomes = await broker.call(DescribeLogDirs(log_dirs, broker.cache, yes), 4, everything)
    partitions_of_folder = {
        result["logDir"]: [
            p["partitionIndex"]
            for t in result["topics"]
            if t["name"] == "t"
            for p in t["partitions"]
        ]
        for result in outcomes["results"]
    }
    assert partitions_of_folder == {"/a": [2], "/b": [0]}


async def test_a_recreated_topic_does_not_inherit_moved_replicas() -> None:
    broker = a_broker()
    log_dirs = LogDirs(("/a", "/b"), broker.cache, 1)
    log_dirs.move("t", 0, "/b")
    broker.delete("t")
    broker.create("T", (1,))
    log_dirs.move("T", 0, "/b")
    broker.create("t", (1,), topic_id=b"another topic id")
    assert list(log_dirs.replicas("t")) == [(0, "/a")]
    assert list(log_dirs.replicas("T")) == [(0, "/b")]


async def test_alter_replica_log_dirs_needs_alter_on_the_cluster() -> None:
    broker = a_broker()
    api = AlterReplicaLogDirs(LogDirs(("/a",), broker.cache, 1), no)
    with pytest.raises(ApiError) as rejected:
        await broker.call(api, 2, moves(("/a", "t", [0])))
    assert rejected.value.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
