"""R6: an image has no metadata that ZooKeeper did not commit.

The zxid of each image must be the zxid of a transaction. The first zxid of a ZooKeeper leader's
epoch is exempt, because ZooKeeper writes no transaction with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from event_log.properties import Violation
from judge.history import History, place_of, row_of
from judge.properties.violations import violation


def check(history: History) -> Iterator[Violation | None]:
    """Look for the transaction of every image of this run."""
    if not history.evidence.manifest.zookeeper.logs:
        return
    first = history.evidence.manifest.zookeeper.first_zxid
    known = {commit.zxid for commit in history.evidence.commits}
    for event in history.of_kind["image_advanced"]:
        zxid = event["zxid"]
        if zxid <= first or zxid % (1 << 32) == 0:
            continue
        if zxid in known:
            yield None
            continue
        sentence = (
            f"the {event['side']} image of node {event['node']} has zxid {zxid}, which is not in "
            "ZooKeeper's transaction log"
        )
        yield violation("R6", place_of(event), [row_of(event)], sentence)
