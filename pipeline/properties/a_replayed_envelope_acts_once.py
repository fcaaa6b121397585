"""F7: an Envelope that arrives again has one effect in all, and one answer.

What was committed for an element is what every later decision of the same request must say of it.
"""

from __future__ import annotations

from typing import Final

from event_log.promises import INFO_CODES
from pipeline.property import Property, row_of

_TELLS_NO_REFUSAL: Final = ", ".join(map(str, sorted(INFO_CODES | {0})))

PROPERTY: Final = Property(
    id="F7",
    inputs=("silver/events", "gold/committed"),
    sql=f"""
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
        AND e.error NOT IN ({_TELLS_NO_REFUSAL}))), 0) AS told
  FROM committed c JOIN replayed r ON c.run = r.run AND c.broker_id = r.identity.broker_id
    AND c.incarnation = r.identity.incarnation AND c.sequence = r.identity.sequence
  LEFT JOIN decided d ON r.run = d.run AND r.identity = d.identity),
broken AS (
  SELECT run, name AS key,
    CASE WHEN size(zxids) > 1 THEN transform(zxids, z -> concat('zxid/', z))
         ELSE array(concat('zxid/', get(done, 0)), told.row) END AS rows,
    CASE WHEN size(zxids) > 1
         THEN concat(element, ' of request ', name, ' was committed at ', array_join(zxids, ', '))
         ELSE concat(element, ' of request ', name, ' was committed at ', get(done, 0),
           ' and answered ', get(filter(told.elements, e -> e.element = element), 0).error)
    END AS sentence
  FROM effects WHERE size(zxids) > 1 OR told IS NOT NULL)
-- An identity is one row, its breaches are rows beside it.
SELECT run, CAST(NULL AS STRING) AS key, CAST(NULL AS ARRAY<STRING>) AS rows,
  CAST(NULL AS STRING) AS sentence, 1 AS judged FROM replayed
UNION ALL
SELECT run, key, rows, sentence, 0 FROM broken
""",
)
