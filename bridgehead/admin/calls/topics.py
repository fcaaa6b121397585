"""Topics (KIP-117; KIP-4 §Topic Admin Schema; KIP-201 for dry runs of deletions)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Flag, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bridgehead.admin.errors import AdminError, InvalidCallError, KafkaError
from bridgehead.admin.requests import Attempt, Batch, BrokerResponse, Plan, Request, one, only
from bridgehead.admin.results import Node, Try
from bridgehead.kafka_wire.acl_codes import AclOperation, operations_of
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode

if TYPE_CHECKING:
    from bridgehead.kafka_wire.messages.create_topics import CreatableTopic
    from bridgehead.kafka_wire.messages.drafted.create_topics import CreateTopicsRequest
    from bridgehead.kafka_wire.messages.drafted.delete_topics import DeleteTopicsRequest
    from bridgehead.kafka_wire.messages.metadata import (
        MetadataResponse,
        MetadataResponsePartition,
        MetadataResponseTopic,
    )

_NO_ID: Final = bytes(16)
# The leader is dead, or it has no listener with the name of the listener that the client uses.
# Kafka's client ignores both errors.
_NO_LEADER: Final = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND)


class CreateTopicsFlags(Flag):
    """Flags of `create_topics` (KIP-117).

    With NONBLOCKING, the call does not wait until the topics are complete. With VALIDATE_ONLY,
    nothing is created.
    """

    NONBLOCKING = auto()  # return when the creation has begun; do not wait until it is complete
    VALIDATE_ONLY = auto()  # check everything, policies included, and create nothing


class DeleteTopicsFlags(Flag):
    """Flags of `delete_topics` (KIP-117).

    With NONBLOCKING, the call does not wait until the topics are gone. With VALIDATE_ONLY
    (KIP-201), nothing is deleted; this flag needs a `drafted` listener.
    """

    NONBLOCKING = auto()  # return when the deletion has begun
    VALIDATE_ONLY = auto()  # check everything, policies included, and delete nothing


class ListTopicsFlags(Flag):
    """Flags of `list_topics` (KIP-117).

    Topics that are not internal are always listed, so INCLUDE_EXTERNAL has no effect.
    """

    INCLUDE_INTERNAL = auto()  # also Kafka's own topics, such as __consumer_offsets
    INCLUDE_EXTERNAL = auto()  # topics that are not internal; has no effect


NO_CONFIGS: Final[Mapping[str, str | None]] = MappingProxyType({})
NO_CREATE_FLAGS: Final = CreateTopicsFlags(0)
NO_DELETE_FLAGS: Final = DeleteTopicsFlags(0)


class NewTopicWithReplication(NamedTuple):
    """A topic given by its number of partitions and its replication factor.

    -1 means the broker's default. The controller chooses the replicas.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = NO_CONFIGS


class NewTopicWithReplicaAssignments(NamedTuple):
    """A topic given by the broker ids of each partition; the first id is the preferred leader."""

    name: str
    replicas_assignments: Mapping[int, Sequence[int]]
    configs: Mapping[str, str | None] = NO_CONFIGS


NewTopic = NewTopicWithReplication | NewTopicWithReplicaAssignments


class TopicPartitionInfo(NamedTuple):
    """A partition. `leader` is None if there is none. The `Node` of a dead broker has no host."""

    partition: int
    leader: Node | None
    replicas: list[Node]
    isr: list[Node]
    offline: list[Node]


class TopicInfo(NamedTuple):
    """A topic. `topic_id` is None if the broker sends no topic ids."""

    name: str
    internal: bool
    partitions: dict[int, Try[TopicPartitionInfo]]
    topic_id: str | None = None
    authorized_operations: frozenset[AclOperation] | None = None


def create_topics(
    new_topics: Collection[NewTopic],
    flags: CreateTopicsFlags = NO_CREATE_FLAGS,
    *,
    retry_on_quota_violation: bool = True,
) -> Plan[dict[str, AdminError | None]]:
    """Create topics; return the error of each topic, None for success (KIP-117 createTopics).

    A success means that the controller has the topic. Other brokers may learn of the topic later.
    A POLICY_VIOLATION error has the policy's text. A topic with REQUEST_TIMED_OUT may still be
    created later. After the throttle time, the client resends a topic with
    THROTTLING_QUOTA_EXCEEDED (KIP-599), unless `retry_on_quota_violation` is false.

    Raises:
        KafkaTimeoutError: no controller was found in time; nothing was sent.
        UnsupportedVersionError: the broker is too old for VALIDATE_ONLY, or for -1 as the number of
            partitions or replicas.
    """
    from bridgehead.kafka_wire.messages.drafted.create_topics import CreateTopicsRequest

    topics = _by_name(new_topics)
    dry = CreateTopicsFlags.VALIDATE_ONLY in flags
    blocking = CreateTopicsFlags.NONBLOCKING not in flags

    def request(left: Mapping[str, NewTopic]) -> Request:
        def build(attempt: Attempt) -> CreateTopicsRequest:
            timeout_ms = attempt.timeout_ms if blocking else 0
            wanted = [_creatable(topic) for topic in left.values()]
            return CreateTopicsRequest(wanted, timeout_ms, dry)

        least, because = int(dry), "VALIDATE_ONLY" * dry
        if any(map(_needs_defaults, left.values())):
            least, because = 4, "a default of the broker"
        return Request(
            ApiKey.CREATE_TOPICS,
            build,
            min_version=least,
            because=because,
            unread=("configs",),  # versions 5 and later have about 36 configs for each topic
        )

    def results(response: BrokerResponse) -> Iterator[tuple[str, Try[None]]]:
        for topic in response.message.topics:
            yield topic.name, _started(response, topic, blocking=blocking)

    batch = Batch(topics, request, results, retry_on_quota_violation=retry_on_quota_violation)
    return (yield from batch.errors())


