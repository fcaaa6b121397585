"""Converts decoded transactions to commit lines, without the chroot and without secrets."""

from __future__ import annotations

import json
from typing import Final

import orjson

from event_log.commits import (
    DIRECT_WRITERS,
    CommitLine,
    CommitOperation,
    CommitOutcome,
    content_digest,
    content_text,
    role_of,
)
from judge.transaction_log import LoggedOperation, Transaction

OUTCOMES: Final = "/bridgehead/outcomes/"
_PLACES_OF_OUTCOMES: Final = {"create": OUTCOMES, "set": DIRECT_WRITERS}
_WITH_DATA: Final = ("create", "set")


def below(chroot: str, path: str) -> str | None:
    """Return the path without the chroot; None outside the chroot and for ZooKeeper's own paths."""
    if not path.startswith(f"{chroot}/") or path.startswith("/zookeeper/"):
        return None
    return path[len(chroot) :]


def commit_line(transaction: Transaction, chroot: str = "") -> CommitLine:
    """Return the line of one transaction.

    An outcome znode that another program wrote in a different format adds no outcomes.
    """
    line = CommitLine(
        zxid=transaction.zxid,
        session=f"0x{transaction.session:x}",
        time_ms=transaction.time_ms,
        kind=transaction.kind,
        failed=transaction.failed,
    )
    for operation in transaction.operations:
        if not operation.path:
            if transaction.failed:
                line.operations.append(CommitOperation(kind=operation.kind, error=operation.error))
            continue
        path = below(chroot, operation.path)
        if path is None:
            continue
        line.operations.append(_operation(operation, path))
        place = _PLACES_OF_OUTCOMES.get(operation.kind)
        if place is not None and path.startswith(place) and not transaction.failed:
            line.outcomes.extend(_outcomes(operation.data))
    return line


def _operation(operation: LoggedOperation, path: str) -> CommitOperation:
    with_data = operation.kind in _WITH_DATA
    return CommitOperation(
        kind=operation.kind,
        path=path,
        role=role_of(operation.kind, path),
        version=operation.version,
        ephemeral=operation.ephemeral,
        error=operation.error,
        data=content_text(path, operation.data) if with_data else None,
        digest=content_digest(operation.data) if with_data else None,
    )


def _outcomes(data: bytes | None) -> list[CommitOutcome]:
    try:
        outcomes = [
            CommitOutcome(
                broker_id=broker_id,
                incarnation=incarnation,
                sequence=sequence,
                request_id=entry["request"],
                element=element,
                error=error,
            )
            for entry in json.loads(data or b"{}")["outcomes"]
            for broker_id, incarnation, sequence in [entry["id"]]
            for element, error, *_ in entry["elements"]
        ]
        orjson.dumps(outcomes)  # TypeError: an integer beyond 64 bits, or a lone surrogate
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return []
    return outcomes if all(map(_has_types, outcomes)) else []


def _has_types(outcome: CommitOutcome) -> bool:
    numbers = (outcome.broker_id, outcome.sequence, outcome.error)
    texts = (outcome.incarnation, outcome.request_id, outcome.element)
    return {*map(type, numbers)} == {int} and {*map(type, texts)} == {str}
