"""ListGroups, key 16, versions 0 to 5: every broker lists the groups that it coordinates.

No broker of this release coordinates groups: the list is empty, whatever is filtered for. An empty
list is no error, as in a Kafka that has not met a group yet (kafka-semantics 3.20).
"""

from __future__ import annotations

from typing import Any, ClassVar

from bridgehead.kafka_wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker_proxy.apis.base import ClientRequest


class ListGroups:
    """See LocalApi. Without rights the list is empty too, so that none are asked for."""

    api_key: ClassVar[int] = 16

    async def answer(self, request: ClientRequest, message: ListGroupsRequest) -> Any:
        """Return no groups."""
        return ListGroupsResponse()
