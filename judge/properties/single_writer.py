"""Every metadata write is made by the session that holds the controller epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judge.history import History
from judge.property import PropertySpec, Violation, zxid_row

SPEC: Final = PropertySpec(
    id="W1",
    name="single_writer",
    statement="every metadata write is made by the session that holds the controller epoch",
    witnesses=("commits",),
    row="transactions that wrote metadata, except those that W6 allows brokers or a KRaft "
    "controller to make",
    key="<zxid>",
    gap_blocks_fail=True,  # the gap may hide the election
)


def check(history: History) -> Iterator[Violation | None]:
    """Judge every applied transaction that writes metadata."""
    for commit, writes in history.admin_writes:
        holder = history.term_at(commit.zxid)
        if holder is not None and holder.session == commit.session:
            yield None
            continue
        held = "no session held the controller epoch"
        if holder is not None:
            held = f"session {holder.session} held controller epoch {holder.epoch}"
        sentence = (
            f"zxid {commit.zxid}: session {commit.session} wrote {writes[0].path}, but {held}"
        )
        rows = [zxid_row(commit.zxid)] + ([zxid_row(holder.zxid)] if holder else [])
        yield SPEC.violation(commit.zxid, rows, sentence)


INPUTS: Final = ("gold/admin_writes", "silver/terms")
SQL: Final = """
WITH held AS (
  SELECT run, session, collect_list(struct(zxid, until)) AS spans FROM terms GROUP BY run, session),
judged AS (
  SELECT /*+ BROADCAST(h) */ w.run, w.zxid, w.session, w.path,
    coalesce(exists(h.spans, s -> w.zxid >= s.zxid AND w.zxid < s.until), false) AS good
  FROM admin_writes w LEFT JOIN held h ON w.run = h.run AND w.session = h.session),
terms_in_order AS (
  SELECT run, array_sort(collect_list(struct(zxid, session, epoch))) AS all
  FROM terms GROUP BY run),
-- The holder is looked up only for violations.
wrong AS (
  SELECT /*+ BROADCAST(o) */ j.*, CASE WHEN NOT j.good THEN
    get(filter(o.all, t -> t.zxid <= j.zxid), size(filter(o.all, t -> t.zxid <= j.zxid)) - 1)
    END AS holder
  FROM judged j LEFT JOIN terms_in_order o ON j.run = o.run)
SELECT run, CASE WHEN NOT good THEN CAST(zxid AS STRING) END AS key,
  CASE WHEN holder IS NULL THEN array(concat('zxid/', zxid))
       ELSE array(concat('zxid/', zxid), concat('zxid/', holder.zxid)) END AS rows,
  concat('zxid ', zxid, ': session ', session, ' wrote ', path, ', but ',
    CASE WHEN holder IS NULL THEN 'no session held the controller epoch'
         ELSE concat('session ', holder.session, ' held controller epoch ', holder.epoch) END)
    AS sentence
FROM wrong
"""
