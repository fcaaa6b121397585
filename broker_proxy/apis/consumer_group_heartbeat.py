"""ConsumerGroupHeartbeat, key 68, version 0: groups of the newer protocol, which ZooKeeper lacks.

A Kafka with ZooKeeper lists the API and answers UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from broker_proxy.apis.base import ClientRequest


class ConsumerGroupHeartbeat:
    """See LocalApi. No rights are asked for: nothing is told."""

    api_key: ClassVar[int] = 68

    async def answer(self, request: ClientRequest, message: ConsumerGroupHeartbeatRequest) -> Any:
        """Refuse."""
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
