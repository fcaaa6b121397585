"""DeleteGroups, key 42, versions 0 to 2: the coordinator deletes groups without members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from bridgehead.slices import sliced
from broker_proxy.apis.groups.group_ports import StoredGroups
from broker_proxy.client_request import AuthorizeFor, ClientRequest


@dataclass(frozen=True, slots=True)
class DeleteGroups:
    """Answers DeleteGroups requests."""

    groups: StoredGroups
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.DELETE_GROUPS

    async def handle(self, request: ClientRequest, message: DeleteGroupsRequest) -> Any:
        """Return one result per group, in the order of the request; duplicates are dropped."""
        authorize = self.authorize_for(request)
        errors = dict.fromkeys(message.groups_names, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        allowed = [
            group_id
            async for group_id in sliced(tuple(errors))
            if authorize("DELETE", "GROUP", group_id)
        ]
        errors.update(await self.groups.delete_groups(allowed))
        results = [
            DeletableGroupResult(group_id, error)
            async for group_id, error in sliced(errors.items())
        ]
        return DeleteGroupsResponse(results=results)
