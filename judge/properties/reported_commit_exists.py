"""Every commit that a controller reports is in ZooKeeper's transaction log.

A controller that takes a lost reply for a success reports a commit that ZooKeeper does not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import History, place_of, row_of
from judge.property import PropertySpec, Violation

SPEC: Final = PropertySpec(
    id="K4",
    name="reported_commit_exists",
    statement="every commit that a controller reports is in ZooKeeper's transaction log",
    witnesses=("commits", "events"),
    row="commit_acknowledged events",
    key="<node>/<boot>/<seq>",
    gap_blocks_fail=True,
)


def check(history: History) -> Iterator[Violation | None]:
    """Look for the transaction of every reported commit."""
    if not history.evidence.manifest.zookeeper.logs:
        return
    sessions = {commit.zxid: commit.session for commit in history.applied}
    for event in history.of_kind["commit_acknowledged"]:
        session = sessions.get(event["zxid"])
        if session == event["session"]:
            yield None
            continue
        wrong = "ZooKeeper applied no such transaction"
        if session is not None:
            wrong = f"session {session} wrote that transaction"
        sentence = (
            f"node {event['node']} reports that commit {event['number']} of session "
            f"{event['session']} has zxid {event['zxid']}, but {wrong}"
        )
        yield SPEC.violation(place_of(event), [row_of(event)], sentence)


INPUTS: Final = ("silver/commit_acknowledged", "silver/commits", "runs")
SQL: Final = f"""
WITH applied AS (
  SELECT c.run, c.zxid, c.session AS written_by FROM commits c
  JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid WHERE NOT c.failed),
reported AS (
  SELECT e.run, e.node, e.boot, e.seq, e.number, e.zxid, e.session, a.written_by
  FROM commit_acknowledged e JOIN runs r ON e.run = r.run AND r.logs
  LEFT JOIN applied a ON e.run = a.run AND e.zxid = a.zxid)
SELECT run, CASE WHEN NOT session <=> written_by THEN {sql.place_of("reported")} END AS key,
  array({sql.row_of("reported")}) AS rows,
  concat('node ', node, ' reports that commit ', number, ' of session ', session, ' has zxid ',
    zxid, ', but ', CASE WHEN written_by IS NULL THEN 'ZooKeeper applied no such transaction'
      ELSE concat('session ', written_by, ' wrote that transaction') END) AS sentence
FROM reported
"""
