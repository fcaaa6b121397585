"""The latencies of requests of a real Kafka."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.silver.kafka_logs import has_kafka_logs
from pipeline.table import Table

KAFKA_LATENCY: Final = Table(
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
