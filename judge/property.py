"""What a property is, and how a counter-example to it is reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Runs(StrEnum):
    """The runs to which a property applies. The value is why it does not apply to the others."""

    ALL = ""
    WITH_AUTHORIZER = "the run has no authorizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One counter-example. `rows` are the evidence for it, in order.

    Each row is `zxid/<zxid>`, `event/<node>/<boot>/<seq>`, `file/<path>` or `znode<path>`.
    """

    property: str
    key: str
    rows: tuple[str, ...]
    sentence: str


class ExtraViolation(Violation):
    """A violation that does not count in the number of judged rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertySpec:
    """One property. Both judges identify a violation by the same key."""

    id: str
    name: str
    statement: str
    witnesses: tuple[str, ...]  # the evidence that it needs: commits, events, clients
    row: str  # what counts as one row
    key: str  # how a violation's key is spelled
    gap_blocks_pass: bool = True  # a gap in a witness could hide a violation
    gap_blocks_fail: bool = False  # a gap in a witness could explain a violation
    violated: str = "FAIL"  # the verdict after a violation
    applies_to: Runs = Runs.ALL

    def violation(self, key: object, rows: Iterable[str], sentence: str) -> Violation:
        """Return one counter-example."""
        return Violation(property=self.id, key=str(key), rows=tuple(rows), sentence=sentence)

    def extra_violation(self, key: str, rows: Iterable[str], sentence: str) -> ExtraViolation:
        """Return a counter-example that is not one of the judged rows."""
        return ExtraViolation(property=self.id, key=key, rows=tuple(rows), sentence=sentence)


def violation_order(violation: Violation) -> tuple[int, str, str]:
    """Sort key of violations of one property; the first one's sentence explains the verdict."""
    return len(violation.key), violation.key, violation.sentence


def zxid_row(zxid: int) -> str:
    """Return the text that names a transaction in the rows of a violation."""
    return f"zxid/{zxid}"


def listed(zxids: Iterable[int]) -> str:
    """Return zxids as text for a sentence."""
    return ", ".join(map(str, sorted(zxids)))
