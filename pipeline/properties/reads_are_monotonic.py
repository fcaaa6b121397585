"""R3: on each connection, a read never returns older metadata than the read before it."""

from __future__ import annotations

from typing import Final

from pipeline.sql import row_of

INPUTS: Final = ("silver/events", "gold/requests")
SQL: Final = f"""
WITH reads AS (
  SELECT e.run, e.node, e.boot, e.seq, e.request_id, e.zxid, r.received.connection AS connection
  FROM events e JOIN requests r ON e.run = r.run AND e.request_id = r.request_id
  WHERE e.kind = 'answered' AND e.route = 'LOCAL' AND e.zxid > 0 AND r.received IS NOT NULL),
followed AS (
  SELECT *, lag(struct(node, boot, seq, zxid))
    OVER (PARTITION BY run, node, boot, connection ORDER BY seq) AS before
  FROM reads)
SELECT run, CASE WHEN zxid < before.zxid THEN request_id END AS key,
  array({row_of("before")}, {row_of("followed")}) AS rows,
  concat(request_id, ': broker ', node, ' answered it with metadata of zxid ', zxid,
    ', after metadata of zxid ', before.zxid, ' on the same connection') AS sentence
FROM followed
"""
