"""The denials of a real Kafka's authorizer."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.silver.kafka_logs import has_kafka_logs
from pipeline.table import Table

KAFKA_DENIALS: Final = Table(
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
