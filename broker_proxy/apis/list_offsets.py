"""ListOffsets, key 2, versions 0 to 9: answered by the leader of each partition.

There is no data plane: every partition is an empty log, so that its first and its last offset are
0 and no record has any timestamp. Checks and answers are those of a live Kafka 3.9.1 on empty
logs; the partitions of a client without rights come last.

Version notes:
    0: a list of offsets at segments' ends; a log's one segment counts from when it was made.
    1: one offset with its timestamp; a partition that comes twice is refused.
    2: an isolation level, which changes nothing on an empty log.
    4: the client may say which leader epoch it knows. 7 to 9: more timestamps with a meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

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
# Negative timestamps have a meaning, each from some version on.
_MEANT_FROM_VERSION: Final = {_LATEST: 0, _EARLIEST: 0, -3: 7, _EARLIEST_LOCAL: 8, -5: 9}
_CONSUMER: Final = -1
_DEBUGGING_CONSUMER: Final = -2  # may ask a follower
_ISOLATION_LEVELS: Final = (0, 1)
_ANY_EPOCH: Final = -1
LogName = tuple[str, int]  # topic and partition
# When logs were made, in milliseconds since 1970; those that are not there are left out.
LogTimes = Callable[[Sequence[LogName]], Awaitable[Mapping[LogName, int]]]


@dataclass(frozen=True, slots=True)
class ListOffsets:
    """See LocalApi."""

    broker_id: int
    cache: MetadataCache
    authorize_for: AuthorizeFor
    log_times: LogTimes
    api_key: ClassVar[int] = 2

    async def answer(self, request: ClientRequest, message: ListOffsetsRequest) -> Any:
        """Answer each partition on its own, in the order of the request."""
        version = request.header.api_version
        counts = Counter((t.name, p.partition_index) for t in message.topics for p in t.partitions)
        times = await self._times(message) if version == 0 else {}
        answered, denied = [], []
        for topic in message.topics:
            if not self.authorize_for(request)("DESCRIBE", "TOPIC", topic.name):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                refused = [_refused(asked, error) for asked in topic.partitions]
                denied.append(ListOffsetsTopicResponse(name=topic.name, partitions=refused))
                continue
            results = []
            for asked in topic.partitions:
                twice = version > 0 and counts[topic.name, asked.partition_index] > 1
                answer = self._answer(topic.name, asked, message, version, twice=twice)
                if version == 0 and answer.error_code == ErrorCode.NONE:
                    answer = _segments(asked, times.get((topic.name, asked.partition_index)))
                results.append(answer)
            answered.append(ListOffsetsTopicResponse(name=topic.name, partitions=results))
        return ListOffsetsResponse(topics=answered + denied)

    async def _times(self, message: ListOffsetsRequest) -> Mapping[LogName, int]:
        """Ask when the logs were made, of those that this broker knows and a time is given for."""
        asked = {
            (topic.name, partition.partition_index)
            for topic in message.topics
            for partition in topic.partitions
            if partition.timestamp >= 0 and self.cache.has_topic(topic.name)
        }
        return await self.log_times(sorted(asked)) if asked else {}

    def _answer(
        self,
        name: str,
        asked: ListOffsetsPartition,
        message: ListOffsetsRequest,
        version: int,
        *,
        twice: bool,
    ) -> ListOffsetsPartitionResponse:
        if twice:
            return _refused(asked, ErrorCode.INVALID_REQUEST)
        if asked.timestamp < 0 and version < _MEANT_FROM_VERSION.get(asked.timestamp, version + 1):
            return _refused(asked, ErrorCode.UNSUPPORTED_VERSION)
        replica_id = message.replica_id
        if replica_id == _CONSUMER and message.isolation_level not in _ISOLATION_LEVELS:
            return _refused(asked, ErrorCode.UNKNOWN_SERVER_ERROR)  # As Kafka.
        topic = self.cache.topics.get(name)
        known = topic.partitions.get(asked.partition_index) if topic is not None else None
        if known is None:
            return _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        error = self._refusal(known, asked.current_leader_epoch, replica_id)
        if error is not ErrorCode.NONE:
            return _refused(asked, error)
        result = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
        if asked.timestamp in (_LATEST, _EARLIEST, _EARLIEST_LOCAL):
            result.offset = 0
            # A follower has met no epoch in its empty log; where it ends it knows.
            if asked.timestamp == _LATEST or known.leader == self.broker_id:
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


def _segments(asked: ListOffsetsPartition, made_ms: int | None) -> ListOffsetsPartitionResponse:
    """Version 0: offsets of the segments that were changed no later than the timestamp."""
    if asked.max_num_offsets < 0:
        return _refused(asked, ErrorCode.UNKNOWN_SERVER_ERROR)  # As Kafka.
    # An empty log has one segment, which was changed when the log was made.
    is_there = asked.timestamp < 0 or (made_ms is not None and asked.timestamp >= made_ms)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        old_style_offsets=[0] if is_there and asked.max_num_offsets > 0 else [],
    )


def _refused(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
