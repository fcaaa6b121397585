"""KIP-590's five metrics computed from events, and nodes' counters compared with their events.

`gold/forwarding_windows` has the metrics of each window of ten seconds of the wall clock.
`gold/counters` has a row for each counter in each snapshot: `shown` is the value that the node
reported, and `counted` is the number of the node's earlier events that the counter counts.
"""

from __future__ import annotations

from typing import Final

from judge.properties.metrics_equal_events import SNAPSHOTS
from pipeline.table import Table, query

WINDOW_MS: Final = 10_000

_WINDOWS: Final = f"""
WITH responses AS (
  SELECT run, node, kind, error, local, request_id, wall_ms DIV {WINDOW_MS} AS slice
  FROM events WHERE source = 'node'
    AND kind IN ('request_received', 'answered', 'forward_sent', 'envelope_refused')),
counted AS (
  SELECT run, node, slice, count_if(kind = 'request_received') AS requests,
    count_if(kind = 'answered') AS answers,
    count_if(kind = 'forward_sent' AND NOT local) AS forward_attempts,
    count_if(kind = 'envelope_refused' AND error = 31) AS authorization_failures
  FROM responses GROUP BY run, node, slice),
-- A message counts as redirected once, in the window of its first remote attempt.
waits AS (
  SELECT run, received.node AS node, received.connection AS connection, first_remote_ms,
    first_remote_ms DIV {WINDOW_MS} AS slice
  FROM requests WHERE first_remote_ms IS NOT NULL AND received IS NOT NULL),
redirected AS (
  SELECT run, node, slice, count(*) AS redirected, count(DISTINCT connection) AS waiting_clients
  FROM waits GROUP BY run, node, slice)
SELECT c.run, c.node, c.slice * {WINDOW_MS} AS window_ms, c.requests, c.answers,
  c.forward_attempts, coalesce(r.redirected, 0) AS num_messages_redirected,
  coalesce(r.redirected, 0) * 1000D / {WINDOW_MS} AS num_messages_redirected_rate,
  coalesce(r.waiting_clients, 0) AS clients_forwarding,
  coalesce(r.waiting_clients, 0) * 1000D / {WINDOW_MS} AS clients_forwarding_rate,
  c.authorization_failures,
  CASE WHEN c.requests > 0 THEN coalesce(r.redirected, 0) / c.requests END AS redirected_share
FROM counted c LEFT JOIN redirected r
  ON c.run = r.run AND c.node = r.node AND c.slice = r.slice
"""

_SHARES: Final = """
SELECT run, received.node AS node, received.api_key AS api_key,
  received.api_version AS api_version, received.route AS route, count(*) AS requests,
  count_if(attempts > 0) AS forwarded, count_if(remote_attempts > 0) AS redirected,
  sum(greatest(attempts - 1, 0)) AS resends, count_if(answered.closed) AS closed,
  count_if(answered IS NULL) AS unanswered
FROM requests WHERE received IS NOT NULL
GROUP BY run, received.node, received.api_key, received.api_version, received.route
"""

# TOPIC_AUTHORIZATION_FAILED and the other error codes for a missing right.
AUTHORIZATION_CODES: Final = "29, 30, 31, 53, 65"
_REFUSALS: Final = f"""
WITH responses AS (
  SELECT d.run, r.received.principal AS principal, d.api_key, d.error, d.request_id
  FROM decisions d JOIN requests r ON d.run = r.run AND d.request_id = r.request_id
  WHERE d.error <> 0 AND r.received IS NOT NULL
  UNION ALL
  SELECT run, received.principal, received.api_key, answered.error, request_id
  FROM requests WHERE received IS NOT NULL AND coalesce(answered.error, 0) <> 0
  UNION ALL
  SELECT run, coalesce(received.principal, 'unknown'), coalesce(received.api_key, -1),
    refused_error, request_id
  FROM requests WHERE envelopes_refused > 0)
SELECT run, principal, api_key, error, error IN ({AUTHORIZATION_CODES}) AS is_denial,
  count(*) AS refusals, count(DISTINCT request_id) AS requests
FROM responses GROUP BY run, principal, api_key, error
"""

