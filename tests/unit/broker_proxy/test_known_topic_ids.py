"""A deleted topic is noticed even if no metadata update says that it was deleted."""

from __future__ import annotations

from typing import cast

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.produce import LeaderIdAndEpoch, NodeEndpoint
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.apis.groups.group_topics import check_topics
from broker_proxy.apis.records.current_leaders import Moved, name_leaders
from broker_proxy.metadata.cache import CachedTopic, KnownTopicIds
from cluster_model.acls.authorization import allow_everything
from tests.unit.broker_proxy.coordinating_broker import CoordinatingBroker

OLD, NEW = b"o" * 16, b"n" * 16


def topics(**ids: bytes) -> dict[str, CachedTopic]:
    return {name: CachedTopic(name, topic_id, {}) for name, topic_id in ids.items()}


def test_an_update_deletes_only_topics_that_are_gone() -> None:
    topic_ids = KnownTopicIds()
    assert topic_ids.deleted(topics(a=OLD, b=OLD), None) == set()
    assert topic_ids.deleted(topics(a=OLD), ["a", "b"]) == {"b"}
    assert topic_ids.deleted(topics(a=OLD), ["b"]) == set()


def test_a_full_image_deletes_the_topics_that_it_lacks() -> None:
    topic_ids = KnownTopicIds()
    topic_ids.deleted(topics(a=OLD, b=OLD), None)
    assert topic_ids.deleted(topics(a=OLD, c=NEW), None) == {"b"}


def test_a_topic_with_another_id_was_deleted_and_created_again() -> None:
    """With the committed offsets of the deleted topic, consumers would skip records."""
    topic_ids = KnownTopicIds()
    topic_ids.deleted(topics(a=OLD), None)
    assert topic_ids.deleted(topics(a=NEW), ["a"]) == {"a"}
    assert topic_ids.deleted(topics(a=NEW), ["a"]) == set()


@pytest.mark.parametrize("no_id", [b"", bytes(16)])
def test_a_topic_that_gets_its_first_id_was_not_deleted(no_id: bytes) -> None:
    topic_ids = KnownTopicIds()
    topic_ids.deleted(topics(a=no_id), None)
    assert topic_ids.deleted(topics(a=NEW), ["a"]) == set()
    assert topic_ids.deleted(topics(), ["a"]) == {"a"}


# Produce and Fetch responses name the leader of a partition that has moved (KIP-951).


def test_moved_partitions_get_their_leader_and_each_leader_is_listed_once() -> None:
    broker = CoordinatingBroker()
    broker.create("t", (2,), (2,), (3,))
    fields = [LeaderIdAndEpoch() for _ in range(4)]
    moved = [Moved("t", number, field) for number, field in enumerate(fields)]
    endpoints = name_leaders(broker.cache, "INNER", moved, NodeEndpoint)
    assert [field.leader_id for field in fields] == [2, 2, 3, -1]
    assert fields[0].leader_epoch == broker.cache.topics["t"].partitions[0].leader_epoch
    assert endpoints == [NodeEndpoint(2, "host2", 9002, None)]  # Broker 3 has no listener INNER.


# The checks of the partitions in OffsetCommit and OffsetDelete.


class Partition(int):
    """A partition number that counts comparisons."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Partition.comparisons += 1
        return int(self) == other

    __hash__ = int.__hash__


class _FirstPartition:
    def has_partition(self, _topic: str, partition: int) -> bool:
        return int(partition) == 0


def test_the_time_to_check_missing_partitions_grows_linearly() -> None:
    """With quadratic time, a request of a few MB would block the broker for minutes."""
    coordinators = cast(Coordinators, _FirstPartition())
    wanted = [Partition(number) for number in range(1000)]
    checked = check_topics([("t", wanted)], allow_everything, coordinators)
    assert checked.valid == [("t", 0)]
    missing = [(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for number in range(1, 1000)]
    assert checked.merged({}) == [("t", missing)]
    assert Partition.comparisons < 10_000
