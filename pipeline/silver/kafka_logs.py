"""Two logs of a real Kafka as tables: requests (KIP-673) and decisions of the authorizer.

Their lines are `[time] LEVEL Completed request:{JSON} (logger)` and `[time] LEVEL Principal = … is
Allowed|Denied operation = … from host = … on resource = …`. The time is the broker's local time. A
line in which the authorizer only explains a decision is a row without `allowed`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from event_log.evidence import KAFKA_LOGS, Manifest
from pipeline.bronze.lines import IS_BLANK
from pipeline.frames import Frames
from pipeline.silver.reading import STRICT
from pipeline.table import Table

_REQUEST: Final = r"^\[([^\]]{1,40})\] ([A-Z]+) Completed request:(\{.*\}) \(([A-Za-z0-9_.$]+)\)$"
_DECISION: Final = (
    r"^\[([^\]]{1,40})\] ([A-Z]+) Principal = (.+?) is (Allowed|Denied) "
    r"[Oo]peration = ([A-Za-z_]+) "
    r"from host = (\S+) on resource = ([A-Za-z]+):([A-Za-z]+):(.*?)"
    r"(?: for request = ([A-Za-z]+))?(?: with resourceRefCount = (\d+))?"
    r"(?: based on rule .*)? \(([A-Za-z0-9_.$]+)\)$"
)
# Lines in which the authorizer explains a decision.
_REMARK: Final = (
    r"^\[[^\]]{1,40}\] [A-Z]+ (?:principal = .+ is a super user|operation = .+ is .+ based on acl|"
    r"No acl found for resource).*\([A-Za-z0-9_.$]+\)$"
)
_JSON: Final = (
    "isForwarded BOOLEAN, requestHeader STRUCT<requestApiKey: BIGINT, requestApiVersion: BIGINT, "
    "correlationId: BIGINT, clientId: STRING, requestApiKeyName: STRING>, connection STRING, "
    "totalTimeMs DOUBLE, requestQueueTimeMs DOUBLE, localTimeMs DOUBLE, remoteTimeMs DOUBLE, "
    "throttleTimeMs DOUBLE, responseQueueTimeMs DOUBLE, sendTimeMs DOUBLE, "
    "securityProtocol STRING, principal STRING, listener STRING, "
    "clientInformation STRUCT<softwareName: STRING, softwareVersion: STRING>"
)
_BROKER: Final = "regexp_extract(file, '^kafka=([^/]+)/', 1)"


def has_kafka_logs(manifest: Manifest) -> bool:
    """Return whether a run has one of the two logs."""
    return any(file.kind in KAFKA_LOGS.values() for file in manifest.files)


def _lines(frames: Frames, source: str) -> DataFrame:
    is_of_source = (F.col("source") == source) & F.col("kind").isNull()
    lines = frames["bronze/lines"].filter(is_of_source & ~F.expr(IS_BLANK))
    return lines.filter(F.expr("is_valid_utf8(line)")).withColumn("broker", F.expr(_BROKER))


def _requests(frames: Frames) -> DataFrame:
    json = F.regexp_extract("line", _REQUEST, 3)
    parsed = _lines(frames, "kafka_request").withColumn("j", F.from_json(json, _JSON, STRICT))
    header = "j.requestHeader."
    return parsed.filter("j.requestHeader.requestApiKey IS NOT NULL").select(
        *("run", "file", "line_number", "broker"),
        F.regexp_extract("line", _REQUEST, 1).alias("time"),
        F.col("j.isForwarded").alias("is_forwarded"),
        F.col(f"{header}requestApiKey").alias("api_key"),
        F.col(f"{header}requestApiVersion").alias("api_version"),
        F.col(f"{header}requestApiKeyName").alias("api"),
        F.col(f"{header}correlationId").alias("correlation_id"),
        F.col(f"{header}clientId").alias("client_id"),
        *(F.col(f"j.{name}").alias(name) for name in ("connection", "principal", "listener")),
        F.col("j.securityProtocol").alias("security_protocol"),
        F.col("j.clientInformation.softwareName").alias("software_name"),
        F.col("j.clientInformation.softwareVersion").alias("software_version"),
        F.col("j.totalTimeMs").alias("total_ms"),
        F.col("j.requestQueueTimeMs").alias("queue_ms"),
        F.col("j.localTimeMs").alias("local_ms"),
        F.col("j.remoteTimeMs").alias("remote_ms"),
    )


def _decisions(frames: Frames) -> DataFrame:
    def group(at: int, name: str) -> Column:
        return F.regexp_extract("line", _DECISION, at).alias(name)

    lines = _lines(frames, "kafka_authorizer")
    is_decision = F.col("line").rlike(_DECISION)
    return lines.filter(is_decision | F.col("line").rlike(_REMARK)).select(
        *("run", "file", "line_number", "broker"),
        *(group(1, "time"), group(3, "principal")),
        F.when(is_decision, F.regexp_extract("line", _DECISION, 4) == "Allowed").alias("allowed"),
        F.lower(F.regexp_extract("line", _DECISION, 5)).alias("operation"),
        *(group(6, "host"), group(7, "resource_type"), group(8, "pattern"), group(9, "resource")),
        group(10, "api"),
    )


REQUESTS: Final = Table(
    name="silver/kafka_requests",
    concerns=has_kafka_logs,
    inputs=("bronze/lines",),
    schema="run STRING, file STRING, line_number BIGINT, broker STRING, time STRING, "
    "is_forwarded BOOLEAN, api_key BIGINT, api_version BIGINT, api STRING, "
    "correlation_id BIGINT, client_id STRING, connection STRING, principal STRING, "
    "listener STRING, security_protocol STRING, software_name STRING, software_version STRING, "
    "total_ms DOUBLE, queue_ms DOUBLE, local_ms DOUBLE, remote_ms DOUBLE",
    build=_requests,
)
DECISIONS: Final = Table(
    name="silver/kafka_decisions",
    concerns=has_kafka_logs,
    inputs=("bronze/lines",),
    schema="run STRING, file STRING, line_number BIGINT, broker STRING, time STRING, "
    "principal STRING, allowed BOOLEAN, operation STRING, host STRING, resource_type STRING, "
    "pattern STRING, resource STRING, api STRING",
    build=_decisions,
)
