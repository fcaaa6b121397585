"""The report's sections about the logs of a real Kafka."""

from __future__ import annotations

from typing import Final

from judge.report.html import cells, table
from pipeline.report.collect import Content

_ROWS_MAX: Final = 40  # All rows are in gold/kafka_… and gold/unfenced_writes.


def kafka(content: Content) -> str:
    """Return the sections of a run with the logs of a real Kafka."""
    return _forwarded(content) + _latency(content) + _denials(content) + _unfenced(content)


def _forwarded(content: Content) -> str:
    rows = content.rows["kafka_shares"][:_ROWS_MAX]
    writers = content.rows["kafka_writers"][:_ROWS_MAX]
    shares = table(
        ("broker", "API", "requests", "forwarded"),
        (cells(row, "broker api requests forwarded") for row in rows),
        numbers=2,
    )
    clients = table(
        ("principal", "client", "API", "forwarded requests"),
        (cells(row, "principal software api forwarded") for row in writers),
        numbers=1,
    )
    return (
        "<h2>Forwarded requests by broker</h2><p class=quiet>A forwarded request is in two logs: "
        "in the log of the broker that received it, and in the controller's, marked as forwarded."
        f"</p>{shares}<h3>Forwarded requests by client</h3>{clients}"
    )


def _latency(content: Content) -> str:
    rows = content.rows["kafka_latency"][:_ROWS_MAX]
    listed = table(
        ("API", "forwarded", "requests", "p50 ms", "p99 ms", "max ms", "p50 remote ms"),
        (
            (
                row["api"],
                "yes" if row["is_forwarded"] else "no",
                row["requests"],
                *(f"{ms:.2f}" for ms in cells(row, "p50_ms p99_ms max_ms p50_remote_ms")),
            )
            for row in rows
        ),
        numbers=5,
    )
    return f"<h2>Latency of requests</h2>{listed}"


def _denials(content: Content) -> str:
    rows = content.rows["kafka_denials"][:_ROWS_MAX]
    if not rows:
        return "<h2>Denials</h2><p>The authorizer denied no request.</p>"
    listed = table(
        ("principal", "operation", "resource type", "resources", "API", "denials"),
        (cells(row, "principal operation resource_type resources api denials") for row in rows),
        numbers=1,
    )
    return f"<h2>Denials by principal</h2>{listed}"


def _unfenced(content: Content) -> str:
    rows = content.rows["unfenced"][:_ROWS_MAX]
    if not rows:
        return ""
    listed = table(
        ("below", "fenced", "unfenced", "sessions", "first unfenced"),
        (
            (
                *cells(row, "below fenced unfenced sessions"),
                "" if row["first_unfenced_zxid"] is None else f"zxid {row['first_unfenced_zxid']}",
            )
            for row in rows
        ),
        numbers=4,
    )
    return (
        "<h2>Metadata writes and the fence</h2><p class=quiet>Unfenced: the transaction does not "
        f"check the controller epoch.</p>{listed}"
    )
