"""DeleteGroups, key 42, versions 0 to 2: answered by the coordinator of each group.

No broker of this release has met a group: its coordinator does not find it, any other broker says
NOT_COORDINATOR. A group that is named twice is answered once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.coordinators import Coordinators


@dataclass(frozen=True, slots=True)
class DeleteGroups:
    """See LocalApi."""

    coordinators: Coordinators
    authorize_for: AuthorizeFor
    api_key: ClassVar[int] = 42

    async def answer(self, request: ClientRequest, message: DeleteGroupsRequest) -> Any:
        """Refuse each group, in the order of the request."""
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=group_id, error_code=self._why(request, group_id))
                for group_id in dict.fromkeys(message.groups_names)
            ]
        )

    def _why(self, request: ClientRequest, group_id: str) -> ErrorCode:
        if not self.authorize_for(request)("DELETE", "GROUP", group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if not self.coordinators.has_group(group_id):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.GROUP_ID_NOT_FOUND
