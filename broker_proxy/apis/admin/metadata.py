"""Metadata, key 3, versions 0 to 12: brokers, topics and their leaders (docs/kafka/metadata.md).

Answered from this broker's cache, never by the controller. A missing topic gets
UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION if its name is illegal. If both the broker's
configuration and the request allow it, `auto_topics` creates the topic.

Version notes:
    0: an empty list requests all topics. From 1 on: null requests all, an empty list requests none.
    8 to 10: authorized operations on the cluster. From 8 on: authorized operations on topics.
    10, 11: requests have a field for topic ids, but must not use it. From 12 on: requests can name
    topics by id.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from bridgehead.slices import in_thread, sliced
from broker_proxy.apis.admin.authorized_operations import cluster_operations, topic_operations
from broker_proxy.apis.admin.cluster_view import ClusterView
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from broker_proxy.metadata.cache import CachedPartition, CachedTopic
from cluster_model.acls.authorization import (
    CLUSTER_NAME,
    Authorize,
    allow_everything,
    cached_authorize,
)
from cluster_model.scala_order import partition_order, set_order
from cluster_model.topic_names import INTERNAL_TOPICS, check_topic_name

NO_ID: Final = bytes(16)
NO_LEADER: Final = -1
_BY_ID_FROM: Final = 12
_SMALL_TOPICS: Final = 200  # A response with so many topics is encoded within a slice.
# Authorized operations are omitted for these errors only, as in Kafka.
_HIDDEN: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID)

# Creates missing topics with legal names; returns an error code per name
# (docs/kafka/topics.md#automatic-creation).
AutoCreate = Callable[[ClientRequest, Sequence[str]], Awaitable[Mapping[str, ErrorCode]]]


class Metadata:
    """Answers Metadata requests."""

    api_key: ClassVar[ApiKey] = ApiKey.METADATA

    def __init__(
        self,
        view: ClusterView,
        *,
        authorize_for: AuthorizeFor | None = None,
        auto_create: AutoCreate | None = None,
    ) -> None:
        """Without `authorize_for` every client may see everything, and responses can be cached."""
        self._view = view
        self._authorize_for = authorize_for
        self._auto_create = auto_create

    async def handle(self, request: ClientRequest, message: MetadataRequest) -> Any:
        """Return the response message, or its cached bytes."""
        version = request.header.api_version
        await self._check(message, version)
        authorize: Authorize = allow_everything
        if self._authorize_for is not None:
            authorize = cached_authorize(self._authorize_for(request))
        created: Mapping[str, ErrorCode] = {}
        names = await _requested_names(message)
        if self._auto_create is not None and message.allow_auto_topic_creation:
            created = await self._create_missing(self._auto_create, request, names, authorize)
        key = self._key(request, message)
        if key is None or created:
            return await self._build(request, message, names, created, authorize)

        async def encode() -> bytes:
            response = await self._build(request, message, names, {}, authorize)
            large = len(response.topics) > _SMALL_TOPICS
            dialect = request.client.dialect
            return await in_thread(large, encode_response, 3, version, response, dialect)

        return await self._view.cache.cached_response(key, encode)

    async def _check(self, message: MetadataRequest, version: int) -> None:
        async for topic in sliced(message.topics or ()):
            if version < _BY_ID_FROM and (topic.topic_id != NO_ID or topic.name is None):
                raise ApiError(ErrorCode.INVALID_REQUEST)
            if topic.name is None and topic.topic_id == NO_ID:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a NullPointerException in Kafka

    async def _create_missing(
        self,
        auto_create: AutoCreate,
        request: ClientRequest,
        names: Iterable[str],
        authorize: Authorize,
    ) -> Mapping[str, ErrorCode]:
        """Create the missing topics that the client may create; return an error code per name."""
        missing = [
            name
            async for name in sliced(names)
            if name not in self._view.cache.topics
            and _missing_error(name) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            and authorize("DESCRIBE", "TOPIC", name)
        ]
        if not missing:
            return {}
        errors: dict[str, ErrorCode] = {}
        if not authorize("CREATE", "CLUSTER", CLUSTER_NAME, log_if_denied=False):
            allowed = [name async for name in sliced(missing) if authorize("CREATE", "TOPIC", name)]
            errors = dict.fromkeys(
                set(missing) - set(allowed), ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            missing = allowed
        return {**errors, **await auto_create(request, missing)} if missing else errors

    def _key(self, request: ClientRequest, message: MetadataRequest) -> Any:
        """Return the cache key: all that the response depends on; None if it must not be cached."""
        listener = request.client.listener_name
        if self._authorize_for is not None or self._view.is_random(listener):
            return None
        requested: Any = None
        if message.topics is not None:
            if len(message.topics) > 1:
                return None
            requested = tuple((t.name, t.topic_id) for t in message.topics)
        return (
            request.header.api_version,
            listener,
            requested,
            message.include_cluster_authorized_operations,
            message.include_topic_authorized_operations,
        )

    async def _build(
        self,
        request: ClientRequest,
        message: MetadataRequest,
        names: Iterable[str],
        created: Mapping[str, ErrorCode],
        authorize: Authorize,
    ) -> MetadataResponse:
        cache, version = self._view.cache, request.header.api_version
        listener = request.client.listener_name
        if message.topics is None or (version == 0 and not message.topics):
            topics = [
                self._topic(topic, version, listener)
                async for topic in sliced(tuple(cache.topics.values()))
                if authorize("DESCRIBE", "TOPIC", topic.name, log_if_denied=False)
            ]
        else:
            topics = await self._requested_topics(
                message, names, version, listener, authorize, created
            )
        if message.include_topic_authorized_operations:
            async for topic in sliced(topics):
                if topic.error_code not in _HIDDEN and topic.name is not None:
                    topic.topic_authorized_operations = topic_operations(authorize, topic.name)
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
            response.cluster_authorized_operations = cluster_operations(authorize)
        return response

    async def _requested_topics(
        self,
        message: MetadataRequest,
        names: Iterable[str],
        version: int,
        listener: str,
        authorize: Authorize,
        created: Mapping[str, ErrorCode],
    ) -> list[MetadataResponseTopic]:
        """Return each topic once: first those that were found, then those with an error."""
        cache = self._view.cache
        errors: list[MetadataResponseTopic] = []
        by_id: dict[str, None] = {}
        ids = {
            topic.topic_id: None
            async for topic in sliced(message.topics or ())
            if topic.topic_id != NO_ID
        }
        async for topic_id in sliced(ids):
            topic_name = cache.topic_name(topic_id)
            if topic_name is None:
                errors.append(_rejected(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id))
            elif not authorize("DESCRIBE", "TOPIC", topic_name):
                errors.append(_rejected(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id))
            else:
                by_id[topic_name] = None
        topics = [
            self._topic(cache.topics[name], version, listener)
            async for name in sliced(by_id)
            if name in cache.topics  # It may have been deleted since.
        ]
        async for name in sliced(set_order(names)):
            # The error does not show whether the topic exists.
            if not authorize("DESCRIBE", "TOPIC", name):
                errors.append(_rejected(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name))
            # A topic that this request created keeps the error code of its creation.
            elif name in cache.topics and name not in created:
                topics.append(self._topic(cache.topics[name], version, listener))
            else:
                missing = _rejected(created.get(name, _missing_error(name)), name)
                missing.is_internal = name in INTERNAL_TOPICS
                errors.append(missing)
        return topics + errors

    def _topic(self, topic: CachedTopic, version: int, listener: str) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            error_code=ErrorCode.NONE,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=[
                self._partition(number, topic.partitions[number], version, listener)
                for number in _order(topic)
            ],
        )

    def _partition(
        self, number: int, state: CachedPartition, version: int, listener: str
    ) -> MetadataResponsePartition:
        brokers = self._view.cache.brokers
        error, leader = ErrorCode.NONE, state.leader
        replicas, isr = list(state.replicas), list(state.isr)
        alive = brokers.get(leader)
        if alive is None:
            error, leader = ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
        elif listener not in alive.endpoints:
            missing = ErrorCode.LISTENER_NOT_FOUND
            error = missing if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
            leader = NO_LEADER
        if version == 0:
            replicas = [broker for broker in replicas if broker in brokers]
            isr = [broker for broker in isr if broker in brokers]
            filtered = len(replicas) < len(state.replicas) or len(isr) < len(state.isr)
            if filtered and error is ErrorCode.NONE:
                error = ErrorCode.REPLICA_NOT_AVAILABLE
        return MetadataResponsePartition(
            error_code=error,
            partition_index=number,
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=list(state.offline_replicas),
        )


async def _requested_names(message: MetadataRequest) -> Iterable[str]:
    """Return each topic name in a request once; a request with topic ids has no names."""
    names: dict[str, None] = {}
    async for topic in sliced(message.topics or ()):
        if topic.topic_id != NO_ID:
            return ()
        if topic.name is not None:
            names[topic.name] = None
    return names


def _order(topic: CachedTopic) -> Iterable[int]:
    """Return the partition numbers in Kafka's order, without those that never had a leader."""
    numbers = topic.partitions
    if max(numbers) + 1 == len(numbers):
        return partition_order(len(numbers))
    return sorted(numbers)


def _rejected(error: ErrorCode, name: str | None, topic_id: bytes = NO_ID) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id)


def _missing_error(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except ApiError as illegal:
        return illegal.error
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
