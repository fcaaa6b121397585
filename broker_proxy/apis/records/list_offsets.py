"""ListOffsets, key 2, versions 0 to 9: answered by the leader of each partition.

Without a data plane every partition is an empty log: its start and end offset are 0, and it has no
records. With a data plane, consumers see offsets up to the high watermark, and followers see
offsets up to the log end. The checks and results for empty logs were recorded from Kafka 3.9.1.
In the response, topics that the client may not describe come last.

Version notes:
    0: a list of offsets: the first offset of each segment, and the log end. An empty log has one
       segment, whose time is the creation time of the log.
    1: one offset with its timestamp; repeated partitions are rejected.
    2: an isolation level. It has no effect here, because there are no transactions.
    4: the client's leader epoch.
    5: a new leader answers OFFSET_NOT_AVAILABLE instead of LEADER_NOT_AVAILABLE.
    7 to 9: more special timestamps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from bridgehead.slices import batched, sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from broker_proxy.metadata.cache import CachedPartition, MetadataCache

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
# Maps each special (negative) timestamp to the first version that supports it.
_SPECIAL_FROM_VERSION: Final = {_LATEST: 0, _EARLIEST: 0, -3: 7, _EARLIEST_LOCAL: 8, -5: 9}
_COUNTED: Final = 1_000  # partitions that are counted within a slice
_CONSUMER: Final = -1
_DEBUGGING_CONSUMER: Final = -2  # may query a follower
_ISOLATION_LEVELS: Final = (0, 1)
_ANY_EPOCH: Final = -1
_OFFSET_NOT_AVAILABLE_FROM: Final = 5
LogName = tuple[str, int]  # topic and partition
# Returns each log's creation time in milliseconds since 1970; logs that do not exist are omitted.
LogTimes = Callable[[Sequence[LogName]], Awaitable[Mapping[LogName, int]]]


class OffsetsOfLog(Protocol):
    """What ListOffsets reads from a replica's log."""

    @property
    def start_offset(self) -> int:
        """The log start offset."""

    @property
    def high_watermark(self) -> int:
        """The high watermark: consumers may read up to it."""

    @property
    def end_offset(self) -> int:
        """The log end offset: followers may read up to it."""

    def epoch_start(self) -> int:
        """Return the first offset of the current leader epoch."""

    def epoch_of_start(self) -> int:
        """Return the leader epoch at the start of the log; -1 if unknown."""

    def at_time(self, timestamp: int) -> tuple[int, int, int] | None:
        """Return timestamp, offset and leader epoch of the first record at or after a time."""

    def newest(self) -> tuple[int, int, int] | None:
        """Return the same values as `at_time`, for the first record with the largest timestamp."""

    def segment_times(self) -> Sequence[tuple[int, int]]:
        """Return (first offset, time of last change) per segment.

        If the last segment has records, (log end, now) follows.
        """


# Returns the log of a replica; None stands for an empty log. Raises ApiError if the replica is on
# another broker.
OffsetsOf = Callable[[str, int], OffsetsOfLog | None]


