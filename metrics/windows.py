"""Kafka's own way of forgetting: rates and quantiles over a few samples of a window. Pure."""

from __future__ import annotations

from collections import deque


class Rate:
    """Events per second over `samples` windows of `window_ms`, as Kafka's SampledStat has it.

    Time counts from the oldest sample kept, and never as less than all windows but one, so that
    the first event after a pause is not reported as thousands a second.
    """

    def __init__(self, samples: int, window_ms: int) -> None:
        self._samples = samples
        self._window_s = window_ms / 1000
        self._windows: deque[list[float]] = deque()  # [start, count]

    def record(self, now_s: float) -> None:
        """Count one event."""
        if not self._windows or now_s - self._windows[-1][0] >= self._window_s:
            self._windows.append([now_s, 0])
        self._windows[-1][1] += 1
        self._forget(now_s)

    def measure(self, now_s: float) -> float:
        """Return the rate as of now."""
        self._forget(now_s)
        if not self._windows:
            return 0.0
        elapsed = now_s - self._windows[0][0]
        least = (self._samples - 1) * self._window_s
        return sum(count for _, count in self._windows) / max(elapsed, least, self._window_s)

    def _forget(self, now_s: float) -> None:
        while self._windows and now_s - self._windows[0][0] >= self._samples * self._window_s:
            self._windows.popleft()


class Quantiles:
    """Exact quantiles of the last `size` values."""

    def __init__(self, size: int = 1024) -> None:
        self._values: deque[float] = deque(maxlen=size)

    def record(self, value: float) -> None:
        """Add one value."""
        self._values.append(value)

    def measure(self, *quantiles: float) -> list[float]:
        """Return the values at `quantiles` (0 to 1); zeros when there is nothing yet."""
        ordered = sorted(self._values)
        if not ordered:
            return [0.0] * len(quantiles)
        last = len(ordered) - 1
        return [ordered[min(last, int(q * len(ordered)))] for q in quantiles]
