"""Heartbeat, key 12, versions 0 to 4: a member shows its coordinator that it is alive.

Version notes:
    3: instance ids of static members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker_proxy.apis.base import AuthorizeFor, ClientRequest


class TakesHeartbeats(Protocol):
    """See `GroupService.heartbeat`."""

    def heartbeat(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None
    ) -> ErrorCode:
        """Restart the member's session timeout."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Answers Heartbeat requests."""

    groups: TakesHeartbeats
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.HEARTBEAT

    async def handle(self, request: ClientRequest, message: HeartbeatRequest) -> Any:
        """Return an error code; after REBALANCE_IN_PROGRESS the member joins again."""
        if not self.authorize_for(request)("READ", "GROUP", message.group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        error = self.groups.heartbeat(
            message.group_id, message.generation_id, message.member_id, message.group_instance_id
        )
        return HeartbeatResponse(error_code=error)
