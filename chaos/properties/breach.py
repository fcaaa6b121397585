"""How a property says what it found."""

from __future__ import annotations

from event_log.promises import Violation


def zxid(number: int) -> str:
    """Return a transaction's place as rows of violations have it."""
    return f"zxid/{number}"


def violation(of: str, key: object, rows: list[str], sentence: str) -> Violation:
    """Return one counter-example of the property with this id."""
    return Violation(property=of, key=str(key), rows=tuple(rows), sentence=sentence)
