"""D4: a write without a definite response took effect once or not at all."""

from __future__ import annotations

from typing import Final

from event_log.properties import INFO_CODES
from pipeline.sql import listed, zxid_rows

_INFO: Final = listed(INFO_CODES)

INPUTS: Final = (
    "gold/requests",
    "gold/answers",
    "silver/outcomes",
    "gold/operations",
    "gold/client_outcomes",
)
SQL: Final = f"""
WITH undecided AS (
  SELECT DISTINCT run, request_id FROM answers
  WHERE error IN ({_INFO}) OR exists(elements, e -> e.error IN ({_INFO}))),
open_requests AS (
  SELECT r.run, r.request_id,
    concat('event/', received.node, '/', received.boot, '/', received.seq) AS row
  FROM requests r LEFT JOIN undecided u ON r.run = u.run AND r.request_id = u.request_id
  WHERE received.route = 'FORWARD' AND (answered IS NULL OR answered.closed
    OR coalesce(answered.error IN ({_INFO}), false) OR u.request_id IS NOT NULL)),
effects AS (
  SELECT o.run, o.request_id, o.element, collect_set(o.zxid) AS zxids FROM outcomes o
  JOIN open_requests q ON o.run = q.run AND o.request_id = q.request_id
  GROUP BY o.run, o.request_id, o.element),
twice AS (
  SELECT run, request_id, min(element) AS element,
    array_sort(array_distinct(flatten(collect_list(zxids)))) AS zxids
  FROM effects WHERE size(zxids) > 1 GROUP BY run, request_id),
open_operations AS (
  SELECT o.run, o.op_id, o.invoked_row,
    min(t.element) FILTER (WHERE t.named_once AND size(t.done) > 1) AS element,
    array_sort(array_distinct(flatten(collect_list(t.done)
      FILTER (WHERE t.named_once AND size(t.done) > 1)))) AS zxids
  FROM operations o LEFT JOIN client_outcomes t
    ON o.run = t.run AND o.op_id = t.op_id AND t.error IS NULL
  WHERE o.outcome = 'info' GROUP BY o.run, o.op_id, o.invoked_row),
judged AS (
  SELECT q.run, q.request_id AS source, q.row, t.element, t.zxids
  FROM open_requests q LEFT JOIN twice t ON q.run = t.run AND q.request_id = t.request_id
  UNION ALL
  SELECT run, op_id, invoked_row, element, zxids FROM open_operations)
SELECT run, CASE WHEN element IS NOT NULL THEN source END AS key,
  concat(array(row), {zxid_rows("coalesce(zxids, array())")}) AS rows,
  concat(source, ': ', element, ' got no definite response and took effect more than once')
    AS sentence
FROM judged
"""
