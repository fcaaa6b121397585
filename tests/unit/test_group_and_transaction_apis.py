"""Groups, transactions and producers that nobody has met, and replicas between directories.

What is expected was seen on a live Kafka 3.9.1 with ZooKeeper, where the groups "g" and "h" had
coordinators and had never had a member.
"""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.kafka_wire.apis import API_SPECS
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages import (
    alter_replica_log_dirs,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    list_transactions,
    offset_delete,
    offset_fetch,
)
from broker_proxy.apis.alter_replica_log_dirs import AlterReplicaLogDirs
from broker_proxy.apis.consumer_group_describe import ConsumerGroupDescribe
from broker_proxy.apis.consumer_group_heartbeat import ConsumerGroupHeartbeat
from broker_proxy.apis.delete_groups import DeleteGroups
from broker_proxy.apis.describe_log_dirs import DescribeLogDirs
from broker_proxy.apis.describe_producers import DescribeProducers
from broker_proxy.apis.describe_transactions import DescribeTransactions
from broker_proxy.apis.list_transactions import ListTransactions
from broker_proxy.apis.offset_delete import OffsetDelete
from broker_proxy.apis.offset_fetch import OffsetFetch
from broker_proxy.left_out import LEFT_OUT
from broker_proxy.log_dirs import LogDirs
from broker_proxy.routing import DIALECTS
from tests.unit.authorizing import saying_to_everybody
from tests.unit.coordinating_broker import CoordinatingBroker

KAFKA_LISTS = {*range(52), 56, 57, 58, 60, 61, *range(65, 70)}


def a_broker() -> CoordinatingBroker:
    """Broker 1 coordinates "h" and its like, broker 2 "g"; topic t has partitions on 1, 2, both."""
    broker = CoordinatingBroker()
    broker.create("__consumer_offsets", (1,), (2,))
    broker.create("__transaction_state", (1,), (2,))
    broker.create("t", (1,), (2,), (2, 1))
    return broker


yes, no = saying_to_everybody(True), saying_to_everybody(False)


def test_what_kafka_lists_is_served_or_left_out_with_a_reason() -> None:
    """Nothing is both, and nothing that Kafka closes its connection on is served."""
    table = DIALECTS["shipped"]
    assert not set(table) & set(LEFT_OUT)
    assert set(table) | set(LEFT_OUT) >= KAFKA_LISTS
    assert set(table) <= KAFKA_LISTS
    names = {key: spec.name for key, spec in API_SPECS.items() if key in LEFT_OUT}
    assert names == {key: LEFT_OUT[key][0] for key in names}


@pytest.mark.parametrize("version", range(3))
async def test_a_group_that_nobody_met_cannot_be_deleted(version: int) -> None:
    """Each once; only its coordinator knows that it is not there."""
    broker = a_broker()
    request = delete_groups.DeleteGroupsRequest(groups_names=["g", "h", "", "g"])
    for may, codes in ((yes, {"g": 16, "h": 69, "": 69}), (no, {"g": 30, "h": 30, "": 30})):
        answer = await broker.ask(DeleteGroups(broker.coordinators, may), version, request)
        assert {r["groupId"]: r["errorCode"] for r in answer["results"]} == codes
        assert len(answer["results"]) == 3


@pytest.mark.parametrize(
    ("group", "may", "code"), [("h", yes, 69), ("g", yes, 16), ("", yes, 24), ("h", no, 30)]
)
async def test_offsets_of_a_group_that_nobody_met_cannot_be_deleted(
    group: str, may: Any, code: int
) -> None:
    """Whatever the topics, of which nothing is told."""
    broker = a_broker()
    partition = offset_delete.OffsetDeleteRequestPartition(0)
    topics = [offset_delete.OffsetDeleteRequestTopic(name, [partition]) for name in ("t", "none")]
    request = offset_delete.OffsetDeleteRequest(group_id=group, topics=topics)
    answer = await broker.ask(OffsetDelete(broker.coordinators, may), 0, request)
    assert answer == {"errorCode": code, "throttleTimeMs": 0, "topics": []}


def offsets_of(group: str, *names: str) -> offset_fetch.OffsetFetchRequest:
    """The same question for all versions; no names: all that are committed."""
    old = [offset_fetch.OffsetFetchRequestTopic(name, [0, 7]) for name in names]
    new = [offset_fetch.OffsetFetchRequestTopics(name, [0, 7]) for name in names]
    asked = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=new if names else None)
    return offset_fetch.OffsetFetchRequest(
        groups=[asked], group_id=group, topics=old if names else None
    )


def told_of(answer: dict[str, Any], version: int) -> tuple[int | None, dict[str, set[Any]]]:
    """Return the code of the group, and the distinct (offset, code) of each topic."""
    group = answer["groups"][0] if version >= 8 else answer
    topics = {
        topic["name"]: {(p["committedOffset"], p["errorCode"]) for p in topic["partitions"]}
        for topic in group["topics"]
    }
    return group.get("errorCode"), topics


