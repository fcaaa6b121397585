"""DescribeGroups, key 15, versions 0 to 5: the coordinator describes groups and their members.

A group that does not exist has the state Dead and no error. Only a group in the state Stable shows
its protocol, its members' metadata and their assignments.

Version notes:
    3: the operations that the client may perform on the group. 4: instance ids of static members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from bridgehead.slices import sliced
from broker_proxy.apis.admin.authorized_operations import group_operations
from broker_proxy.apis.groups.group_ports import StoredGroups
from broker_proxy.client_request import AuthorizeFor, ClientRequest, ResponseSize
from data_plane.groups.group import Group, State


@dataclass(frozen=True, slots=True)
class DescribeGroups:
    """Answers DescribeGroups requests."""

    groups: StoredGroups
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_GROUPS

    async def handle(self, request: ClientRequest, message: DescribeGroupsRequest) -> Any:
        """Describe each group, in the order of the request."""
        authorize = self.authorize_for(request)
        described, size = [], ResponseSize()
        async for group_id in sliced(message.groups):
            error, group = ErrorCode.GROUP_AUTHORIZATION_FAILED, None
            if authorize("DESCRIBE", "GROUP", group_id):
                error, group = self.groups.describe(group_id)
            described_group = DescribedGroup(error, group_id=group_id)
            if error is ErrorCode.NONE:
                _fill(described_group, group)
                size.add(len(described_group.members))
                if message.include_authorized_operations:
                    described_group.authorized_operations = group_operations(authorize, group_id)
            described.append(described_group)
        return DescribeGroupsResponse(groups=described)


def _fill(described: DescribedGroup, group: Group | None) -> None:
    if group is None:
        described.group_state = State.DEAD.value
        return
    described.group_state = group.state.value
    described.protocol_type = group.protocol_type or ""
    if group.state is State.STABLE:
        described.protocol_data = group.protocol or ""
    described.members = list(_members(group))


def _members(group: Group) -> Iterator[DescribedGroupMember]:
    is_stable = group.state is State.STABLE
    for group_member in group.members.values():
        yield DescribedGroupMember(
            group_member.member_id,
            group_member.instance_id,
            group_member.client_id,
            group_member.client_host,
            group_member.metadata(group.protocol) if is_stable else b"",
            group_member.assignment if is_stable else b"",
        )
