"""Values that count how often they are compared, to show that a check takes linear time."""

from __future__ import annotations


class CountedName(str):
    """A name that counts comparisons."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class CountedId(int):
    """A number that counts comparisons."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedId.comparisons += 1
        return int.__eq__(self, other)

    __hash__ = int.__hash__
