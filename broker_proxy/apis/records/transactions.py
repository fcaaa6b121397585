"""The APIs of transaction coordinators, for a broker without transactions.

The coordinator of a transactional id is the leader of the partition of `__transaction_state` to
which the id belongs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from bridgehead.kafka_wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from bridgehead.slices import sliced
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from cluster_model.acls.authorization import Authorize

_STATES: Final = frozenset(
    {
        *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
        *("CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"),
    }
)


class ListTransactions:
    """Key 66: the list is always empty, so the client needs no permission."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_TRANSACTIONS

    async def handle(self, request: ClientRequest, message: ListTransactionsRequest) -> Any:
        """Return an empty list, and the states in the filter that Kafka does not know."""
        filters = dict.fromkeys(message.state_filters)
        return ListTransactionsResponse(
            unknown_state_filters=[state for state in filters if state not in _STATES]
        )


@dataclass(frozen=True, slots=True)
class DescribeTransactions:
    """Key 65."""

    coordinators: Coordinators
    authorize_for: AuthorizeFor
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_TRANSACTIONS

    async def handle(self, request: ClientRequest, message: DescribeTransactionsRequest) -> Any:
        """Return an error for each id, in the order of the request."""
        authorize = self.authorize_for(request)
        return DescribeTransactionsResponse(
            transaction_states=[
                TransactionState(
                    error_code=self._error(authorize, transactional_id),
                    transactional_id=transactional_id,
                )
                async for transactional_id in sliced(message.transactional_ids)
            ]
        )

    def _error(self, authorize: Authorize, transactional_id: str) -> ErrorCode:
        if not authorize("DESCRIBE", "TRANSACTIONAL_ID", transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not self.coordinators.has_transactional_id(transactional_id):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
