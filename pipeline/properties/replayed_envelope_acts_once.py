"""F7: an Envelope that arrives more than once has one effect and one outcome."""

from __future__ import annotations

from typing import Final

from event_log.properties import INFO_CODES, OK_CODES
from pipeline.sql import listed, row_of, zxid_rows

_NO_REJECTION: Final = listed(INFO_CODES | OK_CODES)

INPUTS: Final = ("silver/events", "gold/committed")
JUDGED: Final = "judged"
SQL: Final = f"""
WITH replayed AS (
  SELECT run, identity FROM events WHERE kind = 'envelope_received'
  GROUP BY run, identity HAVING count(*) > 1),
decided AS (
  SELECT e.run, e.identity, collect_list(struct(e.file, e.line_number, {row_of("e")} AS row,
    e.zxid, e.elements)) AS decisions
  FROM events e JOIN replayed r ON e.run = r.run AND e.identity = r.identity
  WHERE e.kind = 'request_decided' GROUP BY e.run, e.identity),
effects AS (
  SELECT c.run, r.identity, c.element, c.zxids, c.done,
    concat_ws('/', c.broker_id, c.incarnation, c.sequence, c.element) AS name,
    get(filter(array_sort(coalesce(d.decisions, array())),
      x -> x.zxid >= get(c.done, 0) AND exists(x.elements, e -> e.element = c.element
        AND e.error NOT IN ({_NO_REJECTION}))), 0) AS rejected
  FROM committed c JOIN replayed r ON c.run = r.run AND c.broker_id = r.identity.broker_id
    AND c.incarnation = r.identity.incarnation AND c.sequence = r.identity.sequence
  LEFT JOIN decided d ON r.run = d.run AND r.identity = d.identity),
violations AS (
  SELECT run, name AS key,
    CASE WHEN size(zxids) > 1 THEN {zxid_rows("zxids")}
         ELSE array(concat('zxid/', get(done, 0)), rejected.row) END AS rows,
    CASE WHEN size(zxids) > 1
         THEN concat(name, ' was committed more than once, at zxids ', array_join(zxids, ', '))
         ELSE concat(name, ' was committed at zxid ', get(done, 0),
           ', but rejected with error code ',
           get(filter(rejected.elements, e -> e.element = element), 0).error)
    END AS sentence
  FROM effects WHERE size(zxids) > 1 OR rejected IS NOT NULL)
-- `judged` counts identities: 1 for each replayed identity, 0 for each of its violations.
SELECT run, CAST(NULL AS STRING) AS key, CAST(NULL AS ARRAY<STRING>) AS rows,
  CAST(NULL AS STRING) AS sentence, 1 AS judged FROM replayed
UNION ALL
SELECT run, key, rows, sentence, 0 FROM violations
"""