def create_topic(new_topic: NewTopic, flags: CreateTopicsFlags = NO_CREATE_FLAGS) -> Plan[None]:
    """Create one topic (KIP-117 createTopic). Raises the error that `create_topics` returns."""
    only((yield from create_topics([new_topic], flags)))


def delete_topics(
    topics: Collection[str],
    flags: DeleteTopicsFlags = NO_DELETE_FLAGS,
    *,
    retry_on_quota_violation: bool = True,
) -> Plan[dict[str, AdminError | None]]:
    """Delete topics; return the error of each topic, None for success (KIP-117 deleteTopics).

    POLICY_VIOLATION means that a policy rejected the deletion (KIP-201); the error has the policy's
    text. After the throttle time, the client resends a topic with THROTTLING_QUOTA_EXCEEDED
    (KIP-599), unless `retry_on_quota_violation` is false.

    Raises:
        KafkaTimeoutError: no controller was found in time; nothing was sent.
        UnsupportedVersionError: VALIDATE_ONLY is set and the listener is not `drafted`.
    """
    from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicState
    from bridgehead.kafka_wire.messages.drafted.delete_topics import DeleteTopicsRequest

    dry = DeleteTopicsFlags.VALIDATE_ONLY in flags
    blocking = DeleteTopicsFlags.NONBLOCKING not in flags

    def request(left: Mapping[str, str]) -> Request:
        def build(attempt: Attempt) -> DeleteTopicsRequest:
            timeout_ms = attempt.timeout_ms if blocking else 0
            states = [DeleteTopicState(name) for name in left]
            return DeleteTopicsRequest(states, list(left), timeout_ms, dry)

        if not dry:
            return Request(ApiKey.DELETE_TOPICS, build)
        return Request(ApiKey.DELETE_TOPICS, build, None, 2, 2, "drafted", "VALIDATE_ONLY")

    def results(response: BrokerResponse) -> Iterator[tuple[str, Try[None]]]:
        for row in response.message.responses:
            yield row.name or "", _started(response, row, blocking=blocking)

    names = {name: name for name in topics}
    batch = Batch(names, request, results, retry_on_quota_violation=retry_on_quota_violation)
    return (yield from batch.errors())


def delete_topic(name: str, flags: DeleteTopicsFlags = NO_DELETE_FLAGS) -> Plan[None]:
    """Delete one topic (KIP-117 deleteTopic). Raises the error that `delete_topics` returns."""
    only((yield from delete_topics([name], flags)))


def delete_topics_by_id(topic_ids: Collection[str]) -> Plan[dict[str, AdminError | None]]:
    """Delete topics by their ids (22 characters each); return the error of each id (KIP-516)."""
    from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicState
    from bridgehead.kafka_wire.messages.drafted.delete_topics import DeleteTopicsRequest

    ids = {text: topic_id_bytes(text) for text in topic_ids}
    texts = {value: text for text, value in ids.items()}

    def request(left: Mapping[str, bytes]) -> Request:
        states = [DeleteTopicState(None, data) for data in left.values()]
        return Request(
            ApiKey.DELETE_TOPICS,
            lambda attempt: DeleteTopicsRequest(states, [], attempt.timeout_ms),
            min_version=6,
            because="a topic id",
        )

    def results(response: BrokerResponse) -> Iterator[tuple[str, Try[None]]]:
        for row in response.message.responses:
            yield texts.get(row.topic_id, ""), _started(response, row, blocking=True)

    return (yield from Batch(ids, request, results).errors())


def list_topics(
    flags: ListTopicsFlags = ListTopicsFlags.INCLUDE_EXTERNAL,
) -> Plan[dict[str, Try[TopicInfo]]]:
    """Return the topics that the principal may describe (KIP-117 listTopics).

    Internal topics are returned only with INCLUDE_INTERNAL. If a topic cannot be described, its
    `Try` has the error.
    """
    message = yield from metadata(None)
    wanted = ListTopicsFlags.INCLUDE_INTERNAL in flags
    topics = topics_of(message, message.message)
    return {
        name: topic
        for name, topic in topics.items()
        if wanted or topic.is_failure or not topic.get().internal
    }


