"""D2: what was refused was not done."""

from __future__ import annotations

from typing import Final

from event_log.promises import AGAIN_CODES, INFO_CODES, OK_CODES
from pipeline.property import Property

_OPEN: Final = ", ".join(map(str, sorted(OK_CODES | INFO_CODES)))
# A client that asks again by itself may be told so about its own earlier success.
_AGAIN: Final = ", ".join(map(str, sorted(OK_CODES | INFO_CODES | AGAIN_CODES)))

PROPERTY: Final = Property(
    id="D2",
    inputs=("gold/decisions", "gold/told"),
    sql=f"""
WITH refused AS (
  SELECT run, request_id AS who, element, error, done, array(answered_row, decided_row) AS told_by
  FROM decisions WHERE error NOT IN ({_OPEN})
  UNION ALL
  SELECT run, op_id, element, error, done, array(invoked_row, completed_row)
  FROM told WHERE error NOT IN ({_AGAIN}) AND named_once)
SELECT run, CASE WHEN size(done) > 0 THEN concat(who, '/', element) END AS key,
  concat(told_by, transform(done, z -> concat('zxid/', z))) AS rows,
  concat(who, ': ', element, ' was refused with code ', error, ' and committed at zxid ',
    get(done, 0)) AS sentence
FROM refused
""",
)
