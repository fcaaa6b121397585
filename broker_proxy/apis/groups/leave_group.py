"""LeaveGroup, key 13, versions 0 to 5: members leave, or an administrator removes them.

Version notes:
    3: several members, each with its own error. An instance id names a static member (KIP-345).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from bridgehead.slices import sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from data_plane.groups.membership import Leaving

_MANY_FROM: Final = 3


class LetsMembersLeave(Protocol):
    """See `GroupService.leave`."""

    async def leave(
        self, group_id: str, members: Sequence[Leaving]
    ) -> tuple[ErrorCode, list[tuple[Leaving, ErrorCode]]]:
        """Return an error code for the whole request and one for each member."""


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Answers LeaveGroup requests."""

    groups: LetsMembersLeave
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.LEAVE_GROUP

    async def handle(self, request: ClientRequest, message: LeaveGroupRequest) -> Any:
        """Remove the members; the others rebalance."""
        if not self.authorize_for(request)("READ", "GROUP", message.group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if request.header.api_version < _MANY_FROM:
            leaving = [Leaving(message.member_id)]
        else:
            leaving = [
                Leaving(member.member_id, member.group_instance_id)
                async for member in sliced(message.members)
            ]
        error, left = await self.groups.leave(message.group_id, leaving)
        if request.header.api_version < _MANY_FROM:
            first = next((failure for _, failure in left), ErrorCode.NONE)
            return LeaveGroupResponse(error_code=error or first)
        return LeaveGroupResponse(
            error_code=error,
            members=[
                MemberResponse(member.member_id, member.instance_id, failure)
                async for member, failure in sliced(left)
            ],
        )
