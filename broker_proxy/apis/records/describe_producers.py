"""DescribeProducers, key 61, version 0: the idempotent producers of each partition.

Without a data plane there are none. A broker answers for each partition of which it has a replica,
even if another broker leads the partition. The result for an unknown topic has an error message.
The result for an unknown partition of a known topic has an error code but no message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from bridgehead.slices import sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest, ResponseSize
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.acls.authorization import Authorize
from cluster_model.topic_names import check_topic_name

# Returns the producers of a partition that has a replica here.
ProducersOf = Callable[[str, int], list[ProducerState]]


def _no_producers(_topic: str, _partition: int) -> list[ProducerState]:
    return []


@dataclass(frozen=True, slots=True)
class DescribeProducers:
    """Answers DescribeProducers requests.

    `producers_of` raises ApiError if this broker has no replica of the partition.
    """

    broker_id: int
    cache: MetadataCache
    authorize_for: AuthorizeFor
    producers_of: ProducersOf = _no_producers
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_PRODUCERS

    async def handle(self, request: ClientRequest, message: DescribeProducersRequest) -> Any:
        """Return a result per partition, in the order of the request."""
        authorize, size = self.authorize_for(request), ResponseSize()
        topics = []
        async for topic in sliced(message.topics):
            rejected = self._topic_error(authorize, topic.name)
            partitions = [
                self._partition(topic.name, number, rejected, size)
                async for number in sliced(topic.partition_indexes)
            ]
            topics.append(TopicResponse(name=topic.name, partitions=partitions))
        return DescribeProducersResponse(topics=topics)

    def _partition(
        self, topic: str, number: int, rejected: ApiError | None, size: ResponseSize
    ) -> PartitionResponse:
        response = PartitionResponse(partition_index=number)
        try:
            if rejected is not None:
                response.error_message = rejected.message
                raise rejected
            self._check_partition(topic, number)
            response.active_producers = self.producers_of(topic, number)
            size.add(len(response.active_producers))
        except ApiError as rejection:
            response.error_code = rejection.error
        return response

    def _topic_error(self, authorize: Authorize, name: str) -> ApiError | None:
        """Return the error of a whole topic, if it has one."""
        error = None
        if not authorize("READ", "TOPIC", name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            try:
                check_topic_name(name)
            except ApiError as illegal:
                return illegal
            if name not in self.cache.topics:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None if error is None else ApiError(error, error.default_text)

    def _check_partition(self, name: str, number: int) -> None:
        partition = self.cache.topics[name].partitions.get(number)
        if partition is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self.broker_id not in partition.replicas:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
