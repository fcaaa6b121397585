"""The requests of a real Kafka, and how many of them a broker got in Envelopes (`forwarded`)."""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.silver.kafka_logs import has_kafka_logs
from pipeline.table import Table

KAFKA_FORWARDED: Final = Table(
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
