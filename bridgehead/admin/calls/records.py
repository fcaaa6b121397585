"""Records and logs: deletion (KIP-107), offsets (KIP-396), directories (KIP-113)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from bridgehead.admin.calls.cluster import live_nodes
from bridgehead.admin.calls.topics import metadata
from bridgehead.admin.errors import AdminError, BrokerGoneError, KafkaError, KafkaTimeoutError
from bridgehead.admin.requests import Attempt, BrokerResponse, Plan, Request, Wait, error_code
from bridgehead.admin.results import TopicPartition, Try
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode

T = TypeVar("T")

LATEST: Final = -1  # timestamps for `list_offsets`
EARLIEST: Final = -2
_PAUSE_MS: Final = 100
# After these errors the request for a partition is sent again. Some are temporary, others mean that
# the leader has changed.
_REPEATED: Final = (
    *(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE),
    *(ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE),
)


class OffsetInfo(NamedTuple):
    """An offset of a partition. `timestamp` and `leader_epoch` are -1 if the broker sends none."""

    offset: int
    timestamp: int
    leader_epoch: int


class TopicPartitionReplica(NamedTuple):
    """A replica of a partition, on one broker."""

    topic: str
    partition: int
    broker: int


class ReplicaInfo(NamedTuple):
    """A replica in a directory: its size in bytes, and its lag as a number of offsets.

    `is_future` is true for a replica that is being moved into this directory. Its lag is relative
    to the replica that it will replace. Any other replica's lag is relative to the high watermark.
    """

    size: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    """A log directory. `total_bytes` and `usable_bytes` are -1 if the broker does not send them."""

    replicas: dict[TopicPartition, ReplicaInfo]
    total_bytes: int
    usable_bytes: int


def delete_records(
    offsets: Mapping[TopicPartition, int], validate_only: bool = False
) -> Plan[dict[TopicPartition, Try[int]]]:
    """Delete the records of each partition before an offset; return the new low watermarks.

    An offset of -1 deletes all records. POLICY_VIOLATION means that a policy rejected the deletion
    (KIP-201). With `validate_only` nothing is deleted; this needs a listener with the dialect
    `drafted`.
    """
    from bridgehead.kafka_wire.messages.delete_records import (
        DeleteRecordsPartition,
        DeleteRecordsTopic,
    )
    from bridgehead.kafka_wire.messages.drafted.delete_records import DeleteRecordsRequest

    def request(part: Mapping[TopicPartition, int], broker: int) -> Request:
        def build(attempt: Attempt) -> DeleteRecordsRequest:
            topics = [
                DeleteRecordsTopic(
                    partition.topic, [DeleteRecordsPartition(partition.partition, offset)]
                )
                for partition, offset in part.items()
            ]
            return DeleteRecordsRequest(topics, attempt.timeout_ms, validate_only)

        if not validate_only:
            return Request(ApiKey.DELETE_RECORDS, build, broker)
        return Request(ApiKey.DELETE_RECORDS, build, broker, 1, 1, "drafted", "a dry run")

    return (yield from _at_leaders(offsets, request, lambda offset: int(offset.low_watermark)))


def list_offsets(
    timestamps: Mapping[TopicPartition, int],
) -> Plan[dict[TopicPartition, Try[OffsetInfo]]]:
    """Return the offset of each partition for LATEST, EARLIEST or a timestamp (KIP-396).

    A timestamp is in milliseconds since 1970. It selects the first record that has this timestamp
    or a later one. The offset is -1 if there is no such record.
    """
    from bridgehead.kafka_wire.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    def request(part: Mapping[TopicPartition, int], broker: int) -> Request:
        message = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    partition.topic,
                    [ListOffsetsPartition(partition.partition, timestamp=timestamp)],
                )
                for partition, timestamp in part.items()
            ],
        )
        return Request(ApiKey.LIST_OFFSETS, lambda _: message, broker, min_version=1)

    def info(response: Any) -> OffsetInfo:
        return OffsetInfo(response.offset, response.timestamp, response.leader_epoch)

    return (yield from _at_leaders(timestamps, request, info))


def describe_log_dirs(
    brokers: Collection[int] | None = None,
) -> Plan[dict[int, Try[dict[str, Try[LogDirDescription]]]]]:
    """Return the log directories of brokers by path; None means all live brokers (KIP-113)."""
    from bridgehead.kafka_wire.messages.describe_log_dirs import DescribeLogDirsRequest

    if brokers is None:
        brokers = [node.id for node in (yield from live_nodes())]
    message = DescribeLogDirsRequest(None)
    outcomes = yield tuple(
        Request(ApiKey.DESCRIBE_LOG_DIRS, lambda _: message, broker) for broker in brokers
    )
    return {
        broker: _directories(outcome) for broker, outcome in zip(brokers, outcomes, strict=True)
    }


def alter_replica_log_dirs(
    replicas: Mapping[TopicPartitionReplica, str],
) -> Plan[dict[TopicPartitionReplica, AdminError | None]]:
    """Move replicas to other directories of their brokers (KIP-113).

    Return the error of each replica.
    """
    from bridgehead.kafka_wire.messages.alter_replica_log_dirs import (
        AlterReplicaLogDir,
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirTopic,
    )

    def request(broker: int) -> Request:
        message = AlterReplicaLogDirsRequest(
            [
                AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(moved.topic, [moved.partition])])
                for moved, path in replicas.items()
                if moved.broker == broker
            ]
        )
        return Request(ApiKey.ALTER_REPLICA_LOG_DIRS, lambda _: message, broker)

    brokers = sorted({moved.broker for moved in replicas})
    outcomes = yield tuple(map(request, brokers))
    errors: dict[TopicPartitionReplica, AdminError | None] = {}
    for broker, outcome in zip(brokers, outcomes, strict=True):
        if outcome.error is not None:
            errors |= {moved: outcome.error for moved in replicas if moved.broker == broker}
            continue
        response = outcome.get()
        for topic in response.message.results:
            for partition in topic.partitions:
                replica = TopicPartitionReplica(topic.topic_name, partition.partition_index, broker)
                errors[replica] = response.error(partition.error_code)
    return {moved: errors[moved] for moved in replicas if moved in errors}


def _at_leaders(
    values: Mapping[TopicPartition, int],
    request: Callable[[Mapping[TopicPartition, int], int], Request],
    result: Callable[[Any], T],
) -> Plan[dict[TopicPartition, Try[T]]]:
    """Send a request to the leader of each partition; if a leader changes, ask the new one.

    If a later fetch of metadata fails, each partition that has not succeeded yet gets the error of
    its last response.

    Raises:
        AdminError: the first fetch of metadata failed.
    """
    done: dict[TopicPartition, Try[T]] = {}
    left = dict(values)
    resent: set[TopicPartition] = set()  # those that a broker may have executed before it died
    while left:
        try:
            leaders, failed = yield from _leaders({partition.topic for partition in left})
        except AdminError:
            if not done:
                raise
            break
        parts: dict[int, dict[TopicPartition, int]] = {}
        for partition, value in left.items():
            missing = failed.get(partition.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            leader = leaders.get(partition, Try.new_error(_no(missing)))
            if leader.is_success:
                parts.setdefault(leader.get(), {})[partition] = value
            elif leader.error is not None:
                done[partition] = Try.new_error(leader.error)
        outcomes = yield tuple(
            request(part, broker)._replace(resent=not resent.isdisjoint(part))
            for broker, part in parts.items()
        )
        for part, outcome in zip(parts.values(), outcomes, strict=True):
            done |= _partitions(part, outcome, result)
            if isinstance(outcome.error, BrokerGoneError) and outcome.error.sent:
                resent.update(part)
        left = {
            partition: left[partition]
            for partition in left
            if _is_repeated(done[partition], partition in leaders)
        }
        if left:
            try:
                yield Wait(_PAUSE_MS)
            except KafkaTimeoutError:
                break
    return {partition: done[partition] for partition in values}


def _leaders(
    topics: Iterable[str],
) -> Plan[tuple[dict[TopicPartition, Try[int]], dict[str, ErrorCode]]]:
    """Return the leader of each partition, and the errors of topics."""
    response = yield from metadata(sorted(topics))
    leaders: dict[TopicPartition, Try[int]] = {}
    failed: dict[str, ErrorCode] = {}
    for topic in response.message.topics:
        if topic.error_code:
            failed[topic.name] = error_code(topic.error_code)
        for partition in topic.partitions:
            leaders[TopicPartition(topic.name, partition.partition_index)] = (
                Try.new_value(partition.leader_id)
                if partition.leader_id >= 0
                else Try.new_error(_no(ErrorCode.LEADER_NOT_AVAILABLE))
            )
    return leaders, failed


def _partitions(
    part: Mapping[TopicPartition, int], outcome: Try[BrokerResponse], result: Callable[[Any], T]
) -> dict[TopicPartition, Try[T]]:
    if outcome.error is not None:
        return {asked: Try.new_error(outcome.error) for asked in part}
    response = outcome.get()
    responses: dict[TopicPartition, Try[T]] = {}
    for topic in response.message.topics:
        for row in topic.partitions:
            partition = TopicPartition(topic.name, row.partition_index)
            responses[partition] = response.result(row, result)
    missing = _no(ErrorCode.UNKNOWN_SERVER_ERROR)
    return {asked: responses.get(asked, Try.new_error(missing)) for asked in part}


def _is_repeated(result: Try[Any], is_in_metadata: bool) -> bool:
    """Return whether to resend: the error is temporary, or the leader has changed or is gone.

    If the metadata has a partition that its leader does not know, one of the two is out of date.
    """
    error = result.error
    if isinstance(error, KafkaError):
        is_out_of_date = is_in_metadata and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return is_out_of_date or error.code in _REPEATED
    return isinstance(error, BrokerGoneError)


def _no(code: ErrorCode) -> KafkaError:
    return KafkaError(error_code(code))


def _directories(outcome: Try[BrokerResponse]) -> Try[dict[str, Try[LogDirDescription]]]:
    if outcome.error is not None:
        return Try.new_error(outcome.error)
    response = outcome.get()
    error = response.error(response.message.error_code)
    if error is not None:
        return Try.new_error(error)
    results = response.message.results
    return Try.new_value(
        {result.log_dir: response.result(result, _directory) for result in results}
    )


def _directory(result: Any) -> LogDirDescription:
    return LogDirDescription(
        {
            TopicPartition(topic.name, partition.partition_index): ReplicaInfo(
                partition.partition_size, partition.offset_lag, partition.is_future_key
            )
            for topic in result.topics
            for partition in topic.partitions
        },
        result.total_bytes,
        result.usable_bytes,
    )
