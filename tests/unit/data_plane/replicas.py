"""Replicas of one partition, and a leader that answers fetches without a network."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from cluster_model.records import Replicas
from data_plane.partition import Partition
from data_plane.replication.fetching import FetchLimits
from tests.unit.data_plane.logs import NOW, TOPIC_ID, batch, directories

LIMITS = FetchLimits(500, 1, 1_000_000, 10_000_000, 1_000)


class View(NamedTuple):
    """The state of the partition in the metadata."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: Replicas
    replicas: Replicas = (1, 2, 3)


@dataclass
class Isrs:
    """Collects the proposed ISRs."""

    lag_max_ms: int = 10_000
    now: int = 0
    dead: set[int] = field(default_factory=set)
    proposed: list[Replicas] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def is_live(self, broker_id: int) -> bool:
        return broker_id not in self.dead

    def propose(self, partition: Partition, isr: Replicas) -> None:
        assert partition.isr_state is not None
        partition.isr_state.propose(isr)
        self.proposed.append(isr)


def replica(folder: Path, broker_id: int, isrs: Isrs, **configs: object) -> Partition:
    """Return this broker's replica of orders-0."""
    log = directories(folder / str(broker_id), **configs).get_or_create("orders", 0, TOPIC_ID)
    return Partition(broker_id, log, 0, isrs)


def append(partition: Partition, *values: bytes) -> None:
    """Append as the leader, one batch per value."""
    for value in values:
        partition.append(batch(value), 1, NOW)


def response_to(leader: Partition, request: FetchRequest) -> FetchResponse:
    """Return the leader's response, as `broker_proxy.apis.records.fetch` does for one partition."""
    ((wanted,),) = (topic.partitions for topic in request.topics)
    data = PartitionData(wanted.partition, high_watermark=-1, records=b"")
    _fill(leader, request.replica_id, wanted, data)
    return FetchResponse(responses=[FetchableTopicResponse(TOPIC_ID, "orders", [data])])


def _fill(leader: Partition, follower: int, wanted: FetchPartition, data: PartitionData) -> None:
    log, offset = leader.log, wanted.fetch_offset
    if wanted.current_leader_epoch != leader.leader_epoch:
        data.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
        return
    if wanted.last_fetched_epoch >= 0:
        epoch, end = log.epochs.end_offset(wanted.last_fetched_epoch, log.end_offset)
        if epoch != wanted.last_fetched_epoch or end < offset:
            data.diverging_epoch = EpochEndOffset(epoch, end)
            return
    if not log.start_offset <= offset <= log.end_offset:
        data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        return
    data.records = log.read(offset, wanted.partition_max_bytes, log.end_offset)
    leader.follower_fetched(follower, offset)
    data.high_watermark, data.log_start_offset = leader.high_watermark, log.start_offset
