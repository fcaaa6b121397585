"""K1: a counter that a node reports equals the number of earlier events that it counts.

Only events of the same boot count. They are counted in two steps, so that Spark does not process a
large boot in one task: first the sum for each range of 65,536 sequence numbers, then a running
count within each range.
"""

from __future__ import annotations

from typing import Final

from pipeline.sql import place_of, row_of

# For each counter, the condition for the events that it counts. A request that is sent to another
# process counts as redirected once, however often it is sent.
COUNTERS: Final = {
    "num_messages_redirected_count": "is_first_remote",
    "request_forwarding_to_controller_authorization_fail_count": "kind = 'envelope_refused' "
    "AND error = 31",
    "not_controller_answers_count": "kind = 'answered' AND route = 'NOT_CONTROLLER' AND error = 41",
    "kafka_network_requestmetrics_requests_count": "kind = 'answered'",
}
_FLAGS: Final = ", ".join(
    f"CAST(coalesce({condition}, false) AS BIGINT) AS c{at}"
    for at, condition in enumerate(COUNTERS.values())
)
_EACH: Final = [f"c{at}" for at in range(len(COUNTERS))]
_INSIDE: Final = ", ".join(
    f"coalesce(sum({c}) OVER (PARTITION BY run, node, boot, bucket ORDER BY seq ROWS BETWEEN "
    f"UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS {c}"
    for c in _EACH
)
_BEFORE: Final = ", ".join(
    f"coalesce(sum(sum({c})) OVER (PARTITION BY run, node, boot ORDER BY bucket ROWS BETWEEN "
    f"UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS {c}"
    for c in _EACH
)
_PAIRS: Final = ", ".join(
    f"struct('{name}' AS name, i.c{at} + b.c{at} AS counted, coalesce(aggregate(map_values("
    f"map_filter(i.shown, (k, v) -> k = '{name}' OR startswith(k, '{name}{{'))), 0D, "
    "(a, v) -> a + v), 0D) AS shown)"
    for at, name in enumerate(COUNTERS)
)

SNAPSHOTS: Final = f"""
WITH firsts AS (
  SELECT run, node, boot, min(seq) AS seq FROM events
  WHERE kind = 'forward_sent' AND NOT local GROUP BY run, node, boot, request_id),
relevant AS (
  SELECT run, node, boot, seq, wall_ms, kind, route, error, false AS is_first_remote,
    CASE WHEN kind = 'metrics_snapshot' THEN `values` END AS shown
  FROM events WHERE source <> 'client'
    AND kind IN ('answered', 'envelope_refused', 'metrics_snapshot')
  UNION ALL
  SELECT run, node, boot, seq, NULL, 'forward_sent', NULL, NULL, true, NULL FROM firsts),
counted AS (
  SELECT run, node, boot, seq, wall_ms, seq DIV 65536 AS bucket, shown, {_FLAGS} FROM relevant),
before AS (
  SELECT run, node, boot, bucket, {_BEFORE} FROM counted GROUP BY run, node, boot, bucket),
inside AS (
  SELECT run, node, boot, bucket, seq, wall_ms, shown, {_INSIDE} FROM counted),
snapshots AS (
  SELECT i.run, i.node, i.boot, i.seq, i.wall_ms, explode(array({_PAIRS})) AS p
  FROM inside i JOIN before b ON i.run = b.run AND i.node = b.node AND i.boot = b.boot
    AND i.bucket = b.bucket
  WHERE i.shown IS NOT NULL)
"""

INPUTS: Final = ("silver/events",)
SQL: Final = f"""{SNAPSHOTS}
SELECT run, CASE WHEN p.shown <> p.counted THEN concat({place_of("snapshots")}, '/', p.name) END
    AS key,
  array({row_of("snapshots")}) AS rows,
  concat('node ', node, ' reports ', p.name, ' = ', CASE
      WHEN p.shown = try_cast(p.shown AS BIGINT) THEN CAST(try_cast(p.shown AS BIGINT) AS STRING)
      ELSE CAST(p.shown AS STRING) END, ', but its events add up to ', p.counted) AS sentence
FROM snapshots
"""
