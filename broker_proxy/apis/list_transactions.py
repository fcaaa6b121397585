"""ListTransactions, key 66, versions 0 and 1: every broker lists those that it coordinates: none.

Version notes:
    1: a filter by duration; a negative one filters nothing.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from broker_proxy.apis.base import ClientRequest

_STATES: Final = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)


class ListTransactions:
    """See LocalApi. Without rights the list is empty too, so that none are asked for."""

    api_key: ClassVar[int] = 66

    async def answer(self, request: ClientRequest, message: ListTransactionsRequest) -> Any:
        """Return no transactions, and the states that do not exist."""
        asked = dict.fromkeys(message.state_filters)
        return ListTransactionsResponse(
            unknown_state_filters=[state for state in asked if state not in _STATES]
        )
