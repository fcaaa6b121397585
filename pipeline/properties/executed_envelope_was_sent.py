"""F10: a controller executes only Envelopes that brokers sent.

A client that reaches the controller could forge an Envelope with any principal. The Envelope's
identity then names a process that does not exist or did not send it. The last events of a killed
broker may be missing, so Envelopes of killed brokers are not judged.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

INPUTS: Final = ("silver/events", "silver/boots")
SQL: Final = f"""
WITH sent AS (
  SELECT DISTINCT run, node, boot, request_id FROM events WHERE kind = 'forward_sent'),
executed AS (
  SELECT run, node, boot, seq, request_id, identity, CAST(identity.broker_id AS STRING) AS sender,
    identity.incarnation AS incarnation
  FROM events WHERE kind = 'execution_started' AND epoch <> 0),
judged AS (
  SELECT /*+ BROADCAST(b) */ x.*, s.run IS NOT NULL AS was_sent
  FROM executed x
  LEFT JOIN boots b ON x.run = b.run AND x.sender = b.node AND x.incarnation = b.boot
  LEFT JOIN sent s ON x.run = s.run AND x.sender = s.node AND x.incarnation = s.boot
    AND x.request_id = s.request_id
  WHERE b.run IS NULL OR b.stopped_seq IS NOT NULL)
SELECT run, CASE WHEN NOT was_sent THEN {place_of("judged")} END AS key,
  array({row_of("judged")}) AS rows,
  concat(request_id, ': node ', node, ' executed it as an Envelope of broker ', sender,
    ', incarnation ', incarnation, ', which did not send it') AS sentence
FROM judged
"""
