"""Randomness that a decision may take back: deciding again draws the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from controller.apis.base import RandomSource


class Redrawn:
    """A source that gives the remembered draws first, as long as the same is asked for.

    A request whose placement a policy was asked about must be placed likewise when it is decided
    again with the policy's word, or it would have to be asked about anew.
    """

    def __init__(self, source: RandomSource, remembered: list[tuple[Any, Any]]) -> None:
        """`remembered` holds what was asked for and drawn; new draws are added to it."""
        self._source = source
        self._remembered = remembered
        self._next = 0

    def randrange(self, start: int, /) -> int:
        """See RandomSource."""
        drawn: int = self._draw(("randrange", start), lambda: self._source.randrange(start))
        return drawn

    def randbytes(self, n: int) -> bytes:
        """See RandomSource."""
        drawn: bytes = self._draw(("randbytes", n), lambda: self._source.randbytes(n))
        return drawn

    def _draw(self, asked: tuple[str, int], draw: Callable[[], Any]) -> Any:
        at, self._next = self._next, self._next + 1
        if at < len(self._remembered) and self._remembered[at][0] == asked:
            return self._remembered[at][1]
        del self._remembered[at:]
        drawn = draw()
        self._remembered.append((asked, drawn))
        return drawn
