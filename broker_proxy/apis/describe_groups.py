"""DescribeGroups, key 15, versions 0 to 5: answered by the coordinator of each group.

No broker of this release coordinates groups, so that every group is refused with NOT_COORDINATOR:
what a Kafka answers that leads no partition of the offsets topic (kafka-semantics 3.20).
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
from broker_proxy.apis.base import ClientRequest
from broker_proxy.apis.config_ports import AuthorizeClient


@dataclass(frozen=True, slots=True)
class DescribeGroups:
    """See LocalApi."""

    authorize: AuthorizeClient
    api_key: ClassVar[int] = 15

    async def answer(self, request: ClientRequest, message: DescribeGroupsRequest) -> Any:
        """Answer each group, in the order of the request."""
        groups = []
        for group_id in message.groups:
            allowed = self.authorize(request.connection, "DESCRIBE", "GROUP", group_id)
            error = ErrorCode.NOT_COORDINATOR if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
            groups.append(DescribedGroup(error_code=error, group_id=group_id))
        return DescribeGroupsResponse(groups=groups)
