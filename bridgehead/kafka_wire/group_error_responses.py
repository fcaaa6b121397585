"""What `error_responses` says of the APIs about groups, transactions, coordinators and replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.java_order import (
    NAMES_MAX,
    hash_map_order,
    java_hash,
    topic_partition_hash,
)
from bridgehead.kafka_wire.messages import (
    alter_replica_log_dirs,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    describe_producers,
    describe_transactions,
    find_coordinator,
    list_groups,
    list_transactions,
    offset_delete,
    offset_fetch,
)


def _find_coordinator(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    nobody: dict[str, Any] = {
        "error_code": error,
        "error_message": error.default_text,
        "node_id": -1,
        "port": -1,
    }
    if version < 4:
        return find_coordinator.FindCoordinatorResponse(**nobody)
    return find_coordinator.FindCoordinatorResponse(
        coordinators=[
            find_coordinator.Coordinator(key=key, **nobody) for key in request.coordinator_keys
        ]
    )


def _describe_groups(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return describe_groups.DescribeGroupsResponse(
        groups=[
            describe_groups.DescribedGroup(error_code=error, group_id=group_id)
            for group_id in request.groups
        ]
    )


def _list_groups(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return list_groups.ListGroupsResponse(error_code=error)


def _offset_fetch(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    if version >= 8:
        distinct = list(dict.fromkeys(group.group_id for group in request.groups))
        if len(distinct) <= NAMES_MAX:
            codes = {group_id: java_hash(group_id) for group_id in distinct}
            distinct = hash_map_order(codes, capacity=len(request.groups))
        return offset_fetch.OffsetFetchResponse(
            groups=[
                offset_fetch.OffsetFetchResponseGroup(group_id=group_id, error_code=error)
                for group_id in distinct
            ]
        )
    if version >= 2:
        return offset_fetch.OffsetFetchResponse(error_code=error)
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics or ():
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return offset_fetch.OffsetFetchResponse(
        topics=[
            offset_fetch.OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    offset_fetch.OffsetFetchResponsePartition(
                        partition_index=partition, committed_offset=-1, error_code=error
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in _by_hash(asked)
        ]
    )


def _by_hash(asked: Mapping[str, Iterable[int]]) -> Iterable[tuple[str, Iterable[int]]]:
    """Return topics and partitions as Kafka's two hash tables give them; very many as they came.

    The first has each partition with its topic, the second what is told of each topic.
    """
    if len(asked) > NAMES_MAX:
        return [(name, partitions) for name, partitions in asked.items() if partitions]
    hashes = {name: java_hash(name) for name in asked}
    codes = {
        (name, partition): topic_partition_hash(hashes[name], partition)
        for name, partitions in asked.items()
        for partition in partitions
    }
    told: dict[str, list[int]] = {}
    for name, partition in hash_map_order(codes):
        told.setdefault(name, []).append(partition)
    return [(name, told[name]) for name in hash_map_order({name: hashes[name] for name in told})]


def _offset_delete(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return offset_delete.OffsetDeleteResponse(error_code=error)


def _delete_groups(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return delete_groups.DeleteGroupsResponse(
        results=[
            delete_groups.DeletableGroupResult(group_id=group_id, error_code=error)
            for group_id in request.groups_names
        ]
    )


def _consumer_group_heartbeat(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    # Its request class says the code alone.
    return consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(error_code=error)


def _consumer_group_describe(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    return consumer_group_describe.ConsumerGroupDescribeResponse(
        groups=[
            consumer_group_describe.DescribedGroup(error_code=error, group_id=group_id)
            for group_id in request.group_ids
        ]
    )


def _describe_producers(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return describe_producers.DescribeProducersResponse(
        topics=[
            describe_producers.TopicResponse(
                name=topic.name,
                partitions=[
                    describe_producers.PartitionResponse(
                        partition_index=partition, error_code=error, error_message=None
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe_transactions(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    return describe_transactions.DescribeTransactionsResponse(
        transaction_states=[
            describe_transactions.TransactionState(error_code=error, transactional_id=each)
            for each in request.transactional_ids
        ]
    )


def _list_transactions(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return list_transactions.ListTransactionsResponse(error_code=error)


def _alter_replica_log_dirs(
    request: Any, version: int, error: ErrorCode, message: str | None
) -> Any:
    return alter_replica_log_dirs.AlterReplicaLogDirsResponse(
        results=[
            alter_replica_log_dirs.AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    alter_replica_log_dirs.AlterReplicaLogDirPartitionResult(
                        partition_index=partition, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for directory in request.dirs  # As it stands there: nothing is merged.
            for topic in directory.topics
        ]
    )


GROUP_ERROR_RESPONSES: Final[Mapping[int, Callable[[Any, int, ErrorCode, str | None], Any]]] = {
    9: _offset_fetch,
    10: _find_coordinator,
    15: _describe_groups,
    16: _list_groups,
    34: _alter_replica_log_dirs,
    42: _delete_groups,
    47: _offset_delete,
    61: _describe_producers,
    65: _describe_transactions,
    66: _list_transactions,
    68: _consumer_group_heartbeat,
    69: _consumer_group_describe,
}
