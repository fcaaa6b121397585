"""DescribeProducers, key 61, version 0: lists no active producers for any partition.

Every broker with a replica of a partition answers. The result for an unknown topic has an error
message. The result for an unknown partition of a known topic has an error code but no message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
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
    """Answers DescribeProducers requests."""

    broker_id: int
    cache: MetadataCache
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_PRODUCERS

    async def handle(self, request: ClientRequest, message: DescribeProducersRequest) -> Any:
        """Return a result per partition, in the order of the request."""
        topics = []
        for topic in message.topics:
            refused = self._topic_error(request, topic.name)
            topics.append(
                TopicResponse(
                    name=topic.name,
                    partitions=[
                        PartitionResponse(
                            partition_index=partition,
                            error_code=refused.error
                            if refused
                            else self._partition_error(topic.name, partition),
                            error_message=refused.message if refused else None,
                        )
                        for partition in topic.partition_indexes
                    ],
                )
            )
        return DescribeProducersResponse(topics=topics)

    def _topic_error(self, request: ClientRequest, name: str) -> ApiError | None:
        """Return the error of a whole topic, if it has one."""
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

    def _partition_error(self, name: str, number: int) -> ErrorCode:
        partition = self.cache.topics[name].partitions.get(number)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.broker_id not in partition.replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE
