"""AllocateProducerIds, key 67, version 0: a broker gets a block of producer ids. KIP-730.

Served only with bridgehead.data.plane=true. The znode
/latest_producer_id_block stores the block that was allocated last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.image import MetadataImage
from cluster_model.records import PRODUCER_IDS_PER_BLOCK, ProducerIdBlockRecord
from controller.apis.base import AdminApi, Decided, Decision, Outcome, RequestContext, Results

_BLOCK: Final = "block"
_LAST_ID: Final = 2**63 - 1


class AllocateProducerIds(AdminApi):
    """Decides AllocateProducerIds requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ALLOCATE_PRODUCER_IDS

    def decide(
        self,
        context: RequestContext,
        request: AllocateProducerIdsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. A client needs CLUSTER_ACTION; a broker's own request does not."""
        if committed:
            return Decision([])
        if not (
            context.made_by_broker or context.authorize("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
        ):
            denied = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return Decision.of_whole_request(denied)
        broker = image.brokers.get(request.broker_id)
        if broker is None:
            return Decision.of_whole_request(Outcome(ErrorCode.BROKER_ID_NOT_REGISTERED))
        if broker.epoch != request.broker_epoch:
            return Decision.of_whole_request(Outcome(ErrorCode.STALE_BROKER_EPOCH))
        ids = image.producer_ids
        if ids is None or ids.next_id > _LAST_ID - PRODUCER_IDS_PER_BLOCK:
            return Decision.of_whole_request(Outcome(ErrorCode.UNKNOWN_SERVER_ERROR))
        outcome = Outcome(ErrorCode.NONE, numbers=(ids.next_id,))
        record = ProducerIdBlockRecord(request.broker_id, ids.next_id)
        return Decision([Decided(_BLOCK, outcome, (record,))])

    def response(
        self, context: RequestContext, request: AllocateProducerIdsRequest, results: Results
    ) -> Any:
        rejected = self.whole_request_error(context, request, results)
        if rejected is not None:
            return rejected
        outcome = results.outcomes[_BLOCK]
        if not outcome.succeeded:  # a conflict: another process wrote the znode
            return AllocateProducerIdsResponse(error_code=outcome.error)
        (first_id,) = outcome.numbers
        return AllocateProducerIdsResponse(
            producer_id_start=first_id, producer_id_len=PRODUCER_IDS_PER_BLOCK
        )
