"""Clocks: the system clock, and one that tests advance."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic nanoseconds for durations, wall-clock milliseconds for timestamps."""

    def mono_ns(self) -> int: ...
    def wall_ms(self) -> int: ...


class SystemClock:
    """The clocks of this host."""

    def mono_ns(self) -> int:
        """Return monotonic nanoseconds, comparable between the processes of a host."""
        return time.monotonic_ns()

    def wall_ms(self) -> int:
        """Return milliseconds since 1970; may jump."""
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that advances only on demand."""

    def __init__(self, mono_ns: int = 0, wall_ms: int = 1_700_000_000_000) -> None:
        self._mono_ns = mono_ns
        self._wall_ms = wall_ms

    def mono_ns(self) -> int:
        return self._mono_ns

    def wall_ms(self) -> int:
        return self._wall_ms

    def advance_ms(self, by_ms: int) -> None:
        """Advance both clocks."""
        self._mono_ns += by_ms * 1_000_000
        self._wall_ms += by_ms
