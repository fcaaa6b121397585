"""The order of a run's events: by their causes first, by clocks only between independent events.

No I/O.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Final

_LAST: Final = (float("inf"), 0)  # no stream is later


def causal_order(
    streams: Sequence[Sequence[int]], times_ms: Sequence[float], causes: Mapping[int, int]
) -> tuple[list[int], list[float]]:
    """Merge streams of rows so that no row precedes its cause or an earlier row of its stream.

    A cycle, which only damaged evidence has, is cut at its earliest row.

    Args:
        streams: the rows of each process, in the order in which it wrote them. Of two rows with
            the same time, that of the earlier stream is the first.
        times_ms: the time of each row, by its clock.
        causes: the row that must precede a row, such as the sending of what it received.

    Returns:
        The rows in their order, and a time for each. These times never decrease.
    """
    order: list[int] = []
    ordered_times: list[float] = []
    position = [0] * len(streams)
    is_ordered = bytearray(len(times_ms))
    parked: dict[int, list[int]] = {}  # cause -> streams that wait for it
    heap = [(times_ms[rows[0]], stream) for stream, rows in enumerate(streams) if rows]
    heapq.heapify(heap)
    ignored: set[int] = set()
    while heap or parked:
        if not heap:
            stream = _earliest(parked, streams, position, times_ms)
            ignored.add(streams[stream][position[stream]])
            heap.append((ordered_times[-1] if order else 0.0, stream))
        now, stream = heapq.heappop(heap)
        rows = streams[stream]
        at = position[stream]
        limit = heap[0] if heap else _LAST
        while True:
            row = rows[at]
            cause = causes.get(row)
            if cause is not None and not is_ordered[cause] and row not in ignored:
                parked.setdefault(cause, []).append(stream)
                break
            order.append(row)
            ordered_times.append(now)
            is_ordered[row] = 1
            at += 1
            for waiting in parked.pop(row, ()):
                due = max(now, times_ms[streams[waiting][position[waiting]]])
                heapq.heappush(heap, (due, waiting))
                limit = heap[0]
            if at == len(rows):
                break
            now = max(now, times_ms[rows[at]])
            if (now, stream) > limit:
                heapq.heappush(heap, (now, stream))
                break
        position[stream] = at
    return order, ordered_times


def _earliest(
    parked: dict[int, list[int]],
    streams: Sequence[Sequence[int]],
    position: Sequence[int],
    times_ms: Sequence[float],
) -> int:
    """Take the waiting stream with the earliest row out of `parked`."""
    waiting = [
        (times_ms[streams[s][position[s]]], s, c) for c, group in parked.items() for s in group
    ]
    _, stream, cause = min(waiting)
    parked[cause].remove(stream)
    if not parked[cause]:
        del parked[cause]
    return stream