@pytest.mark.parametrize("version", range(10))
async def test_a_group_that_nobody_met_has_committed_nothing(version: int) -> None:
    """No error, also for topics that are not there; version 0 asks any broker for ZooKeeper's."""
    broker = a_broker()
    api = OffsetFetch(broker.coordinators, yes)
    mine = await broker.ask(api, version, offsets_of("h", "t", "none"))
    uncommitted = {(-1, 0 if version else 3)}
    whole = 0 if version >= 2 else None
    assert told_of(mine, version) == (whole, {"t": uncommitted, "none": uncommitted})
    other = await broker.ask(api, version, offsets_of("g", "t"))
    if version == 0:
        assert told_of(other, version) == (None, {"t": uncommitted})
    else:
        assert told_of(other, version) == (16 if version >= 2 else None, {})
    if version >= 2:
        assert told_of(await broker.ask(api, version, offsets_of("h")), version) == (0, {})


@pytest.mark.parametrize("version", range(10))
async def test_offsets_are_told_to_whom_may_describe_the_group_and_the_topic(version: int) -> None:
    """Of the group: 30 for the whole, or for each partition where there is no whole."""
    broker = a_broker()
    request = offsets_of("h", "t", "hidden")
    answer = await broker.ask(OffsetFetch(broker.coordinators, no), version, request)
    denied = (30, {}) if version >= 2 else (None, {"t": {(-1, 30)}, "hidden": {(-1, 30)}})
    assert told_of(answer, version) == denied
    api = OffsetFetch(
        broker.coordinators, saying_to_everybody(lambda _operation, _type, name: name != "hidden")
    )
    _, topics = told_of(await broker.ask(api, version, request), version)
    assert topics == {"t": {(-1, 0 if version else 3)}, "hidden": {(-1, 29)}}


async def test_a_group_without_a_path_in_zookeeper_fails_for_partitions_that_are_there() -> None:
    """Version 0 alone looks there; who is told of a group that only cannot be named gets -1."""
    broker = a_broker()
    api = OffsetFetch(broker.coordinators, yes)
    topics = [
        offset_fetch.OffsetFetchRequestTopic("t", [0, 7]),
        offset_fetch.OffsetFetchRequestTopic("u", []),
    ]
    for group, there in (("", -1), ("𝄞", -1), ("a/b", 3)):
        request = offset_fetch.OffsetFetchRequest(group_id=group, topics=topics)
        ((topic),) = (await broker.ask(api, 0, request))["topics"]
        assert [p["errorCode"] for p in topic["partitions"]] == [there, 3]


@pytest.mark.parametrize("version", range(10))
async def test_a_topic_without_partitions_is_left_out_and_what_comes_twice_is_told_once(
    version: int,
) -> None:
    broker = a_broker()
    topics = [("t", []), ("u", [0, 0]), ("u", [1, 0])]
    request = offset_fetch.OffsetFetchRequest(
        group_id="h",
        topics=[offset_fetch.OffsetFetchRequestTopic(*each) for each in topics],
        groups=[
            offset_fetch.OffsetFetchRequestGroup(
                group_id="h",
                topics=[offset_fetch.OffsetFetchRequestTopics(*each) for each in topics],
            )
        ],
    )
    answer = await broker.ask(OffsetFetch(broker.coordinators, yes), version, request)
    ((topic),) = (answer["groups"][0] if version >= 8 else answer)["topics"]
    assert topic["name"] == "u"
    assert [each["partitionIndex"] for each in topic["partitions"]] == [0, 1]


async def test_no_groups_asked_for_is_answered_with_none() -> None:
    """Kafka never answers that."""
    broker = a_broker()
    request = offset_fetch.OffsetFetchRequest(groups=[])
    answer = await broker.ask(OffsetFetch(broker.coordinators, yes), 9, request)
    assert answer == {"throttleTimeMs": 0, "groups": []}


async def test_the_newer_group_protocol_is_unsupported_without_kraft() -> None:
    """Listed all the same: clients ask DescribeGroups then."""
    broker = a_broker()
    asked = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["g", "h"])
    answer = await broker.ask(ConsumerGroupDescribe(), 0, asked)
    told = [(group["groupId"], group["errorCode"]) for group in answer["groups"]]
    assert told == [("g", 35), ("h", 35)]
    beat = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(group_id="g", member_id="m")
    answer = await broker.ask(ConsumerGroupHeartbeat(), 0, beat)
    assert (answer["errorCode"], answer["errorMessage"], answer["memberId"]) == (35, None, None)


@pytest.mark.parametrize("version", range(2))
async def test_there_are_no_transactions(version: int) -> None:
    """Whatever is filtered for; states that do not exist are named, once and by their spelling."""
    broker = a_broker()
    request = list_transactions.ListTransactionsRequest(
        state_filters=["Ongoing", "ongoing", "bogus", "bogus"], producer_id_filters=[1]
    )
    answer = await broker.ask(ListTransactions(), version, request)
    assert answer == {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "unknownStateFilters": ["ongoing", "bogus"],
        "transactionStates": [],
    }


