"""OffsetForLeaderEpoch, key 23, versions 0 to 4: a leader epoch's end offset. KIP-101, KIP-320.

A client with CLUSTER_ACTION on Cluster, such as a follower, sees every topic. Other clients need
DESCRIBE on the topic.

Version notes:
    1: the response has the leader epoch that the offset belongs to. 2: the request has the client's
    current leader epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from bridgehead.slices import sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from cluster_model.acls.authorization import CLUSTER_NAME
from data_plane.partitions import Partitions

_NO_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpoch:
    """Answers OffsetForLeaderEpoch requests."""

    partitions: Partitions
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_FOR_LEADER_EPOCH

    async def handle(
        self, request: ClientRequest, message: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """Return a result per partition; topics that the client may not describe come last."""
        authorize = self.authorize_for(request)
        is_broker = authorize("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME, log_if_denied=False)
        responded, denied = [], []
        async for topic in sliced(message.topics):
            if is_broker or authorize("DESCRIBE", "TOPIC", topic.topic):
                results = [
                    self._end(topic.topic, partition)
                    async for partition in sliced(topic.partitions)
                ]
                responded.append(OffsetForLeaderTopicResult(topic.topic, results))
            else:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                rejected = [
                    EpochEndOffset(error, partition.partition)
                    async for partition in sliced(topic.partitions)
                ]
                denied.append(OffsetForLeaderTopicResult(topic.topic, rejected))
        return OffsetForLeaderEpochResponse(topics=responded + denied)

    def _end(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            partition = self.partitions.get(topic, wanted.partition)
            # As in Kafka, this API rejects an epoch below -1, although Fetch ignores it.
            if wanted.current_leader_epoch < _NO_EPOCH:
                raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
            partition.require_leader(wanted.current_leader_epoch)
        except ApiError as rejection:
            return EpochEndOffset(rejection.error, wanted.partition)
        log = partition.log
        epoch, end = log.epochs.end_offset(wanted.leader_epoch, log.end_offset)
        return EpochEndOffset(ErrorCode.NONE, wanted.partition, epoch, end)
