"""K2: every request gets one response, or its connection was lost."""

from __future__ import annotations

from typing import Final

from pipeline.sql import row_of

_ROWS: Final = f"transform({{0}}, x -> {row_of('x')})"
_WRONG: Final = """CASE
    WHEN {begun} = 0 THEN 'has {ended_by} without {begun_by}'
    WHEN {begun} > 1 THEN concat('has {begun_by} ', {begun}, ' times')
    WHEN {ended} > 1 THEN concat('has {ended_by} ', {ended}, ' times')
    WHEN {ended} = 0 AND NOT may_stay_open THEN 'has {begun_by} without {ended_by}' END"""

INPUTS: Final = ("silver/events", "silver/boots", "gold/requests", "gold/forwards")
SQL: Final = f"""
WITH stopped AS (SELECT run, node, boot FROM boots WHERE stopped_seq IS NOT NULL),
lost AS (
  SELECT DISTINCT run, node, boot, connection FROM events WHERE kind = 'disconnected'),
unended AS (SELECT DISTINCT run, request_id FROM forwards WHERE times_returned = 0),
-- Joined only for open requests.
open AS (
  SELECT r.run, r.request_id, s.run IS NULL OR l.run IS NOT NULL AS may_stay_open
  FROM requests r
  LEFT JOIN unended u ON r.run = u.run AND r.request_id = u.request_id
  LEFT JOIN stopped s ON r.run = s.run AND get(r.receipts, 0).node = s.node
    AND get(r.receipts, 0).boot = s.boot
  LEFT JOIN lost l ON r.run = l.run AND get(r.receipts, 0).node = l.node
    AND get(r.receipts, 0).boot = l.boot AND r.received.connection = l.connection
  WHERE r.times_received > 0 AND (r.times_answered = 0 OR u.run IS NOT NULL)),
requests_judged AS (
  SELECT r.run, r.request_id AS key, r.times_received, r.times_answered, r.receipts, r.answers,
    coalesce(o.may_stay_open, true) AS may_stay_open
  FROM requests r LEFT JOIN open o ON r.run = o.run AND r.request_id = o.request_id
  WHERE r.times_received > 0 OR r.times_answered > 0),
attempts_judged AS (
  SELECT f.run, concat(f.request_id, '/', f.attempt) AS key, f.times_sent, f.times_returned,
    f.sent, f.returned, coalesce(o.may_stay_open, true) AS may_stay_open
  FROM forwards f LEFT JOIN open o ON f.run = o.run AND f.request_id = o.request_id),
judged AS (
  SELECT run, key, receipts AS began, answers AS ended, {
    _WRONG.format(
        begun="times_received",
        ended="times_answered",
        begun_by="request_received",
        ended_by="answered",
    )
} AS wrong
  FROM requests_judged
  UNION ALL
  SELECT run, key, sent, returned, {
    _WRONG.format(
        begun="times_sent",
        ended="times_returned",
        begun_by="forward_sent",
        ended_by="forward_answered",
    )
}
  FROM attempts_judged)
SELECT run, CASE WHEN wrong IS NOT NULL THEN key END AS key,
  concat({_ROWS.format("coalesce(began, array())")}, {_ROWS.format("coalesce(ended, array())")})
    AS rows,
  concat(key, ' ', wrong) AS sentence
FROM judged
"""
