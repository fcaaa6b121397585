"""InitProducerId, key 22, versions 0 to 5: an id for an idempotent producer. KIP-98, KIP-360.

There are no transactions: a request with a transactional id gets UNSUPPORTED_VERSION. Clients do
not retry after this error.

Version notes:
    3: the request has the producer's current id and epoch; the producer gets a new id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from bridgehead.authorizer import Operation, ResourceType
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.apis.records.producer_ids import ProducerIds
from cluster_model.acls.authorization import CLUSTER_NAME

_UNSET: Final = -1
# Whether the client of a request may perform the operation on at least one resource of a type.
AuthorizeAny = Callable[[ClientRequest, Operation, ResourceType], bool]


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """Answers InitProducerId requests."""

    ids: ProducerIds
    authorize_for: AuthorizeFor
    authorize_any: AuthorizeAny
    api_key: ClassVar[ApiKey] = ApiKey.INIT_PRODUCER_ID

    async def handle(
        self, request: ClientRequest, message: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        """Return a new id with the epoch 0."""
        authorize = self.authorize_for(request)
        if message.transactional_id is not None:
            if not authorize("WRITE", "TRANSACTIONAL_ID", message.transactional_id):
                raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        elif not authorize(
            "IDEMPOTENT_WRITE", "CLUSTER", CLUSTER_NAME, log_if_denied=False
        ) and not self.authorize_any(request, "WRITE", "TOPIC"):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if (message.producer_id == _UNSET) != (message.producer_epoch == _UNSET):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if message.transactional_id == "":
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if message.transactional_id is not None:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        return InitProducerIdResponse(
            error_code=ErrorCode.NONE, producer_id=await self.ids.new_id(), producer_epoch=0
        )
