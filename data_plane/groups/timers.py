"""Deadlines by key, without a clock: the caller says what time it is."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import count
from typing import Final

Action = Callable[[], None]


@dataclass(slots=True)
class _Deadline:
    at_ms: int
    action: Action
    queued_at_ms: int  # the time in the heap, which may be before `at_ms`


_FORGOTTEN_MAX: Final = 1_000  # entries of forgotten deadlines that may remain in the heap


class Timers:
    """At most one deadline for each key; setting it again replaces it."""

    def __init__(self) -> None:
        self._deadlines: dict[Hashable, _Deadline] = {}
        self._queue: list[tuple[int, int, Hashable]] = []
        self._sequence = count()

    def set(self, key: Hashable, at_ms: int, action: Action) -> None:
        """Run `action` at `at_ms`. This replaces an earlier deadline of `key`."""
        deadline = self._deadlines.get(key)
        if deadline is not None and deadline.queued_at_ms <= at_ms:
            # A heartbeat only postpones a deadline. Its heap entry stays, with the earlier time;
            # `run_due` then queues the deadline again.
            deadline.at_ms, deadline.action = at_ms, action
            return
        self._deadlines[key] = _Deadline(at_ms, action, at_ms)
        heapq.heappush(self._queue, (at_ms, next(self._sequence), key))

    def cancel(self, key: Hashable) -> None:
        """Forget the deadline of `key`, if there is one."""
        self._deadlines.pop(key, None)
        if len(self._queue) > 2 * len(self._deadlines) + _FORGOTTEN_MAX:
            self._queue = [
                entry
                for entry in self._queue
                if (deadline := self._deadlines.get(entry[2])) is not None
                and deadline.queued_at_ms == entry[0]
            ]
            heapq.heapify(self._queue)

    def next_at_ms(self) -> int | None:
        """Return the time at which `run_due` must be called next; None without deadlines."""
        return self._queue[0][0] if self._queue else None

    def run_due(self, now_ms: int) -> None:
        """Run every action whose time has come, in the order of their deadlines."""
        while self._queue and self._queue[0][0] <= now_ms:
            queued_at_ms, _, key = heapq.heappop(self._queue)
            deadline = self._deadlines.get(key)
            if deadline is None or deadline.queued_at_ms != queued_at_ms:
                continue
            if deadline.at_ms > now_ms:
                deadline.queued_at_ms = deadline.at_ms
                heapq.heappush(self._queue, (deadline.at_ms, next(self._sequence), key))
                continue
            del self._deadlines[key]
            deadline.action()
