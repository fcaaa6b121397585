"""/controller is deleted only by its owner.

It is deleted when the owner's session ends, or in a transaction that checks the epoch.
KAFKA-6082: after an error, a controller without this check deletes the znode of its successor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge.history import CONTROLLER, History, writes_of
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="W5",
    name="controller_znode_belongs_to_owner",
    statement="only the session that owns /controller deletes it: at the end of the session, "
    "or in a transaction that checks the epoch; a KRaft controller replaces it when it claims it, "
    "and no node deletes a KRaft controller's",
    witnesses=("commits",),
    row="operations that created or deleted /controller",
    key="<zxid>",
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied creation and deletion of /controller."""
    first = history.evidence.first.get(CONTROLLER)
    owner = first.ephemeral_owner if first is not None else None
    since = first.czxid if first is not None else 0
    owner_is_kraft = first is not None and owner is None  # persistent
    for commit in history.applied:
        for operation in writes_of(commit, "controller"):
            if operation.kind == "create":
                owner, since = commit.session, commit.zxid
                owner_is_kraft = history.is_written_by_kraft(commit)
                yield None
            elif operation.kind == "delete":
                checked = any(
                    o.kind == "check" and o.role == "epoch" and o.version >= 0
                    for o in commit.operations
                )
                ends_krafts = owner_is_kraft and commit.session not in history.sessions
                if ends_krafts or history.is_written_by_kraft(commit):
                    yield None
                    continue
                by_owner = commit.session == owner
                if by_owner and (commit.kind == "close_session" or checked):
                    yield None
                    continue
                how = " without checking the epoch"
                if not by_owner:
                    how = f", which belongs to {f'session {owner}' if owner else 'no session'}"
                sentence = f"zxid {commit.zxid}: session {commit.session} deleted {CONTROLLER}{how}"
                rows = [zxid_row(commit.zxid), zxid_row(since)]
                yield SPEC.violation(commit.zxid, rows, sentence)


INPUTS: Final = ("silver/commits", "silver/dumps", "silver/sessions", "silver/terms", "runs")
SQL: Final = """
WITH touched AS (
  SELECT c.run, c.zxid, c.session, c.kind AS how,
    exists(operations, o -> o.kind = 'check' AND o.role = 'epoch' AND o.version >= 0) AS checked,
    operations
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid
  WHERE NOT c.failed AND exists(operations, o -> o.role = 'controller')),
seen AS (
  SELECT run, zxid, session, how, checked, position, o.kind AS kind
  FROM touched LATERAL VIEW posexplode(operations) x AS position, o
  WHERE o.role = 'controller' AND o.kind IN ('create', 'delete')
  UNION ALL
  SELECT run, czxid, ephemeral_owner, 'first', true, -1, 'held' FROM dumps
  WHERE NOT is_final AND path = '/controller'),
each AS (
  SELECT /*+ BROADCAST(k), BROADCAST(s) */ e.*, s.node IS NULL AS is_outside,
    k.zxid IS NOT NULL OR (e.kind = 'held' AND e.session IS NULL) AS is_kraft
  FROM seen e LEFT JOIN sessions s ON e.run = s.run AND e.session = s.session
  LEFT JOIN terms k ON e.run = k.run AND e.session = k.session AND k.is_kraft
    AND e.zxid >= k.zxid AND e.zxid < k.until),
owned AS (
  SELECT *, last_value(CASE WHEN kind <> 'delete' THEN struct(session, zxid, is_kraft) END, true)
    OVER (PARTITION BY run ORDER BY zxid, position
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS owner
  FROM each),
judged AS (
  SELECT *, kind = 'create' OR is_kraft OR (is_outside AND coalesce(owner.is_kraft, false))
      OR (session <=> owner.session AND (how = 'close_session' OR checked))
    AS good FROM owned WHERE kind <> 'held')
SELECT run, CASE WHEN NOT good THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid), concat('zxid/', coalesce(owner.zxid, 0))) AS rows,
  concat('zxid ', zxid, ': session ', session, ' deleted /controller',
    CASE WHEN session <=> owner.session THEN ' without checking the epoch'
         ELSE concat(', which belongs to ', coalesce(concat('session ', owner.session),
           'no session')) END) AS sentence
FROM judged
"""
