"""JoinGroup, key 11, versions 0 to 9: a member joins a group and waits for the others.

Version notes:
    0: the session timeout is also the rebalance timeout. 4: a new member gets a member id and joins
    again with it (KIP-394). 5: instance ids of static members (KIP-345). 7: responses have the
    protocol type; in error responses the protocol name is null. 9: `skip_assignment` tells a
    restarted group leader to compute no assignment (KIP-814).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from bridgehead.slices import sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest, NeverRespondedError
from data_plane.groups.membership import Join, Joined, RequestDroppedError

_REBALANCE_TIMEOUT_FROM: Final = 1
_KNOWN_ID_FROM: Final = 4
_NULL_PROTOCOL_FROM: Final = 7
_SKIPS_ASSIGNMENT_FROM: Final = 9


class LetsMembersJoin(Protocol):
    """See `GroupService.join`."""

    async def join(self, request: Join) -> Joined:
        """Return when the join phase has ended; earlier after an error or without a rebalance."""


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """Answers JoinGroup requests."""

    groups: LetsMembersJoin
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.JOIN_GROUP

    async def handle(self, request: ClientRequest, message: JoinGroupRequest) -> Any:
        """Return the member's generation. The leader's response also lists all members."""
        version = request.header.api_version
        if not self.authorize_for(request)("READ", "GROUP", message.group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        has_own = version >= _REBALANCE_TIMEOUT_FROM
        join = Join(
            group_id=message.group_id,
            member_id=message.member_id,
            instance_id=message.group_instance_id,
            needs_known_id=version >= _KNOWN_ID_FROM and message.group_instance_id is None,
            may_skip_assignment=version >= _SKIPS_ASSIGNMENT_FROM,
            client_id=request.header.client_id or "",
            client_host=f"/{request.client.host}",
            rebalance_timeout_ms=(
                message.rebalance_timeout_ms if has_own else message.session_timeout_ms
            ),
            session_timeout_ms=message.session_timeout_ms,
            protocol_type=message.protocol_type,
            protocols=tuple(
                [(protocol.name, protocol.metadata) async for protocol in sliced(message.protocols)]
            ),
        )
        try:
            joined = await self.groups.join(join)
        except RequestDroppedError as dropped:
            raise NeverRespondedError from dropped
        return _response(joined, version)


def _response(joined: Joined, version: int) -> JoinGroupResponse:
    protocol = joined.protocol
    if protocol is None and version < _NULL_PROTOCOL_FROM:
        protocol = ""
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(member.member_id, member.instance_id, member.metadata)
            for member in joined.members
        ],
    )
