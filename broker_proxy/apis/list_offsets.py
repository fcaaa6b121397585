"""ListOffsets, key 2, versions 0 to 9: answered by the leader of each partition.

Every partition is an empty log: its first and last offset are 0 and no record has a timestamp.
Checks and results were recorded from a Kafka 3.9.1 with empty logs. Topics that the client may not
describe come last.

Version notes:
    0: a list of segment end offsets; a log's only segment dates from its creation.
    1: one offset with its timestamp; repeated partitions are rejected.
    2: an isolation level, without effect on an empty log.
    4: the client's leader epoch. 7 to 9: more special timestamps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.metadata_cache import CachedPartition, MetadataCache

_LATEST: Final = -1
_EARLIEST: Final = -2
_EARLIEST_LOCAL: Final = -4
# Negative timestamps are special, each from a certain version on.
_SPECIAL_FROM_VERSION: Final = {_LATEST: 0, _EARLIEST: 0, -3: 7, _EARLIEST_LOCAL: 8, -5: 9}
_CONSUMER: Final = -1
_DEBUGGING_CONSUMER: Final = -2  # may query a follower
_ISOLATION_LEVELS: Final = (0, 1)
_ANY_EPOCH: Final = -1
LogName = tuple[str, int]  # topic and partition
# Returns when logs were created, in milliseconds since 1970, by log; missing logs are omitted.
LogTimes = Callable[[Sequence[LogName]], Awaitable[Mapping[LogName, int]]]


@dataclass(frozen=True, slots=True)
class ListOffsets:
    """Answers ListOffsets requests."""

    broker_id: int
    cache: MetadataCache
    authorize_for: AuthorizeFor
    log_times: LogTimes
    api_key: ClassVar[ApiKey] = ApiKey.LIST_OFFSETS

    async def handle(self, request: ClientRequest, message: ListOffsetsRequest) -> Any:
        """Return a result per partition, in the order of the request."""
        version = request.header.api_version
        counts = Counter((t.name, p.partition_index) for t in message.topics for p in t.partitions)
        times = await self._times(message) if version == 0 else {}
        answered, denied = [], []
        for topic in message.topics:
            if not self.authorize_for(request)("DESCRIBE", "TOPIC", topic.name):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                refused = [_refused(partition, error) for partition in topic.partitions]
                denied.append(ListOffsetsTopicResponse(name=topic.name, partitions=refused))
                continue
            results = []
            for partition in topic.partitions:
                twice = version > 0 and counts[topic.name, partition.partition_index] > 1
                answer = self._answer(topic.name, partition, message, version, twice=twice)
                if version == 0 and answer.error_code == ErrorCode.NONE:
                    answer = _segments(
                        partition, times.get((topic.name, partition.partition_index))
                    )
                results.append(answer)
            answered.append(ListOffsetsTopicResponse(name=topic.name, partitions=results))
        return ListOffsetsResponse(topics=answered + denied)

    async def _times(self, message: ListOffsetsRequest) -> Mapping[LogName, int]:
        """Return creation times of the known logs that are queried by timestamp."""
        logs = {
            (topic.name, partition.partition_index)
            for topic in message.topics
            for partition in topic.partitions
            if partition.timestamp >= 0 and self.cache.has_topic(topic.name)
        }
        return await self.log_times(sorted(logs)) if logs else {}

    def _answer(
        self,
        name: str,
        partition: ListOffsetsPartition,
        message: ListOffsetsRequest,
        version: int,
        *,
        twice: bool,
    ) -> ListOffsetsPartitionResponse:
        if twice:
            return _refused(partition, ErrorCode.INVALID_REQUEST)
        if partition.timestamp < 0 and version < _SPECIAL_FROM_VERSION.get(
            partition.timestamp, version + 1
        ):
            return _refused(partition, ErrorCode.UNSUPPORTED_VERSION)
        replica_id = message.replica_id
        if replica_id == _CONSUMER and message.isolation_level not in _ISOLATION_LEVELS:
            return _refused(partition, ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
        topic = self.cache.topics.get(name)
        known = topic.partitions.get(partition.partition_index) if topic is not None else None
        if known is None:
            return _refused(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        error = self._refusal(known, partition.current_leader_epoch, replica_id)
        if error is not ErrorCode.NONE:
            return _refused(partition, error)
        result = ListOffsetsPartitionResponse(partition_index=partition.partition_index)
        if partition.timestamp in (_LATEST, _EARLIEST, _EARLIEST_LOCAL):
            result.offset = 0
            # A follower knows only the leader epoch at the end of its log.
            if partition.timestamp == _LATEST or known.leader == self.broker_id:
                result.leader_epoch = known.leader_epoch
        return result

    def _refusal(self, known: CachedPartition, epoch: int, replica_id: int) -> ErrorCode:
        if self.broker_id not in known.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if epoch != _ANY_EPOCH and epoch < known.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > known.leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if known.leader != self.broker_id and replica_id != _DEBUGGING_CONSUMER:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE


def _segments(
    partition: ListOffsetsPartition, created_ms: int | None
) -> ListOffsetsPartitionResponse:
    """Return version 0's offsets, those of segments last changed at or before the timestamp."""
    if partition.max_num_offsets < 0:
        return _refused(partition, ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
    # The only segment was last changed when the log was created.
    has_segment = partition.timestamp < 0 or (
        created_ms is not None and partition.timestamp >= created_ms
    )
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index,
        old_style_offsets=[0] if has_segment and partition.max_num_offsets > 0 else [],
    )


def _refused(partition: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)
