"""An image has no metadata that ZooKeeper did not commit.

The zxid of each image must be the zxid of a transaction. The first zxid of a ZooKeeper leader's
epoch is exempt, because ZooKeeper writes no transaction with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import History, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="R6",
    name="image_is_committed",
    statement="an image has no metadata that ZooKeeper did not commit",
    witnesses=("commits", "events"),
    row="image_advanced events with a zxid of this run, except the first zxid of a ZooKeeper "
    "leader's epoch",
    key="<node>/<boot>/<seq>",
    gap_blocks_fail=True,
)


def check(history: History) -> Iterator[Violation | None]:
    """Look for the transaction of every image of this run."""
    if not history.evidence.manifest.zookeeper.logs:
        return
    first = history.evidence.manifest.zookeeper.first_zxid
    zxids = {commit.zxid for commit in history.evidence.commits}
    for event in history.of_kind["image_advanced"]:
        zxid = event["zxid"]
        if zxid <= first or zxid % (1 << 32) == 0:
            continue
        if zxid in zxids:
            yield None
            continue
        sentence = (
            f"the {event['side']} image of node {event['node']} has zxid {zxid}, which is not in "
            "ZooKeeper's transaction log"
        )
        yield SPEC.violation(place_of(event), [row_of(event)], sentence)


INPUTS: Final = ("silver/image_advanced", "silver/commits", "runs")
SQL: Final = f"""
WITH known AS (SELECT DISTINCT run, zxid FROM commits),
images AS (
  SELECT /*+ BROADCAST(r) */ e.run, e.node, e.boot, e.seq, e.side, e.zxid,
    k.run IS NOT NULL AS is_committed
  FROM image_advanced e JOIN runs r ON e.run = r.run AND r.logs AND e.zxid > r.first_zxid
  LEFT JOIN known k ON e.run = k.run AND e.zxid = k.zxid
  WHERE e.zxid % {1 << 32}L <> 0)
SELECT run, CASE WHEN NOT is_committed THEN {sql.place_of("images")} END AS key,
  array({sql.row_of("images")}) AS rows,
  concat('the ', side, ' image of node ', node, ' has zxid ', zxid,
    ', which is not in ZooKeeper''s transaction log') AS sentence
FROM images
"""
