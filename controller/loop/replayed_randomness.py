"""Repeatable randomness: a decision that is made again draws the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from controller.apis.base import RandomSource


class ReplayedRandom:
    """Repeats the remembered draws, as long as the calls are the same; then draws new values.

    A policy checks the placement of a topic. The decision that uses the policy's result must place
    the topic in the same way.
    """

    def __init__(self, source: RandomSource, remembered: list[tuple[Any, Any]]) -> None:
        """`remembered` has the previous calls and their results. New draws are added to it."""
        self._source = source
        self._remembered = remembered
        self._next = 0

    def randrange(self, start: int, /) -> int:
        drawn: int = self._draw(("randrange", start), lambda: self._source.randrange(start))
        return drawn

    def randbytes(self, n: int) -> bytes:
        drawn: bytes = self._draw(("randbytes", n), lambda: self._source.randbytes(n))
        return drawn

    def _draw(self, call: tuple[str, int], draw: Callable[[], Any]) -> Any:
        at, self._next = self._next, self._next + 1
        if at < len(self._remembered) and self._remembered[at][0] == call:
            return self._remembered[at][1]
        del self._remembered[at:]
        drawn = draw()
        self._remembered.append((call, drawn))
        return drawn
