"""DescribeGroups, key 15, versions 0 to 5: answered by the coordinator of each group.

No broker of this release has met a group: its coordinator says that it is dead, which is what Kafka
says of a group that it does not know; any other broker says NOT_COORDINATOR (kafka-semantics 3.20).

Version notes:
    3 and later: operations on the groups may be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from broker_proxy.apis.authorized_operations import group_operations
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.coordinators import Coordinators

_UNKNOWN_GROUP = "Dead"


@dataclass(frozen=True, slots=True)
class DescribeGroups:
    """See LocalApi."""

    coordinators: Coordinators
    authorize_for: AuthorizeFor
    api_key: ClassVar[int] = 15

    async def answer(self, request: ClientRequest, message: DescribeGroupsRequest) -> Any:
        """Answer each group, in the order of the request."""
        authorize = self.authorize_for(request)
        groups = []
        for group_id in message.groups:
            group = DescribedGroup(group_id=group_id)
            if not authorize("DESCRIBE", "GROUP", group_id):
                group.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            elif not self.coordinators.has_group(group_id):
                group.error_code = ErrorCode.NOT_COORDINATOR
            else:
                group.group_state = _UNKNOWN_GROUP
                if message.include_authorized_operations:
                    group.authorized_operations = group_operations(authorize, group_id)
            groups.append(group)
        return DescribeGroupsResponse(groups=groups)
