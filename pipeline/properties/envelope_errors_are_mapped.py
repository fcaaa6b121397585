"""F6: a client gets the error that KIP-590 assigns to the error of an Envelope.

An error of the Envelope is about the broker, not about the client's request. KIP-590
§EnvelopeResponse Handling: the client gets UNKNOWN_SERVER_ERROR, or REQUEST_TIMED_OUT if the
attempts end with NOT_CONTROLLER; after UNSUPPORTED_VERSION its connection is closed.
"""

from __future__ import annotations

from typing import Final

from event_log.properties import ENVELOPE_ERRORS, UNMAPPED_ENVELOPE_ERROR
from pipeline.sql import row_of

_MAPPED: Final = " ".join(f"WHEN {outer} THEN {code}" for outer, code in ENVELOPE_ERRORS.items())

INPUTS: Final = ("silver/events",)
SQL: Final = f"""
WITH last AS (
  SELECT run, request_id, max_by(struct(node, boot, seq, error), attempt) AS envelope
  FROM events WHERE kind = 'forward_answered' GROUP BY run, request_id),
mapped AS (
  SELECT a.run, a.node, a.boot, a.seq, a.request_id, a.error, l.envelope,
    CASE l.envelope.error {_MAPPED} ELSE {UNMAPPED_ENVELOPE_ERROR} END AS expected
  FROM events a JOIN last l ON a.run = l.run AND a.request_id = l.request_id
    AND a.node = l.envelope.node AND a.boot = l.envelope.boot
  WHERE a.kind = 'answered' AND l.envelope.error <> 0)
SELECT run, CASE WHEN NOT error <=> expected THEN request_id END AS key,
  array({row_of("envelope")}, {row_of("mapped")}) AS rows,
  concat(request_id, ': its Envelope failed with error ', envelope.error, '; the client got ',
    coalesce(CAST(error AS STRING), 'None'), ' instead of ', expected) AS sentence
FROM mapped
"""
