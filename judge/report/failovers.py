"""The parts of each failover: from the end of one controller to the first decision of the next.

A controller ends with its resignation, or with the last event of its process. If no request waits
when the next controller becomes active, the time until one arrives is idle and not a part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

Parts = list[tuple[str, float]]  # milliseconds, in order


def failovers(terms: Sequence[Mapping[str, Any]]) -> list[tuple[str, Parts]]:
    """Return the parts of each failover; `terms` are rows of gold/controller_terms, in order."""
    rows = []
    for before, after in pairwise(terms):
        start, active = before["ended_ms"], after["active_ms"]
        if start is None or active is None:
            continue
        loaded = after["loaded_ms"] or 0.0
        parts: Parts = []
        closed = before["closed_ms"]
        if closed is not None and closed > start:
            parts.append(("until the old session ends", float(closed - start)))
            start = closed
        parts.append(("election", max(active - start - loaded, 0.0)))
        parts.append(("loading the image", loaded))
        if after["first_decision_ms"] is not None:
            waits_from = max(active, after["first_received_ms"] or active)
            first = float(after["first_decision_ms"] - waits_from)
            parts.append(("until the first decision", max(first, 0.0)))
        rows.append((f"epoch {before['epoch']} to {after['epoch']}", parts))
    return rows
