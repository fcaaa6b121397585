"""The APIs of group coordinators, for a broker that holds no group.

See docs/kafka/records-and-groups.md#listgroups-and-describegroups. A group's coordinator leads its
partition of `__consumer_offsets`. It answers like a coordinator of a group that never had a member;
every other broker answers NOT_COORDINATOR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from bridgehead.kafka_wire.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from bridgehead.kafka_wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from bridgehead.kafka_wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from bridgehead.kafka_wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from bridgehead.kafka_wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from bridgehead.kafka_wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from broker_proxy.apis.authorized_operations import group_operations
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.coordinators import Coordinators

_UNKNOWN_GROUP = "Dead"


class ListGroups:
    """Key 16: always empty. An empty list needs no rights."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_GROUPS

    async def handle(self, request: ClientRequest, message: ListGroupsRequest) -> Any:
        """Return no groups."""
        return ListGroupsResponse()


class ConsumerGroupDescribe:
    """Key 69: groups of KIP-848, which a Kafka with ZooKeeper lists but does not support."""

    api_key: ClassVar[ApiKey] = ApiKey.CONSUMER_GROUP_DESCRIBE

    async def handle(self, request: ClientRequest, message: ConsumerGroupDescribeRequest) -> Any:
        """Return UNSUPPORTED_VERSION for each group; clients then send DescribeGroups."""
        error = ErrorCode.UNSUPPORTED_VERSION
        return ConsumerGroupDescribeResponse(
            groups=[DescribedConsumerGroup(error, group_id=each) for each in message.group_ids]
        )


class ConsumerGroupHeartbeat:
    """Key 68: see ConsumerGroupDescribe."""

    api_key: ClassVar[ApiKey] = ApiKey.CONSUMER_GROUP_HEARTBEAT

    async def handle(self, request: ClientRequest, message: ConsumerGroupHeartbeatRequest) -> Any:
        """Return UNSUPPORTED_VERSION."""
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


@dataclass(frozen=True, slots=True)
class _OfCoordinator:
    coordinators: Coordinators
    authorize_for: AuthorizeFor

    def _error(self, group_id: str, *, allowed: bool) -> ErrorCode:
        if not allowed:
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        here = self.coordinators.has_group(group_id)
        return ErrorCode.NONE if here else ErrorCode.NOT_COORDINATOR


class DescribeGroups(_OfCoordinator):
    """Key 15: an unknown group is Dead, without an error."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_GROUPS

    async def handle(self, request: ClientRequest, message: DescribeGroupsRequest) -> Any:
        """Describe each group, in the order of the request."""
        authorize = self.authorize_for(request)
        groups = []
        for group_id in message.groups:
            allowed = authorize("DESCRIBE", "GROUP", group_id)
            group = DescribedGroup(self._error(group_id, allowed=allowed), group_id=group_id)
            if group.error_code == ErrorCode.NONE:
                group.group_state = _UNKNOWN_GROUP
                if message.include_authorized_operations:
                    group.authorized_operations = group_operations(authorize, group_id)
            groups.append(group)
        return DescribeGroupsResponse(groups=groups)


class DeleteGroups(_OfCoordinator):
    """Key 42."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_GROUPS

    async def handle(self, request: ClientRequest, message: DeleteGroupsRequest) -> Any:
        """Return an error for each group, in the order of the request, each group once."""
        authorize = self.authorize_for(request)
        results = []
        for group_id in dict.fromkeys(message.groups_names):
            error = self._error(group_id, allowed=authorize("DELETE", "GROUP", group_id))
            results.append(DeletableGroupResult(group_id, error or ErrorCode.GROUP_ID_NOT_FOUND))
        return DeleteGroupsResponse(results=results)


class OffsetDelete(_OfCoordinator):
    """Key 47. The response names no topic, so no rights on topics are needed."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_DELETE

    async def handle(self, request: ClientRequest, message: OffsetDeleteRequest) -> Any:
        """Return an error for the whole request."""
        allowed = self.authorize_for(request)("DELETE", "GROUP", message.group_id)
        error = self._error(message.group_id, allowed=allowed)
        if allowed and not message.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        return OffsetDeleteResponse(error_code=error or ErrorCode.GROUP_ID_NOT_FOUND)
