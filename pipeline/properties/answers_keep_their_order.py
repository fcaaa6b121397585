"""F4: on each connection, responses have the order of the requests.

Kafka's clients rely on it: they match each response to their oldest open request. The request
inside an Envelope that a client sent (`<request id>.inner`) has no response of its own on the
connection, so it is not judged.
"""

from __future__ import annotations

from typing import Final

from event_log.properties import INNER
from pipeline.sql import row_of

INPUTS: Final = ("silver/events", "gold/requests")
SQL: Final = f"""
WITH answers AS (
  SELECT e.run, e.node, e.boot, e.seq, e.request_id, r.received
  FROM events e JOIN requests r ON e.run = r.run AND e.request_id = r.request_id
    AND e.node = r.received.node AND e.boot = r.received.boot
  WHERE e.kind = 'answered' AND NOT endswith(e.request_id, '{INNER}')),
followed AS (
  SELECT *, max(struct(received.seq AS seq, request_id AS request_id))
    OVER (PARTITION BY run, node, boot, received.connection ORDER BY seq
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM answers)
SELECT run, CASE WHEN before.seq > received.seq THEN request_id END AS key,
  array({row_of("received")}, {row_of("followed")}) AS rows,
  concat(request_id, ': broker ', node, ' answered it after ', before.request_id,
    ', which came later on the same connection') AS sentence
FROM followed
"""
