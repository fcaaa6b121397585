"""D2: a rejected write has no effect."""

from __future__ import annotations

from typing import Final

from event_log.properties import INFO_CODES, OK_CODES, RETRY_CODES
from pipeline.sql import listed, zxid_rows

_NO_REJECTION: Final = listed(OK_CODES | INFO_CODES)
_NOT_JUDGED_OF_CLIENTS: Final = listed(OK_CODES | INFO_CODES | RETRY_CODES)

INPUTS: Final = ("gold/decisions", "gold/client_outcomes")
SQL: Final = f"""
WITH rejected AS (
  SELECT run, request_id AS source, element, error, done, array(answered_row, decided_row) AS events
  FROM decisions WHERE error NOT IN ({_NO_REJECTION})
  UNION ALL
  SELECT run, op_id, element, error, done, array(invoked_row, completed_row)
  FROM client_outcomes WHERE error NOT IN ({_NOT_JUDGED_OF_CLIENTS}) AND named_once)
SELECT run, CASE WHEN size(done) > 0 THEN concat(source, '/', element) END AS key,
  concat(events, {zxid_rows("done")}) AS rows,
  concat(source, ': ', element, ' was rejected with error code ', error, ', but committed at zxid ',
    get(done, 0)) AS sentence
FROM rejected
"""
