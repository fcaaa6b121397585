"""Rates and averages over sample windows, as in Kafka, and quantiles of the last values. Pure."""

from __future__ import annotations

from collections import deque


class _Sample:
    """The sum of events since `start_ms`. The last event was at `last_ms`."""

    __slots__ = ("count", "last_ms", "start_ms")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_ms = now_ms
        self.count = 0.0


class Rate:
    """Events per second over `samples` windows of `window_ms`, like Kafka 3.9's class Rate.

    A sample has the events of one window. The measured time begins with the oldest kept sample. If
    it is shorter than the configured windows, the missing windows count as empty, so the first
    event after a pause causes no spike. One sample more than configured is kept, because a part of
    the oldest sample may belong to the measured time.
    """

    def __init__(self, samples: int, window_ms: int) -> None:
        self._samples_max = samples
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, now_s: float, amount: float = 1) -> None:
        """Count one event, or an amount such as bytes."""
        now_ms = round(now_s * 1000)
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.count += amount
        sample.last_ms = now_ms

    def take_back(self, amount: float = 1) -> None:
        """Remove the last event from the count."""
        self._samples[self._current].count -= amount

    def measure(self, now_s: float) -> float:
        """Return the rate at `now_s`."""
        elapsed_ms = self.elapsed_ms(now_s)  # drops old samples
        return sum(sample.count for sample in self._samples) / (elapsed_ms / 1000)

    def elapsed_ms(self, now_s: float) -> int:
        """Return the measured time span at `now_s`."""
        now_ms = round(now_s * 1000)
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        self._forget(now_ms)
        elapsed_ms = now_ms - min(sample.start_ms for sample in self._samples)
        missing = max(self._samples_max - 1 - elapsed_ms // self._window_ms, 0)
        return max(elapsed_ms + missing * self._window_ms, 1)

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._samples_max + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def _forget(self, now_ms: int) -> None:
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._samples_max * self._window_ms:
                sample.reset(now_ms)


class Average:
    """The mean of the values in the last `samples` windows; 0 if there are none."""

    def __init__(self, samples: int = 2, window_ms: int = 30_000) -> None:
        self._window_s = window_ms / 1000
        self._windows: deque[tuple[float, float, int]] = deque(maxlen=samples)  # start, sum, count

    def record(self, value: float, now_s: float) -> None:
        """Add one value."""
        if self._windows and now_s - self._windows[-1][0] < self._window_s:
            since, total, count = self._windows.pop()
            self._windows.append((since, total + value, count + 1))
        else:
            self._windows.append((now_s, value, 1))

    def measure(self, now_s: float) -> float:
        """Return the mean at `now_s`."""
        oldest_s = now_s - self._window_s * (self._windows.maxlen or 0)
        kept = [(total, count) for since, total, count in self._windows if since > oldest_s]
        return sum(total for total, _ in kept) / max(sum(count for _, count in kept), 1)


class Quantiles:
    """Exact quantiles of the last `size` values."""

    def __init__(self, size: int = 1024) -> None:
        self._values: deque[float] = deque(maxlen=size)

    def record(self, value: float) -> None:
        """Add one value."""
        self._values.append(value)

    def measure(self, *quantiles: float) -> list[float]:
        """Return the values at `quantiles` (0 to 1); zeros if there are no values."""
        ordered = sorted(self._values)
        if not ordered:
            return [0.0] * len(quantiles)
        last = len(ordered) - 1
        return [ordered[min(last, int(q * len(ordered)))] for q in quantiles]
