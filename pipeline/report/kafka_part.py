"""What the logs of a real Kafka say: who writes through whom, who is denied what, what is unfenced.

Such logs know no ids of requests and no events; what needs those stands as NODATA among the
promises above.
"""

from __future__ import annotations

from typing import Final

from pipeline.report.collect import Content
from pipeline.report.html import table

_ROWS_MAX: Final = 40  # the whole is in gold/kafka_… and gold/unfenced_writes


def kafka(content: Content) -> str:
    """Return the part of the page that only such a run has."""
    return _forwarded(content) + _latency(content) + _denials(content) + _unfenced(content)


def _forwarded(content: Content) -> str:
    rows = content.rows["kafka_shares"][:_ROWS_MAX]
    writers = content.rows["kafka_writers"][:_ROWS_MAX]
    shares = table(
        ("broker", "API", "requests", "of them forwarded"),
        ((row["broker"], row["api"], row["requests"], row["forwarded"]) for row in rows),
        numbers=2,
    )
    who = table(
        ("principal", "client", "API", "requests that came in Envelopes"),
        ((row["principal"], row["software"], row["api"], row["forwarded"]) for row in writers),
        numbers=1,
    )
    return (
        "<h2>Who writes through whom</h2><p class=quiet>A forwarded request stands in the log of "
        "the broker that was asked and, as forwarded, in the controller's.</p>"
        f"{shares}<h3>Whose requests were forwarded</h3>{who}"
    )


def _latency(content: Content) -> str:
    rows = content.rows["kafka_latency"][:_ROWS_MAX]
    listed = table(
        ("API", "forwarded", "requests", "p50 ms", "p99 ms", "max ms", "of it remote, p50 ms"),
        (
            (
                row["api"],
                "yes" if row["is_forwarded"] else "no",
                row["requests"],
                *(f"{row[of]:.2f}" for of in ("p50_ms", "p99_ms", "max_ms", "p50_remote_ms")),
            )
            for row in rows
        ),
        numbers=5,
    )
    return f"<h2>How long requests took</h2>{listed}"


def _denials(content: Content) -> str:
    rows = content.rows["kafka_denials"][:_ROWS_MAX]
    if not rows:
        return "<h2>Denials</h2><p>The authorizer denied nobody anything.</p>"
    names = ("principal", "operation", "resource_type", "resources", "api", "denials")
    listed = table(
        ("principal", "operation", "resource", "different ones", "asked with", "denials"),
        ([row[name] or "" for name in names] for row in rows),
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
                row["below"],
                row["fenced"],
                row["unfenced"],
                row["sessions"],
                "" if row["first_unfenced_zxid"] is None else f"zxid {row['first_unfenced_zxid']}",
            )
            for row in rows
        ),
        numbers=4,
    )
    return (
        "<h2>Metadata writes and the fence</h2><p class=quiet>Unfenced: no check of the "
        f"controller's epoch stands in the transaction.</p>{listed}"
    )
