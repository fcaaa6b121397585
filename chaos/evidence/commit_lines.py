"""Decoded transactions as commit lines: paths without the chroot, roles, outcomes, no secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Final

from chaos.witness import LoggedOperation, Transaction
from event_log.commits import (
    DIRECT_WRITERS,
    CommitLine,
    CommitOperation,
    CommitOutcome,
    is_secret,
    role_of,
)

OUTCOMES: Final = "/bridgehead/outcomes/"
_WITH_DATA: Final = ("create", "set")


class OutcomeContentError(Exception):
    """An outcome znode that cannot be read. Its text names it."""


def digest_of(data: bytes | None) -> str:
    """Return what stands for a content: the beginning of its SHA-256."""
    return hashlib.sha256(data or b"").hexdigest()[:16]


def text_of(path: str, data: bytes | None) -> str | None:
    """Return a content as text; None for what may be secret or is no text."""
    if is_secret(path):
        return None
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        return None


def below(chroot: str, path: str) -> str | None:
    """Return the path without the chroot; None for what lies outside of it."""
    if not path.startswith(f"{chroot}/") or path.startswith("/zookeeper/"):
        return None
    return path[len(chroot) :]


def commit_line(transaction: Transaction, chroot: str = "") -> CommitLine:
    """Return the line of one transaction.

    Raises:
        OutcomeContentError: an outcome znode of an applied transaction is not understood.
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
        tells = ("create", OUTCOMES), ("set", DIRECT_WRITERS)
        told = any(operation.kind == kind and path.startswith(where) for kind, where in tells)
        if told and not transaction.failed:
            line.outcomes.extend(_outcomes(path, operation.data))
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
        data=text_of(path, operation.data) if with_data else None,
        digest=digest_of(operation.data) if with_data else None,
    )


def _outcomes(path: str, data: bytes | None) -> Iterator[CommitOutcome]:
    try:
        for entry in json.loads(data or b"{}")["outcomes"]:
            broker_id, incarnation, sequence = entry["id"]
            for element, error, *_ in entry["elements"]:
                yield CommitOutcome(
                    broker_id=broker_id,
                    incarnation=incarnation,
                    sequence=sequence,
                    request_id=entry["request"],
                    element=element,
                    error=error,
                )
    except (AttributeError, KeyError, TypeError, ValueError) as wrong:
        raise OutcomeContentError(f"{path} is not understood: {wrong!r}") from None
