"""Each election raises the epoch by one, in the transaction that creates /controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge import sql
from judge.history import EPOCH, History, epoch_of, writes_of
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="W4",
    name="epochs_step_by_one",
    statement="each election raises the epoch by one, in the transaction that creates /controller",
    witnesses=("commits",),
    row="transactions that created /controller or set /controller_epoch",
    key="<zxid>",
    gap_blocks_fail=True,
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied transaction that creates /controller or sets /controller_epoch."""
    first = history.evidence.first.get(EPOCH)
    epoch = epoch_of(first.data) if first is not None else 0
    for commit in history.applied:
        created = any(o.kind == "create" for o in writes_of(commit, "controller"))
        raised = [o for o in writes_of(commit, "epoch") if o.kind == "set"]
        if not created and not raised:
            continue  # Creating /controller_epoch is not an election.
        before, epoch = epoch, epoch_of(raised[0].data) if raised else epoch
        wrong = None
        if not created:
            wrong = "set the epoch without creating /controller"
        elif not raised:
            wrong = "created /controller without raising the epoch"
        elif epoch != before + 1:
            wrong = f"set epoch {epoch} after epoch {before}"
        sentence = f"zxid {commit.zxid}: session {commit.session} {wrong}"
        rows = [zxid_row(commit.zxid)]
        yield SPEC.violation(commit.zxid, rows, sentence) if wrong else None


INPUTS: Final = ("silver/commits", "silver/dumps", "runs")
SQL: Final = f"""
WITH candidates AS (
  SELECT c.run, c.zxid, c.session,
    exists(operations, o -> o.role = 'controller' AND o.kind = 'create') AS created,
    get(filter(operations, o -> o.role = 'epoch' AND o.kind = 'set'), 0) AS raised
  FROM commits c JOIN runs r ON c.run = r.run AND c.zxid > r.first_zxid WHERE NOT c.failed),
relevant AS (
  SELECT run, zxid, session, created, raised IS NOT NULL AS is_raised,
    CASE WHEN raised IS NOT NULL THEN {sql.EPOCH_OF.format("coalesce(raised.data, '')")} END
      AS epoch
  FROM candidates WHERE created OR raised IS NOT NULL),
first AS (
  SELECT run, max({sql.EPOCH_OF.format("coalesce(data, '')")}) AS epoch FROM dumps
  WHERE NOT is_final AND path = '/controller_epoch' GROUP BY run),
followed AS (
  SELECT r.*, coalesce(last_value(r.epoch, true) OVER (PARTITION BY r.run ORDER BY r.zxid
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), f.epoch, 0) AS before
  FROM relevant r LEFT JOIN first f ON r.run = f.run),
wrong AS (
  SELECT *, CASE
    WHEN NOT created THEN 'set the epoch without creating /controller'
    WHEN NOT is_raised THEN 'created /controller without raising the epoch'
    WHEN epoch <> before + 1
      THEN concat('set epoch ', epoch, ' after epoch ', before) END AS problem
  FROM followed)
SELECT run, CASE WHEN problem IS NOT NULL THEN CAST(zxid AS STRING) END AS key,
  array(concat('zxid/', zxid)) AS rows,
  concat('zxid ', zxid, ': session ', session, ' ', problem) AS sentence
FROM wrong
"""
