"""ListGroups, key 16, versions 0 to 5: the groups that this broker coordinates.

A client with DESCRIBE on Cluster gets all groups. Other clients get the groups that they may
describe.

Version notes:
    4: the request filters by state, without regard to case. 5: it filters by type; every group here
    has the type classic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from bridgehead.slices import sliced
from broker_proxy.apis.groups.group_ports import StoredGroups
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from cluster_model.acls.authorization import CLUSTER_NAME
from data_plane.groups.coordinator import CLASSIC


@dataclass(frozen=True, slots=True)
class ListGroups:
    """Answers ListGroups requests."""

    groups: StoredGroups
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.LIST_GROUPS

    async def handle(self, request: ClientRequest, message: ListGroupsRequest) -> Any:
        """Return the groups that the client may see."""
        error, groups = self.groups.list_groups(message.states_filter, message.types_filter)
        if not groups:
            return ListGroupsResponse(error_code=error)
        authorize = self.authorize_for(request)
        sees_all = authorize("DESCRIBE", "CLUSTER", CLUSTER_NAME, log_if_denied=False)
        listed = [
            ListedGroup(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)
            async for group in sliced(groups)
            if sees_all or authorize("DESCRIBE", "GROUP", group.group_id, log_if_denied=False)
        ]
        return ListGroupsResponse(error_code=error, groups=listed)
