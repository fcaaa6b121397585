"""Records a fault in the events of the harness, in every tier."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from bridgehead.cluster.event_lines import EventLines


@contextlib.contextmanager
def recorded_fault(lines: EventLines, action: str, target: int | str) -> Iterator[None]:
    """Record that a fault is injected, and that it is healed. See chaos.fault.Target."""
    fields = {"action": action, "target": str(target)}
    lines.append("fault_injected", **fields)
    try:
        yield
    finally:
        lines.append("fault_healed", **fields)
