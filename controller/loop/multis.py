"""Divides the decided elements of many requests into multis, within ZooKeeper's limits. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import orjson

from bridgehead.kafka_wire.errors import ErrorCode
from controller.apis.base import Decided, Outcome
from controller.requests.pending_request import PendingRequest
from controller.store.outcomes import RequestOutcomes
from controller.store.zookeeper import MULTI_BYTES_MAX, OPERATIONS_MAX
from envelope.messages import RequestIdentity

# The fence, the commit counter and the outcomes' znode precede the effects.
_EFFECTS_MAX: Final = OPERATIONS_MAX - 3
# The size of one outcome in the outcomes' znode, without its texts.
_OUTCOME_BYTES: Final = 148
TOO_LARGE: Final = Outcome(ErrorCode.INVALID_REQUEST, "The request is too large for ZooKeeper.")


class Entry(NamedTuple):
    """One element that has records. All its operations go into the same multi."""

    pending: PendingRequest
    decided: Decided
    operations: Sequence[bytes]


def fits_in_multi(operations: Sequence[bytes], decided: Decided) -> bool:
    """False for an element too large for a multi: ZooKeeper would close the connection."""
    size = sum(map(len, operations)) + _outcome_bytes(decided)
    return len(operations) <= _EFFECTS_MAX and size <= MULTI_BYTES_MAX


def split_into_multis(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Fill multis up to the store's limits, in order. Every entry must satisfy fits_in_multi()."""
    multi: list[Entry] = []
    operations = size = 0
    for entry in entries:
        more = len(entry.operations)
        bytes_more = sum(map(len, entry.operations)) + _outcome_bytes(entry.decided)
        if multi and (operations + more > _EFFECTS_MAX or size + bytes_more > MULTI_BYTES_MAX):
            yield multi
            multi, operations, size = [], 0, 0
        multi.append(entry)
        operations += more
        size += bytes_more
    if multi:
        yield multi


def _outcome_bytes(decided: Decided) -> int:
    outcome = decided.outcome
    return _OUTCOME_BYTES + len(orjson.dumps((decided.element, outcome.message, outcome.numbers)))


def outcomes_of(multi: Sequence[Entry]) -> list[RequestOutcomes]:
    """Group the elements of a multi by request."""
    grouped: dict[RequestIdentity, tuple[str, dict[str, Outcome]]] = {}
    for pending, decided, _ in multi:
        _, elements = grouped.setdefault(pending.identity, (pending.request_id, {}))
        elements[decided.element] = decided.outcome
    return [RequestOutcomes(identity, *outcomes) for identity, outcomes in grouped.items()]
