"""OffsetDelete, key 47, version 0: answered by the coordinator of the group.

No broker of this release has met a group: its coordinator does not find it, whatever the topics,
and any other broker says NOT_COORDINATOR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.coordinators import Coordinators


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """See LocalApi. Rights on topics are not asked for: no topic is told of."""

    coordinators: Coordinators
    authorize_for: AuthorizeFor
    api_key: ClassVar[int] = 47

    async def answer(self, request: ClientRequest, message: OffsetDeleteRequest) -> Any:
        """Refuse the request as a whole."""
        return OffsetDeleteResponse(error_code=self._why(request, message.group_id))

    def _why(self, request: ClientRequest, group_id: str) -> ErrorCode:
        if not self.authorize_for(request)("DELETE", "GROUP", group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        if not self.coordinators.has_group(group_id):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.GROUP_ID_NOT_FOUND
