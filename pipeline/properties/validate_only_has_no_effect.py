"""D9: a request with validate_only commits nothing."""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of, zxid_rows

INPUTS: Final = ("silver/events", "silver/outcomes")
SQL: Final = f"""
WITH validated AS (
  SELECT run, node, boot, seq, request_id, identity FROM events
  WHERE kind = 'request_decided' AND validate_only),
written AS (
  SELECT v.run, v.node, v.boot, v.seq, v.request_id,
    array_sort(collect_set(o.zxid)) AS zxids
  FROM validated v LEFT JOIN outcomes o ON v.run = o.run
    AND v.identity.broker_id = o.broker_id AND v.identity.incarnation = o.incarnation
    AND v.identity.sequence = o.sequence
  GROUP BY v.run, v.node, v.boot, v.seq, v.request_id)
SELECT run, CASE WHEN size(zxids) > 0 THEN {place_of("written")} END AS key,
  concat(array({row_of("written")}), {zxid_rows("zxids")}) AS rows,
  concat(request_id, ' was only to be validated, but was committed at zxids ',
    array_join(zxids, ', ')) AS sentence
FROM written
"""