@pytest.mark.parametrize(("may", "codes"), [(yes, [16, 105, 42]), (no, [53, 53, 53])])
async def test_a_transactional_id_that_nobody_met_is_not_found(may: Any, codes: list[int]) -> None:
    """By its coordinator; others refuse, and the empty id is no id."""
    broker = a_broker()
    request = describe_transactions.DescribeTransactionsRequest(["g", "h", ""])
    answer = await broker.ask(DescribeTransactions(broker.coordinators, may), 0, request)
    assert [state["errorCode"] for state in answer["transactionStates"]] == codes


async def test_who_has_a_replica_knows_that_nobody_produces() -> None:
    """Texts only where the whole topic is refused."""
    broker = a_broker()
    asked = {"t": [0, 1, 2, 9], "none": [0], "bad/name": [0]}
    topics = [describe_producers.TopicRequest(name, numbers) for name, numbers in asked.items()]
    request = describe_producers.DescribeProducersRequest(topics=topics)
    answer = await broker.ask(DescribeProducers(1, broker.cache, yes), 0, request)
    told = {
        topic["name"]: [(p["errorCode"], p["errorMessage"]) for p in topic["partitions"]]
        for topic in answer["topics"]
    }
    assert told["t"] == [(0, None), (6, None), (0, None), (3, None)]
    assert told["none"] == [(3, "This server does not host this topic-partition.")]
    ((code, text),) = told["bad/name"]
    assert (code, text.startswith("Topic name is invalid: 'bad/name'")) == (17, True)
    assert all(not p["activeProducers"] for t in answer["topics"] for p in t["partitions"])
    answer = await broker.ask(DescribeProducers(1, broker.cache, no), 0, request)
    assert {p["errorCode"] for t in answer["topics"] for p in t["partitions"]} == {29}


def moves(*wanted: tuple[str, str, list[int]]) -> alter_replica_log_dirs.AlterReplicaLogDirsRequest:
    """Requests of (directory, topic, partitions)."""
    return alter_replica_log_dirs.AlterReplicaLogDirsRequest(
        dirs=[
            alter_replica_log_dirs.AlterReplicaLogDir(
                path, [alter_replica_log_dirs.AlterReplicaLogDirTopic(name, partitions)]
            )
            for path, name, partitions in wanted
        ]
    )


def codes_of(answer: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {
        (topic["topicName"], p["partitionIndex"]): p["errorCode"]
        for topic in answer["results"]
        for p in topic["partitions"]
    }


@pytest.mark.parametrize("version", range(3))
async def test_a_broker_moves_its_own_replicas(version: int) -> None:
    """To a directory that it has; replicas of others and unknown partitions are told apart."""
    broker = a_broker()
    log_dirs = LogDirs(("/a", "/b"), broker.cache, 1)
    api = AlterReplicaLogDirs(log_dirs, yes)
    request = moves(
        *(("/b", "t", [0, 1, 2, 9]), ("/b", "none", [0]), ("/nowhere", "none", [1])),
        *(("/a", "t", [2]), ("/a", "without", [])),
        *(("/nowhere", "n" * 213, [0, 10]), ("/nowhere", "n" * 214, [0])),
    )
    answer = await broker.ask(api, version, request)
    assert "without" not in {topic["topicName"] for topic in answer["results"]}
    assert codes_of(answer) == {
        ("t", 0): 0,
        ("t", 1): 9,
        ("t", 2): 0,
        ("t", 9): 3,
        ("none", 0): 3,
        ("none", 1): 57,
        ("n" * 213, 0): 57,
        ("n" * 213, 10): 17,  # the copy's name would be longer than a file's may be
        ("n" * 214, 0): 17,
    }
    everything = describe_log_dirs.DescribeLogDirsRequest(topics=None)
    told = await broker.ask(DescribeLogDirs(log_dirs, broker.cache, yes), 4, everything)
    found = {
        result["logDir"]: [
            p["partitionIndex"]
            for t in result["topics"]
            if t["name"] == "t"
            for p in t["partitions"]
        ]
        for result in told["results"]
    }
    assert found == {"/a": [2], "/b": [0]}


async def test_where_a_topics_replicas_were_moved_is_not_inherited_by_its_successor() -> None:
    """A directory belongs to a topic id, and what is gone is forgotten with the next move."""
    broker = a_broker()
    log_dirs = LogDirs(("/a", "/b"), broker.cache, 1)
    log_dirs.move("t", 0, "/b")
    broker.delete("t")
    broker.create("T", (1,))
    log_dirs.move("T", 0, "/b")
    broker.create("t", (1,), topic_id=b"another topic id")
    assert list(log_dirs.replicas("t")) == [(0, "/a")]
    assert list(log_dirs.replicas("T")) == [(0, "/b")]


async def test_moving_replicas_needs_alter_on_the_cluster() -> None:
    """The request fails as a whole."""
    broker = a_broker()
    api = AlterReplicaLogDirs(LogDirs(("/a",), broker.cache, 1), no)
    with pytest.raises(ApiError) as refused:
        await broker.ask(api, 2, moves(("/a", "t", [0])))
    assert refused.value.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
