"""DescribeProducers, key 61, version 0: who writes to a partition, which is nobody.

Answered by whoever has a replica of each partition, which is an empty log. A topic that this broker
does not know is refused with the code's text; a partition of a topic that it knows, without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.metadata_cache import MetadataCache
from cluster_model.topic_names import check_topic_name


@dataclass(frozen=True, slots=True)
class DescribeProducers:
    """See LocalApi."""

    broker_id: int
    cache: MetadataCache
    authorize_for: AuthorizeFor
    api_key: ClassVar[int] = 61

    async def answer(self, request: ClientRequest, message: DescribeProducersRequest) -> Any:
        """Answer each partition, in the order of the request."""
        topics = []
        for asked in message.topics:
            refused = self._why(request, asked.name)
            topics.append(
                TopicResponse(
                    name=asked.name,
                    partitions=[
                        PartitionResponse(
                            partition_index=partition,
                            error_code=refused.error
                            if refused
                            else self._held(asked.name, partition),
                            error_message=refused.message if refused else None,
                        )
                        for partition in asked.partition_indexes
                    ],
                )
            )
        return DescribeProducersResponse(topics=topics)

    def _why(self, request: ClientRequest, name: str) -> ApiError | None:
        """Return why nothing is told of a topic."""
        error = None
        if not self.authorize_for(request)("READ", "TOPIC", name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            try:
                check_topic_name(name)
            except ApiError as illegal:
                return illegal
            if name not in self.cache.topics:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None if error is None else ApiError(error, error.default_text)

    def _held(self, name: str, number: int) -> ErrorCode:
        partition = self.cache.topics[name].partitions.get(number)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.broker_id not in partition.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE
