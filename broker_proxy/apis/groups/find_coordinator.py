"""FindCoordinator, key 10, versions 0 to 6: the coordinator of a group or transactional id.

A missing internal topic is created even if `auto.create.topics.enable` is false or the client may
not create topics (docs/kafka/records-and-groups.md#findcoordinator). Until the key's partition has
a leader, the client gets COORDINATOR_NOT_AVAILABLE and retries. In the drafted dialect (KIP-590)
the broker waits for the new topic before it answers.

Version notes:
    0: groups only. 1 to 3: an error message, "NONE" for success. From 4 on: many keys; an error
    message only for an unknown key type. 6: share groups; they have no coordinator here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.authorizer import ResourceType
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from bridgehead.slices import sliced
from broker_proxy.apis.admin.cluster_view import ClusterView
from broker_proxy.apis.groups.coordinators import NO_LEADER, Coordinators
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from broker_proxy.forwarding.auto_topics import AutoTopics
from cluster_model.acls.authorization import Authorize
from cluster_model.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_SHARE_FROM: Final = 6
_MANY_KEYS_FROM: Final = 4
_DRAFTED: Final = "drafted"
_POLL_S: Final = 0.02
_NO_NODE: Final = (-1, "", -1)


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Answers FindCoordinator requests."""

    view: ClusterView
    coordinators: Coordinators
    auto_topics: AutoTopics
    authorize_for: AuthorizeFor
    wait_s: float  # request.timeout.ms
    api_key: ClassVar[ApiKey] = ApiKey.FIND_COORDINATOR

    async def handle(self, request: ClientRequest, message: FindCoordinatorRequest) -> Any:
        """Return the coordinator of each key."""
        version = request.header.api_version
        if message.key_type not in (_GROUP, _TRANSACTION, _SHARE):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        keys = message.coordinator_keys if version >= _MANY_KEYS_FROM else [message.key]
        if request.client.dialect == _DRAFTED and message.key_type != _SHARE:
            await self._create_and_wait(request, message.key_type, keys)
        authorize = self.authorize_for(request)
        coordinators = [
            self._coordinator(request, authorize, message.key_type, key)
            async for key in sliced(keys)
        ]
        if version >= _MANY_KEYS_FROM:
            return FindCoordinatorResponse(coordinators=coordinators)
        (one,) = coordinators
        error = ErrorCode(one.error_code)
        return FindCoordinatorResponse(
            error_code=error,
            error_message="NONE" if error is ErrorCode.NONE else error.default_text,
            node_id=one.node_id,
            host=one.host,
            port=one.port,
        )

    async def _create_and_wait(
        self, request: ClientRequest, key_type: int, keys: Sequence[str]
    ) -> None:
        """Create the internal topic if it is missing; wait for the first key's leader."""
        topic = GROUP_METADATA_TOPIC if key_type == _GROUP else TRANSACTION_STATE_TOPIC
        kind: ResourceType = "GROUP" if key_type == _GROUP else "TRANSACTIONAL_ID"
        authorize = self.authorize_for(request)
        wanted = [key async for key in sliced(keys) if authorize("DESCRIBE", kind, key)]
        if topic in self.view.cache.topics or not wanted:
            return
        self.auto_topics.create_internal(request, topic)
        try:
            async with asyncio.timeout(self.wait_s):
                if await self.auto_topics.internal_created(topic):
                    # Polled, because nothing notifies this coroutine of cache updates.
                    while self.coordinators.leader(topic, wanted[0]) == NO_LEADER:  # noqa: ASYNC110
                        await asyncio.sleep(_POLL_S)
        except TimeoutError:
            return  # The response has COORDINATOR_NOT_AVAILABLE.

    def _coordinator(
        self, request: ClientRequest, authorize: Authorize, key_type: int, key: str
    ) -> Coordinator:
        error, (node_id, host, port) = self._look_up(request, authorize, key_type, key)
        return Coordinator(
            key=key, node_id=node_id, host=host, port=port, error_code=error, error_message=""
        )

    def _look_up(
        self, request: ClientRequest, authorize: Authorize, key_type: int, key: str
    ) -> tuple[ErrorCode, tuple[int, str, int]]:
        if key_type == _GROUP and not authorize("DESCRIBE", "GROUP", key):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED, _NO_NODE
        if key_type == _TRANSACTION and not authorize("DESCRIBE", "TRANSACTIONAL_ID", key):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _NO_NODE
        if key_type == _SHARE:
            has_share_groups = request.header.api_version >= _SHARE_FROM
            error = (
                ErrorCode.COORDINATOR_NOT_AVAILABLE
                if has_share_groups
                else ErrorCode.INVALID_REQUEST
            )
            return error, _NO_NODE
        topic = GROUP_METADATA_TOPIC if key_type == _GROUP else TRANSACTION_STATE_TOPIC
        if topic not in self.view.cache.topics:
            self.auto_topics.create_internal(request, topic)
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, _NO_NODE
        leader = self.view.cache.brokers.get(self.coordinators.leader(topic, key))
        at = leader.endpoints.get(request.client.listener_name) if leader else None
        if leader is None or at is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, _NO_NODE
        return ErrorCode.NONE, (leader.broker_id, at.host, at.port)
