"""UpdateMetadata, LeaderAndIsr and StopReplica (keys 6, 4, 5) of a KRaft controller. KIP-866.

A KRaft controller sends them to brokers that still use ZooKeeper. UpdateMetadata changes the
metadata cache, as the stream of our own controller does. The roles of this broker's replicas follow
from the cache, so LeaderAndIsr is checked and acknowledged; one of type FULL also names the
replicas that this broker should have. docs/kafka/migration.md has the order of the requests.

The checks are Kafka's, in its order: the right CLUSTER_ACTION, the broker epoch that the controller
gave to this broker (-1 is always accepted), the controller epoch, the leader epochs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterator
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from bridgehead.kafka_wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
)
from bridgehead.kafka_wire.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from bridgehead.slices import batched, next_turn, sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest, ClosedWithoutResponseError
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.acls.authorization import CLUSTER_NAME
from data_plane.partitions import Partitions
from envelope.messages import MetadataUpdate

_log = logging.getLogger(__name__)
FULL: Final = 2
_ANY_BROKER_EPOCH: Final = -1
# The leader epochs of a replica that is to be deleted, or whose epoch the controller does not know.
_UNFENCED_EPOCHS: Final = (-2, -1)
# Applying a part of this size takes some milliseconds.
_PARTITIONS_PER_PART: Final = 1_000
_Request = UpdateMetadataRequest | LeaderAndIsrRequest | StopReplicaRequest


class KraftRequests:
    """The checks that all three requests need, in Kafka's order."""

    def __init__(
        self,
        listeners: Container[str],
        authorize_for: AuthorizeFor,
        cache: MetadataCache,
        broker_epoch: Callable[[], int],
    ) -> None:
        """`listeners` are those between brokers. `broker_epoch` is that of the KRaft controller."""
        self._listeners = listeners
        self._authorize_for = authorize_for
        self._broker_epoch = broker_epoch
        self._has_warned = False
        self.cache = cache

    def check(self, request: ClientRequest, message: _Request) -> ErrorCode:
        """Return the error of the whole request; NONE if it is accepted.

        Raises:
            ClosedWithoutResponseError: the request is not from a KRaft controller, or it arrived at
                a listener for clients.
        """
        listener = request.client.listener_name
        if listener not in self._listeners:
            raise ClosedWithoutResponseError(f"a controller's request on listener {listener}")
        if not message.is_kraft_controller:
            raise ClosedWithoutResponseError("the request is not from a KRaft controller")
        if not self._authorize_for(request)("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
            self._warn_of(request)
            return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        if self.is_stale_broker_epoch(message.broker_epoch):
            return ErrorCode.STALE_BROKER_EPOCH
        if not self.is_current_controller(message.controller_epoch):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE

    def _warn_of(self, request: ClientRequest) -> None:
        """Warn once: the controller only logs the error, and this broker would never follow it."""
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "rejected a KRaft controller's request: %s lacks CLUSTER_ACTION on Cluster. Add it "
                "to super.users of this broker",
                request.client.principal,
            )

    def is_stale_broker_epoch(self, epoch: int) -> bool:
        """Return whether a request was sent to an earlier registration of this broker."""
        return epoch != _ANY_BROKER_EPOCH and epoch < self._broker_epoch()

    def replaces_all(self, message: UpdateMetadataRequest | LeaderAndIsrRequest) -> bool:
        """Return whether what the request does not name no longer exists."""
        return message.type == FULL

    def is_current_controller(self, epoch: int) -> bool:
        """Return whether no later controller has sent a request to this broker."""
        return self.cache.controller_epoch_seen(epoch)


class UpdateMetadata:
    """Answers UpdateMetadata requests: the topics, the brokers, and who the controller is."""

    api_key: ClassVar[ApiKey] = ApiKey.UPDATE_METADATA

    def __init__(self, requests: KraftRequests) -> None:
        self._requests = requests
        self._turn = asyncio.Lock()  # A later request must not come between the parts of this one.

    async def handle(
        self, request: ClientRequest, message: UpdateMetadataRequest
    ) -> UpdateMetadataResponse:
        """Apply the request. One of type FULL replaces everything."""
        async with self._turn:
            error = self._requests.check(request, message)
            if error is ErrorCode.NONE:
                error = await self._apply(message)
        return UpdateMetadataResponse(error)

    async def _apply(self, message: UpdateMetadataRequest) -> ErrorCode:
        cache, is_first = self._requests.cache, True
        is_full = self._requests.replaces_all(message)
        for part, is_last in _parts(message):
            update = MetadataUpdate(
                controller_id=message.controller_id,
                controller_epoch=message.controller_epoch,
                zxid=cache.zxid,  # A KRaft controller does not name a zxid.
                update_metadata=b"",
                starts_full_image=is_full and is_first,
                complete=is_last,
                between_parts=not (is_full or is_last),
                message=part,
            )
            if not cache.apply(update):
                return ErrorCode.STALE_CONTROLLER_EPOCH
            is_first = False
            await next_turn()
        return ErrorCode.NONE


