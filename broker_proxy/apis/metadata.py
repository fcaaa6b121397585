"""Metadata, key 3, versions 0 to 12: which topics there are and who leads them (kafka-semantics 3.16).

Behaviour: answered from this broker's cache, never from the controller; a topic that is missing
is answered 3, or 17 where its name is illegal.

Version notes:
    0: an empty list asks for all topics; from 1 on null does, and an empty list for none.
    8 to 10: operations on the cluster may be asked for. 8 and later: on topics.
    10, 11: have a topic id that must not be used. 12: topics may be named by id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from bridgehead.kafka_wire.messages.update_metadata import UpdateMetadataPartitionState
from broker_proxy.apis.base import ClientRequest
from broker_proxy.apis.cluster_view import ClusterView
from broker_proxy.metadata_cache import CachedTopic
from cluster_model.scala_order import partition_order, set_order
from cluster_model.topic_names import INTERNAL_TOPICS, check_topic_name

NO_ID: Final = bytes(16)
NO_LEADER: Final = -1
# Everything is allowed until there is an authorizer: the full sets of kafka-semantics 3.16.
TOPIC_OPERATIONS: Final = 0xDF8
CLUSTER_OPERATIONS: Final = 8096
_BY_ID_FROM: Final = 12


class Metadata:
    """See the module."""

    api_key: ClassVar[int] = 3

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    async def answer(self, request: ClientRequest, message: MetadataRequest) -> Any:
        """Return the response, or its bytes where the same was asked before."""
        version = request.header.api_version
        listener = request.connection.listener_name
        self._check(message, version)
        if self._view.is_random(listener):
            return self._build(message, version, listener)
        key = self._key(message, version, listener)
        if key is None:
            return self._build(message, version, listener)
        dialect = request.connection.dialect
        return self._view.cache.cached_answer(
            key,
            lambda: encode_response(
                3, version, self._build(message, version, listener), dialect
            ),
        )

    def _check(self, message: MetadataRequest, version: int) -> None:
        for topic in message.topics or ():
            if version < _BY_ID_FROM and (topic.topic_id != NO_ID or topic.name is None):
                raise ApiError(ErrorCode.INVALID_REQUEST)
            if topic.name is None and topic.topic_id == NO_ID:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka's NullPointerException.

    def _key(self, message: MetadataRequest, version: int, listener: str) -> Any:
        """What decides the answer; None where it is not worth keeping."""
        asked: Any = None
        if message.topics is not None:
            if len(message.topics) > 1:
                return None
            asked = tuple((t.name, t.topic_id) for t in message.topics)
        return (
            version,
            listener,
            asked,
            message.include_cluster_authorized_operations,
            message.include_topic_authorized_operations,
        )

    def _build(self, message: MetadataRequest, version: int, listener: str) -> MetadataResponse:
        cache = self._view.cache
        everything = message.topics is None or (version == 0 and not message.topics)
        if everything:
            topics = [self._topic(t, version, listener) for t in cache.topics.values()]
        else:
            topics = self._asked(message, version, listener)
        if message.include_topic_authorized_operations:
            for topic in topics:
                if topic.error_code == ErrorCode.NONE:
                    topic.topic_authorized_operations = TOPIC_OPERATIONS
        response = MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=broker.broker_id, host=at.host, port=at.port, rack=broker.rack
                )
                for broker, at in self._view.brokers(listener)
            ],
            cluster_id=self._view.cluster_id,
            controller_id=self._view.controller_id(listener),
            topics=topics,
        )
        if message.include_cluster_authorized_operations:
            response.cluster_authorized_operations = CLUSTER_OPERATIONS
        return response

    def _asked(
        self, message: MetadataRequest, version: int, listener: str
    ) -> list[MetadataResponseTopic]:
        """Topics found first, then the errors; a topic asked for twice is answered once."""
        cache = self._view.cache
        found: dict[str, MetadataResponseTopic] = {}
        missing: dict[tuple[str | None, bytes], MetadataResponseTopic] = {}
        for asked in message.topics or ():
            name = asked.name
            if asked.topic_id != NO_ID:
                # An id decides, whatever name stands beside it.
                name = cache.topic_name(asked.topic_id)
            if name is not None and name in cache.topics:
                found[name] = self._topic(cache.topics[name], version, listener)
            elif name is None:
                missing[None, asked.topic_id] = MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id
                )
            else:
                missing[name, NO_ID] = MetadataResponseTopic(
                    error_code=_why_missing(name), name=name, is_internal=name in INTERNAL_TOPICS
                )
        return [*found.values(), *missing.values()]

    def _topic(self, topic: CachedTopic, version: int, listener: str) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[
                self._partition(topic.partitions[number], version, listener)
                for number in _order(topic)
            ],
        )

    def _partition(
        self, state: UpdateMetadataPartitionState, version: int, listener: str
    ) -> MetadataResponsePartition:
        brokers = self._view.cache.brokers
        error, leader = ErrorCode.NONE, state.leader
        replicas, isr = state.replicas, state.isr
        alive = brokers.get(leader)
        if alive is None:
            error, leader = ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
        elif listener not in alive.endpoints:
            missing = ErrorCode.LISTENER_NOT_FOUND
            error = missing if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_LEADER
        elif version == 0:
            replicas = [broker for broker in replicas if broker in brokers]
            isr = [broker for broker in isr if broker in brokers]
            if len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
                error = ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=error,
            partition_index=state.partition_index,
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=state.offline_replicas,
        )


def _order(topic: CachedTopic) -> Iterable[int]:
    """Partition numbers as Kafka lists them; one without a leader yet may be missing."""
    numbers = topic.partitions
    if max(numbers) + 1 == len(numbers):
        return partition_order(len(numbers))
    return sorted(numbers)


def _why_missing(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except ApiError as illegal:
        return illegal.error
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
