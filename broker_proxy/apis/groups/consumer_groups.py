"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: KIP-848 groups exist only with KRaft."""

from __future__ import annotations

from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from bridgehead.kafka_wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from bridgehead.slices import sliced
from broker_proxy.client_request import ClientRequest


class ConsumerGroupDescribe:
    """Key 69. A Kafka broker with ZooKeeper advertises this API but does not support it."""

    api_key: ClassVar[ApiKey] = ApiKey.CONSUMER_GROUP_DESCRIBE

    async def handle(self, request: ClientRequest, message: ConsumerGroupDescribeRequest) -> Any:
        """Return UNSUPPORTED_VERSION for each group; clients then send DescribeGroups."""
        error = ErrorCode.UNSUPPORTED_VERSION
        return ConsumerGroupDescribeResponse(
            groups=[
                DescribedGroup(error, group_id=group_id)
                async for group_id in sliced(message.group_ids)
            ]
        )


class ConsumerGroupHeartbeat:
    """Key 68: see ConsumerGroupDescribe."""

    api_key: ClassVar[ApiKey] = ApiKey.CONSUMER_GROUP_HEARTBEAT

    async def handle(self, request: ClientRequest, message: ConsumerGroupHeartbeatRequest) -> Any:
        """Return UNSUPPORTED_VERSION."""
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
