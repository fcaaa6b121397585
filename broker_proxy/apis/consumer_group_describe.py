"""ConsumerGroupDescribe, key 69, version 0: groups of the newer protocol, which ZooKeeper lacks.

A Kafka with ZooKeeper lists the API and says UNSUPPORTED_VERSION of every group; clients then ask
DescribeGroups.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from broker_proxy.apis.base import ClientRequest


class ConsumerGroupDescribe:
    """See LocalApi. No rights are asked for: nothing is told."""

    api_key: ClassVar[int] = 69

    async def answer(self, request: ClientRequest, message: ConsumerGroupDescribeRequest) -> Any:
        """Refuse each group."""
        return ConsumerGroupDescribeResponse(
            groups=[
                DescribedGroup(error_code=ErrorCode.UNSUPPORTED_VERSION, group_id=group_id)
                for group_id in message.group_ids
            ]
        )
