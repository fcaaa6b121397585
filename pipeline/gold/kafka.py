"""A real Kafka's logs: forwarded requests, denials, latencies and unfenced writes."""

from __future__ import annotations

from typing import Final

from pipeline.silver.kafka_logs import has_kafka_logs
from pipeline.table import Table, query

# `forwarded` counts the requests that the broker got in Envelopes.
SHARES: Final = Table(
    name="gold/kafka_forwarded",
    concerns=has_kafka_logs,
    inputs=("silver/kafka_requests",),
    schema="run STRING, broker STRING, api STRING, api_version BIGINT, principal STRING, "
    "software STRING, requests BIGINT, forwarded BIGINT",
    build=query("""
SELECT run, broker, api, api_version, principal, concat(software_name, ' ', software_version)
    AS software,
  count(*) AS requests, count_if(is_forwarded) AS forwarded
FROM kafka_requests
GROUP BY run, broker, api, api_version, principal, software_name, software_version
"""),
)
LATENCY: Final = Table(
    name="gold/kafka_latency",
    concerns=has_kafka_logs,
    inputs=("silver/kafka_requests",),
    schema="run STRING, api STRING, is_forwarded BOOLEAN, requests BIGINT, p50_ms DOUBLE, "
    "p99_ms DOUBLE, max_ms DOUBLE, p50_remote_ms DOUBLE",
    build=query("""
SELECT run, api, is_forwarded, count(*) AS requests, percentile(total_ms, 0.5) AS p50_ms,
  percentile(total_ms, 0.99) AS p99_ms, max(total_ms) AS max_ms,
  percentile(remote_ms, 0.5) AS p50_remote_ms
FROM kafka_requests GROUP BY run, api, is_forwarded
"""),
)
DENIALS: Final = Table(
    name="gold/kafka_denials",
    concerns=has_kafka_logs,
    inputs=("silver/kafka_decisions",),
    schema="run STRING, principal STRING, operation STRING, resource_type STRING, "
    "resource STRING, api STRING, denials BIGINT",
    build=query("""
SELECT run, principal, operation, resource_type, resource, api, count(*) AS denials
FROM kafka_decisions WHERE NOT allowed
GROUP BY run, principal, operation, resource_type, resource, api
"""),
)
# The number of metadata writes with and without a check of the controller epoch, by path.
UNFENCED: Final = Table(
    name="gold/unfenced_writes",
    inputs=("gold/admin_writes",),
    schema="run STRING, below STRING, fenced BIGINT, unfenced BIGINT, sessions BIGINT, "
    "first_unfenced_zxid BIGINT",
    build=query("""
SELECT run, below, count_if(fenced) AS fenced, count_if(NOT fenced) AS unfenced,
  count(DISTINCT session) AS sessions, min(CASE WHEN NOT fenced THEN zxid END)
    AS first_unfenced_zxid
FROM (SELECT *, regexp_extract(path, '^(/[^/]+(?:/[^/]+)?)', 1) AS below FROM admin_writes)
GROUP BY run, below
"""),
)
