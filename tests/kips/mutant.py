"""A small fault in the product that makes the statements of some rows of docs/kips.md false."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """`old` occurs once in `file`. If `new` replaces it, a test of each row must fail."""

    rows: tuple[str, ...]
    file: str
    old: str
    new: str


class Without(NamedTuple):
    """Rows without a mutant, and why."""

    rows: tuple[str, ...]
    reason: str
