"""The time from ZooKeeper's confirmation of a commit until each broker has the image.

It is computed only if the controller and the broker are on the same host and the broker had an
image with that exact zxid.
"""

from __future__ import annotations

from typing import Final

from pipeline.gold.latency import PERCENTILE_COLUMNS, PERCENTILES
from pipeline.query import query
from pipeline.table import Table

_PROPAGATION: Final = f"""
WITH commits_done AS (
  SELECT e.run, e.zxid, min(e.mono_ns) AS mono_ns, min(e.host_boot_id) AS host
  FROM commit_acknowledged e GROUP BY e.run, e.zxid),
images AS (
  SELECT run, node, boot, zxid, min(mono_ns) AS mono_ns, min(host_boot_id) AS host
  FROM image_advanced WHERE side = 'broker' GROUP BY run, node, boot, zxid),
pairs AS (
  SELECT i.run, i.node, i.boot, (i.mono_ns - c.mono_ns) DIV 1000 AS us
  FROM images i JOIN commits_done c ON i.run = c.run AND i.zxid = c.zxid AND i.host = c.host)
SELECT run, node, boot, {PERCENTILES} FROM pairs GROUP BY run, node, boot
"""

PROPAGATION: Final = Table(
    name="gold/propagation",
    inputs=("silver/commit_acknowledged", "silver/image_advanced"),
    schema=f"run STRING, node STRING, boot STRING, {PERCENTILE_COLUMNS}",
    build=query(_PROPAGATION),
)
