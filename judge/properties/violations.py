"""Builds the violations that checks report."""

from __future__ import annotations

from collections.abc import Iterable

from event_log.properties import Violation


class ExtraViolation(Violation):
    """A violation that does not count in the number of judged rows."""


def zxid_row(zxid: int) -> str:
    """Return the text that names a transaction in the rows of a violation."""
    return f"zxid/{zxid}"


def listed(zxids: Iterable[int]) -> str:
    """Return zxids as text for a sentence."""
    return ", ".join(map(str, sorted(zxids)))


def violation(of: str, key: object, rows: Iterable[str], sentence: str) -> Violation:
    """Return one counter-example of the property with this id."""
    return Violation(property=of, key=str(key), rows=tuple(rows), sentence=sentence)


def extra_violation(of: str, key: str, rows: Iterable[str], sentence: str) -> ExtraViolation:
    """Return an ExtraViolation."""
    return ExtraViolation(property=of, key=key, rows=tuple(rows), sentence=sentence)