def _parts(message: UpdateMetadataRequest) -> Iterator[tuple[UpdateMetadataRequest, bool]]:
    """Yield requests of limited size that together have the same effect, and which is the last."""

    def part(topics: list[UpdateMetadataTopicState]) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            controller_id=message.controller_id,
            is_kraft_controller=True,
            type=message.type,
            controller_epoch=message.controller_epoch,
            broker_epoch=message.broker_epoch,
            topic_states=topics,
            live_brokers=message.live_brokers,
        )

    topics: list[UpdateMetadataTopicState] = []
    size = 0
    for topic in message.topic_states:
        for states in batched(topic.partition_states, _PARTITIONS_PER_PART):
            topics.append(UpdateMetadataTopicState(topic.topic_name, topic.topic_id, list(states)))
            size += len(states)
            if size >= _PARTITIONS_PER_PART:
                yield part(topics), False
                topics, size = [], 0
    yield part(topics), True  # The last part has no topics if the parts before it have all of them.


def _states(message: LeaderAndIsrRequest | StopReplicaRequest) -> Iterator[tuple[Any, Any]]:
    """Yield the topic and the state of each partition."""
    for topic in message.topic_states:
        for state in topic.partition_states:
            yield topic, state


class LeaderAndIsr:
    """Answers LeaderAndIsr requests; sets replicas aside that the controller does not know."""

    api_key: ClassVar[ApiKey] = ApiKey.LEADER_AND_ISR

    def __init__(
        self, requests: KraftRequests, broker_id: int, partitions: Partitions | None
    ) -> None:
        """`partitions` is None without a data plane."""
        self._requests = requests
        self._broker_id = broker_id
        self._partitions = partitions

    async def handle(
        self, request: ClientRequest, message: LeaderAndIsrRequest
    ) -> LeaderAndIsrResponse:
        """Check the request and each partition."""
        error = self._requests.check(request, message)
        response, names = LeaderAndIsrResponse(error), set()
        errors: list[LeaderAndIsrPartitionError] = []
        of_topic: LeaderAndIsrTopicState | None = None
        async for topic, state in sliced(_states(message)):
            if topic is not of_topic:
                of_topic, errors = topic, []
                response.topics.append(LeaderAndIsrTopicError(topic.topic_id, errors))
            outcome = error or self._error(topic, state)
            errors.append(
                LeaderAndIsrPartitionError(
                    partition_index=state.partition_index, error_code=outcome
                )
            )
            names.add((topic.topic_name, state.partition_index))
        is_full = error is ErrorCode.NONE and self._requests.replaces_all(message)
        if is_full and self._partitions is not None:
            self._partitions.keep_only(names)
        return response

    def _error(self, topic: LeaderAndIsrTopicState, state: LeaderAndIsrPartitionState) -> ErrorCode:
        if self._broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._partitions is None:
            return ErrorCode.NONE
        replica = self._partitions.by_name.get((topic.topic_name, state.partition_index))
        if replica is None:
            return ErrorCode.NONE
        if replica.log.topic_id not in (topic.topic_id, bytes(16)):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if state.leader_epoch < replica.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE


class StopReplica:
    """Answers StopReplica requests: deletes replicas, whether or not the cache knows the topic."""

    api_key: ClassVar[ApiKey] = ApiKey.STOP_REPLICA

    def __init__(self, requests: KraftRequests, partitions: Partitions | None) -> None:
        """`partitions` is None without a data plane."""
        self._requests = requests
        self._partitions = partitions

    async def handle(
        self, request: ClientRequest, message: StopReplicaRequest
    ) -> StopReplicaResponse:
        """Delete the replicas. One that only stops follows from the metadata cache."""
        error = self._requests.check(request, message)
        response = StopReplicaResponse(error)
        async for topic, state in sliced(_states(message)):
            outcome = error or self._stop(topic.topic_name, state)
            row = StopReplicaPartitionError(topic.topic_name, state.partition_index, outcome)
            response.partition_errors.append(row)
        return response

    def _stop(self, topic: str, state: StopReplicaPartitionState) -> ErrorCode:
        if self._partitions is None:
            return ErrorCode.NONE
        name = (topic, state.partition_index)
        replica = self._partitions.by_name.get(name)
        epoch = state.leader_epoch
        if replica is not None and epoch not in _UNFENCED_EPOCHS and epoch < replica.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if state.delete_partition:
            self._partitions.delete(name)
        return ErrorCode.NONE