_SOFTWARE: Final = """
SELECT run, received.client_software_name AS name, received.client_software_version AS version,
  received.api_key AS api_key, min(received.api_version) AS min_api_version,
  max(received.api_version) AS max_api_version, count(*) AS requests,
  count(DISTINCT received.connection) AS connections,
  count(DISTINCT received.principal) AS principals
FROM requests WHERE received IS NOT NULL
GROUP BY run, received.client_software_name, received.client_software_version, received.api_key
"""

# Counts elements by response (ok, fail, info) and effect (none, once, twice). A forwarded request
# that was not answered counts as one element: the one with the most effects. The controller may
# divide a request among several transactions; each element then has its effect in only one of them.
# The report shows the nine counts and marks those that must be 0, such as ok without an effect.
_EFFECTS: Final = """
WITH effects AS (
  SELECT run, request_id, element, count(DISTINCT zxid) AS times
  FROM outcomes WHERE error = 0 GROUP BY run, request_id, element),
responses AS (
  SELECT run, CASE WHEN error = 0 THEN 'ok' WHEN error IN (-1, 7, 13, 41) THEN 'info'
    ELSE 'fail' END AS response, size(done) AS times
  FROM decisions WHERE NOT validate_only AND NOT unchanged
  UNION ALL
  SELECT r.run, 'info', coalesce(max(e.times), 0)
  FROM requests r LEFT JOIN effects e ON r.run = e.run AND r.request_id = e.request_id
  WHERE r.received.route = 'FORWARD' AND (r.answered IS NULL OR r.answered.closed)
  GROUP BY r.run, r.request_id)
SELECT run, response, CASE WHEN times = 0 THEN 'none' WHEN times = 1 THEN 'once' ELSE 'twice' END
  AS effect, count(*) AS elements
FROM responses GROUP BY run, response, 3
"""

WINDOWS: Final = Table(
    name="gold/forwarding_windows",
    inputs=("silver/events", "gold/requests"),
    schema="run STRING, node STRING, window_ms BIGINT, requests BIGINT, answers BIGINT, "
    "forward_attempts BIGINT, num_messages_redirected BIGINT, "
    "num_messages_redirected_rate DOUBLE, clients_forwarding BIGINT, "
    "clients_forwarding_rate DOUBLE, authorization_failures BIGINT, redirected_share DOUBLE",
    build=query(_WINDOWS),
)
COUNTERS: Final = Table(
    name="gold/counters",
    inputs=("silver/events",),
    schema="run STRING, node STRING, boot STRING, seq BIGINT, wall_ms BIGINT, counter STRING, "
    "shown DOUBLE, counted BIGINT",
    build=query(
        f"{SNAPSHOTS} SELECT run, node, boot, seq, wall_ms, p.name AS counter, p.shown, p.counted "
        "FROM snapshots"
    ),
)
SHARES: Final = Table(
    name="gold/forwarded_shares",
    inputs=("gold/requests",),
    schema="run STRING, node STRING, api_key BIGINT, api_version BIGINT, route STRING, "
    "requests BIGINT, forwarded BIGINT, redirected BIGINT, resends BIGINT, closed BIGINT, "
    "unanswered BIGINT",
    build=query(_SHARES),
)
REFUSALS: Final = Table(
    name="gold/refusals",
    inputs=("gold/decisions", "gold/requests"),
    schema="run STRING, principal STRING, api_key BIGINT, error BIGINT, is_denial BOOLEAN, "
    "refusals BIGINT, requests BIGINT",
    build=query(_REFUSALS),
)
SOFTWARE: Final = Table(
    name="gold/client_software",
    inputs=("gold/requests",),
    schema="run STRING, name STRING, version STRING, api_key BIGINT, min_api_version BIGINT, "
    "max_api_version BIGINT, requests BIGINT, connections BIGINT, principals BIGINT",
    build=query(_SOFTWARE),
)
EFFECTS: Final = Table(
    name="gold/effects",
    inputs=("gold/decisions", "gold/requests", "silver/outcomes"),
    schema="run STRING, response STRING, effect STRING, elements BIGINT",
    build=query(_EFFECTS),
)
