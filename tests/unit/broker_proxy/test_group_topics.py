"""The checks of the partitions in OffsetCommit and OffsetDelete."""

from __future__ import annotations

from typing import cast

from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.apis.groups.group_topics import check_topics
from cluster_model.acls.authorization import allow_everything


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


async def test_the_time_to_check_missing_partitions_grows_linearly() -> None:
    """With quadratic time, a request of a few MB would block the broker for minutes."""
    coordinators = cast(Coordinators, _FirstPartition())
    wanted = [Partition(number) for number in range(1000)]
    checked = await check_topics([("t", wanted)], allow_everything, coordinators)
    assert checked.valid == [("t", 0)]
    missing = [(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for number in range(1, 1000)]
    assert await checked.merged({}) == [("t", missing)]
    assert Partition.comparisons < 10_000