@dataclass(frozen=True, slots=True)
class ListOffsets:
    """Answers ListOffsets requests."""

    broker_id: int
    cache: MetadataCache
    authorize_for: AuthorizeFor
    log_times: LogTimes
    offsets_of: OffsetsOf = lambda _topic, _partition: None  # None: an empty log
    api_key: ClassVar[ApiKey] = ApiKey.LIST_OFFSETS

    async def handle(self, request: ClientRequest, message: ListOffsetsRequest) -> Any:
        """Return a result per partition, in the order of the request; denied topics come last."""
        version = request.header.api_version
        counts: Counter[LogName] = Counter()
        async for t in sliced(message.topics):
            async for part in sliced(batched(t.partitions, _COUNTED)):
                counts.update((t.name, p.partition_index) for p in part)
        times = await self._times(message) if version == 0 else {}
        responded, denied = [], []
        authorize = self.authorize_for(request)
        async for topic in sliced(message.topics):
            if not authorize("DESCRIBE", "TOPIC", topic.name):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                rejected = [
                    _rejected(partition, error) async for partition in sliced(topic.partitions)
                ]
                denied.append(ListOffsetsTopicResponse(name=topic.name, partitions=rejected))
                continue
            results = []
            async for partition in sliced(topic.partitions):
                twice = version > 0 and counts[topic.name, partition.partition_index] > 1
                response = self._respond(topic.name, partition, message, version, twice=twice)
                if version == 0 and response.error_code == ErrorCode.NONE:
                    log_name = topic.name, partition.partition_index
                    log = self.offsets_of(*log_name)
                    segments = log.segment_times() if log is not None else ()
                    if not segments and log_name in times:
                        segments = ((0, times[log_name]),)
                    response = _segments(partition, segments, log, message.replica_id)
                results.append(response)
            responded.append(ListOffsetsTopicResponse(name=topic.name, partitions=results))
        return ListOffsetsResponse(topics=responded + denied)

    async def _times(self, message: ListOffsetsRequest) -> Mapping[LogName, int]:
        """Return the creation times of the logs that the request queries by timestamp."""
        logs = {
            (topic.name, partition.partition_index)
            async for topic in sliced(message.topics)
            async for partition in sliced(topic.partitions)
            if partition.timestamp >= 0 and self.cache.has_topic(topic.name)
        }
        return await self.log_times(sorted(logs)) if logs else {}

    def _respond(
        self,
        name: str,
        partition: ListOffsetsPartition,
        message: ListOffsetsRequest,
        version: int,
        *,
        twice: bool,
    ) -> ListOffsetsPartitionResponse:
        if twice:
            return _rejected(partition, ErrorCode.INVALID_REQUEST)
        if partition.timestamp < 0 and version < _SPECIAL_FROM_VERSION.get(
            partition.timestamp, version + 1
        ):
            return _rejected(partition, ErrorCode.UNSUPPORTED_VERSION)
        replica_id = message.replica_id
        if replica_id == _CONSUMER and message.isolation_level not in _ISOLATION_LEVELS:
            return _rejected(partition, ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
        topic = self.cache.topics.get(name)
        cached = topic.partitions.get(partition.partition_index) if topic is not None else None
        if cached is None:
            return _rejected(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        error = self._rejection(cached, partition.current_leader_epoch, replica_id)
        if error is not ErrorCode.NONE:
            return _rejected(partition, error)
        try:
            log = self.offsets_of(name, partition.partition_index)
            if log is not None and version > 0:  # `_segments` has the result of version 0.
                return _of_log(partition, log, message, cached.leader_epoch)
        except ApiError as rejection:
            is_new = rejection.error == ErrorCode.OFFSET_NOT_AVAILABLE
            old_version = is_new and version < _OFFSET_NOT_AVAILABLE_FROM
            return _rejected(
                partition, ErrorCode.LEADER_NOT_AVAILABLE if old_version else rejection.error
            )
        result = ListOffsetsPartitionResponse(partition_index=partition.partition_index)
        if partition.timestamp in (_LATEST, _EARLIEST, _EARLIEST_LOCAL):
            result.offset = 0
            # A follower knows only the leader epoch at the end of its log.
            if partition.timestamp == _LATEST or cached.leader == self.broker_id:
                result.leader_epoch = cached.leader_epoch
        return result

    def _rejection(self, partition: CachedPartition, epoch: int, replica_id: int) -> ErrorCode:
        if self.broker_id not in partition.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if epoch != _ANY_EPOCH and epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > partition.leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if partition.leader != self.broker_id and replica_id != _DEBUGGING_CONSUMER:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE


def _of_log(
    partition: ListOffsetsPartition,
    log: OffsetsOfLog,
    message: ListOffsetsRequest,
    leader_epoch: int,
) -> ListOffsetsPartitionResponse:
    """Return the offset of a timestamp in a log, like Kafka's `Partition.fetchOffsetForTimestamp`.

    Raises:
        ApiError: the leader is new, and its high watermark has not reached the start of its epoch
            yet (OFFSET_NOT_AVAILABLE).
    """
    end = log.high_watermark if message.replica_id == _CONSUMER else log.end_offset
    result = ListOffsetsPartitionResponse(partition_index=partition.partition_index)
    if partition.timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        result.offset, result.leader_epoch = log.start_offset, log.epoch_of_start()
        return result
    if partition.timestamp == _LATEST_TIERED:
        return result
    lags = log.epoch_start() > end
    if partition.timestamp == _LATEST:
        if not lags:
            result.offset, result.leader_epoch = end, leader_epoch
            return result
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)
    latest = partition.timestamp == _MAX_TIMESTAMP
    position = log.newest() if latest else log.at_time(partition.timestamp)
    if position is not None and position[1] < end:
        result.timestamp, result.offset, result.leader_epoch = position
    elif lags:
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)
    return result


def _segments(
    partition: ListOffsetsPartition,
    segments: Sequence[tuple[int, int]],
    log: OffsetsOfLog | None,
    replica_id: int,
) -> ListOffsetsPartitionResponse:
    """Return version 0's result: the offsets of segments last changed at or before a time."""
    if partition.max_num_offsets < 0:
        return _rejected(partition, ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
    if partition.timestamp == _EARLIEST:
        offsets = [segments[0][0]] if segments else [0]
    elif partition.timestamp == _LATEST:
        offsets = [offset for offset, _ in segments] or [0]
    else:
        offsets = [offset for offset, changed in segments if changed <= partition.timestamp]
    offsets = sorted(offsets, reverse=True)[: partition.max_num_offsets]
    if log is not None and replica_id == _CONSUMER and offsets and offsets[0] > log.high_watermark:
        mark = log.high_watermark
        offsets = [mark, *(offset for offset in offsets if offset <= mark)]
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index, old_style_offsets=offsets
    )


def _rejected(partition: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=error)