def describe_topics(
    names: Collection[str], include_authorized_operations: bool = False
) -> Plan[dict[str, Try[TopicInfo]]]:
    """Return topics by name (KIP-4 describeTopics). A missing topic is not created."""
    response = yield from metadata(names, include_authorized_operations)
    topics = topics_of(response, response.message)
    missing = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return {name: topics.get(name, Try.new_error(missing)) for name in names}


def metadata(names: Collection[str] | None, with_operations: bool = False) -> Plan[BrokerResponse]:
    """Return the metadata of topics; None means all topics."""
    from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic

    request = MetadataRequest(
        None if names is None else [MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=with_operations,
    )
    # Below version 4 a request creates a missing topic.
    least = 1 if names is None else 4
    because = "" if names is None else "a description that creates no topic"
    return (
        yield from one(
            Request(ApiKey.METADATA, lambda _: request, min_version=least, because=because)
        )
    )


def topics_of(response: BrokerResponse, message: MetadataResponse) -> dict[str, Try[TopicInfo]]:
    """Return the topics of a Metadata response by name."""
    nodes = {
        broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in message.brokers
    }

    def info(topic: MetadataResponseTopic) -> TopicInfo:
        return TopicInfo(
            topic.name or "",
            topic.is_internal,
            {
                partition.partition_index: _partition(response, partition, nodes)
                for partition in sorted(
                    topic.partitions, key=lambda partition: partition.partition_index
                )
            },
            topic_id_text(topic.topic_id),
            operations_of(topic.topic_authorized_operations),
        )

    return {
        topic.name or "": response.result(topic, info)
        for topic in sorted(message.topics, key=lambda topic: topic.name or "")
    }


def topic_id_text(value: bytes) -> str | None:
    """Return Kafka's text of a topic id; None for the zero id, which means no id."""
    if value == _NO_ID:
        return None
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def topic_id_bytes(text: str) -> bytes:
    """Return the bytes of a topic id. Raises InvalidCallError."""
    try:
        value = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError):
        value = b""
    # The decoder ignores invalid characters and unused bits, so the value is encoded again: a valid
    # text does not change.
    if len(value) != len(_NO_ID) or base64.urlsafe_b64encode(value).decode() != text + "==":
        raise InvalidCallError(f"{text!r} is not a topic id: a topic id has 22 characters.")
    return value


def _by_name(new_topics: Collection[NewTopic]) -> dict[str, NewTopic]:
    topics = {topic.name: topic for topic in new_topics}
    if len(topics) < len(new_topics):
        raise InvalidCallError("A topic is named twice: give each name once.")
    return topics


def _creatable(topic: NewTopic) -> CreatableTopic:
    from bridgehead.kafka_wire.messages.create_topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
    )

    configs = [CreatableTopicConfig(key, value) for key, value in topic.configs.items()]
    if isinstance(topic, NewTopicWithReplication):
        return CreatableTopic(
            topic.name, topic.num_partitions, topic.replication_factor, [], configs
        )
    assignments = [
        CreatableReplicaAssignment(partition, list(brokers))
        for partition, brokers in topic.replicas_assignments.items()
    ]
    return CreatableTopic(topic.name, -1, -1, assignments, configs)


def _needs_defaults(topic: NewTopic) -> bool:
    """Return whether the broker must use its default for a count, which needs v4 (KIP-464)."""
    return isinstance(topic, NewTopicWithReplication) and -1 in (
        topic.num_partitions,
        topic.replication_factor,
    )


def _started(response: BrokerResponse, element: Any, *, blocking: bool) -> Try[None]:
    """Return an element's result. With a timeout of 0, REQUEST_TIMED_OUT is a success.

    It then means that the write is valid and has begun (KIP-4 §Create Topics Request 6).
    """
    if element.error_code == ErrorCode.REQUEST_TIMED_OUT and not blocking:
        return Try.new_value(None)
    return response.done(element)


def _partition(
    response: BrokerResponse, partition: MetadataResponsePartition, nodes: Mapping[int, Node]
) -> Try[TopicPartitionInfo]:
    def brokers(ids: Sequence[int]) -> list[Node]:
        return [nodes.get(node_id, Node(node_id, "", -1)) for node_id in ids]

    info = TopicPartitionInfo(
        partition.partition_index,
        nodes.get(partition.leader_id),
        brokers(partition.replica_nodes),
        brokers(partition.isr_nodes),
        brokers(partition.offline_replicas),
    )
    if partition.error_code in _NO_LEADER:
        return Try.new_value(info)  # `leader` is None; the rest is known
    return response.result(partition, lambda _: info)
