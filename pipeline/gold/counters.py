"""Nodes' counters compared with their events: a row for each counter in each snapshot.

`shown` is the value that the node reported, and `counted` is the number of the node's earlier
events that the counter counts.
"""

from __future__ import annotations

from typing import Final

from judge.properties.metrics_equal_events import INPUTS, SNAPSHOTS
from pipeline.query import query
from pipeline.table import Table

COUNTERS: Final = Table(
    name="gold/counters",
    inputs=INPUTS,
    schema="run STRING, node STRING, boot STRING, seq BIGINT, wall_ms BIGINT, counter STRING, "
    "shown DOUBLE, counted BIGINT",
    build=query(
        f"{SNAPSHOTS} SELECT run, node, boot, seq, wall_ms, p.name AS counter, p.shown, p.counted "
        "FROM snapshots"
    ),
)
