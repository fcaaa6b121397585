"""What a property is here: a question in SQL, one row for each thing judged.

`sql` gives `run`, `key`, `rows` (an array) and `sentence`; where `key` is null the promise held.
Tables are named by the last part of their names. What is promised, which witnesses it needs and
how a verdict comes about stands in event_log.promises, which both judges read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from event_log.promises import PROMISES, Promise

_BY_ID: Final = {each.id: each for each in PROMISES}
NEVER: Final = f"{1 << 62}L"


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One promise, and the question that looks for its breach."""

    id: str
    inputs: Sequence[str]
    sql: str

    @property
    def promise(self) -> Promise:
        """What the registry says of it."""
        return _BY_ID[self.id]


def row_of(alias: str) -> str:
    """Return SQL for an event's place as rows of violations have it."""
    return f"concat('event/', {place_of(alias)})"


def place_of(alias: str) -> str:
    """Return SQL for an event's place as keys of violations have it."""
    return f"concat({alias}.node, '/', {alias}.boot, '/', {alias}.seq)"
