"""SyncGroup, key 14, versions 0 to 5: the leader sends the assignment; each member gets its part.

Version notes:
    3: instance ids of static members. 5: the protocol type and name that the client expects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from bridgehead.slices import sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest, NeverRespondedError
from data_plane.groups.membership import RequestDroppedError, Sync, Synced

_PROTOCOL_FROM: Final = 5


class AssignsPartitions(Protocol):
    """See `GroupService.sync`."""

    async def sync(self, request: Sync) -> Synced:
        """Return when the assignment is written to the log of the group's partition."""


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """Answers SyncGroup requests."""

    groups: AssignsPartitions
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.SYNC_GROUP

    async def handle(self, request: ClientRequest, message: SyncGroupRequest) -> Any:
        """Return the member's assignment."""
        lacks_protocol = message.protocol_type is None or message.protocol_name is None
        if request.header.api_version >= _PROTOCOL_FROM and lacks_protocol:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not self.authorize_for(request)("READ", "GROUP", message.group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        sync = Sync(
            group_id=message.group_id,
            generation=message.generation_id,
            member_id=message.member_id,
            instance_id=message.group_instance_id,
            protocol_type=message.protocol_type,
            protocol=message.protocol_name,
            assignments={
                assignment.member_id: assignment.assignment
                async for assignment in sliced(message.assignments)
            },
        )
        try:
            synced = await self.groups.sync(sync)
        except RequestDroppedError as dropped:
            raise NeverRespondedError from dropped
        return SyncGroupResponse(
            error_code=synced.error,
            protocol_type=synced.protocol_type,
            protocol_name=synced.protocol,
            assignment=synced.assignment,
        )
