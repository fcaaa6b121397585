"""DescribeTransactions, key 65, version 0: answered by the coordinator of each transactional id.

No broker of this release has met one: its coordinator does not find it, any other broker says
NOT_COORDINATOR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.coordinators import Coordinators


@dataclass(frozen=True, slots=True)
class DescribeTransactions:
    """See LocalApi."""

    coordinators: Coordinators
    authorize_for: AuthorizeFor
    api_key: ClassVar[int] = 65

    async def answer(self, request: ClientRequest, message: DescribeTransactionsRequest) -> Any:
        """Refuse each id, in the order of the request."""
        return DescribeTransactionsResponse(
            transaction_states=[
                TransactionState(error_code=self._why(request, each), transactional_id=each)
                for each in message.transactional_ids
            ]
        )

    def _why(self, request: ClientRequest, transactional_id: str) -> ErrorCode:
        if not self.authorize_for(request)("DESCRIBE", "TRANSACTIONAL_ID", transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not self.coordinators.has_transactional_id(transactional_id):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
