"""OffsetDelete, key 47, version 0: deletes committed offsets of a group (KIP-496).

A partition that does not exist, or that the client may not read, gets its own error. If the group
has an error, the response has only the group's error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from bridgehead.slices import sliced
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.apis.groups.group_ports import StoredGroups
from broker_proxy.apis.groups.group_topics import check_topics
from broker_proxy.client_request import AuthorizeFor, ClientRequest


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """Answers OffsetDelete requests."""

    groups: StoredGroups
    coordinators: Coordinators
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_DELETE

    async def handle(self, request: ClientRequest, message: OffsetDeleteRequest) -> Any:
        """Return an error for the whole request, or one for each partition."""
        authorize = self.authorize_for(request)
        if not authorize("DELETE", "GROUP", message.group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        wanted = [
            (
                topic.name,
                [partition.partition_index async for partition in sliced(topic.partitions)],
            )
            async for topic in sliced(message.topics)
        ]
        checked = await check_topics(wanted, authorize, self.coordinators)
        error, errors = self.groups.delete_offsets(message.group_id, checked.valid)
        if error is not ErrorCode.NONE:
            return OffsetDeleteResponse(error_code=error)
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name,
                    [
                        OffsetDeleteResponsePartition(index, error_code)
                        for index, error_code in rows
                    ],
                )
                async for name, rows in sliced(await checked.merged(errors))
            ]
        )
