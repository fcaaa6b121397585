"""Requests, each with its whole path.

`received` is null if no broker recorded that it read the request. `receipts` and `responses` have
the places of the first and the last event, if a request was received or answered twice. Durations
are in nanoseconds of the monotonic clock. A hop between two hosts (with different `host_boot_id`)
has no duration.
"""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.schemas import IDENTITY
from pipeline.table import Table

PLACES: Final = (
    "ARRAY<STRUCT<file: STRING, line_number: BIGINT, node: STRING, boot: STRING, seq: BIGINT>>"
)
# For each kind of event, the columns of its struct after the place of the event.
_PARTS: Final = {
    "request_received": "wall_ms, host_boot_id, connection, api_key, api_version, client_id, "
    "principal, token_authenticated, client_host, listener, security_protocol, dialect, route, "
    "body_sha256, client_software_name, client_software_version",
    "responded": "error, closed, zxid, route",
    "forward_sent": "wall_ms, attempt, local, identity",
    "forward_replied": "attempt",
    "envelope_received": "host_boot_id",
    "envelope_rejected": "error",
    "execution_started": "host_boot_id",
    "request_decided": "host_boot_id, epoch",
}


def _part(kind: str) -> str:
    """Return SQL for the events of one kind: a struct in the kind's column."""
    columns = [
        f"struct(file, line_number, node, boot, seq, mono_ns, {_PARTS[of]}) AS {of}"
        if of == kind
        else f"NULL AS {of}"
        for of in _PARTS
    ]
    return f"SELECT run, request_id, {', '.join(columns)} FROM {kind}"


_ENDS: Final = (
    "transform(array_distinct(array_compact(array(min({0}), max({0})))), "
    "x -> struct(x.file, x.line_number, x.node, x.boot, x.seq))"
)
_REQUESTS: Final = f"""
WITH parts AS (
  {" UNION ALL ".join(map(_part, _PARTS))}),
whole AS (
  SELECT run, request_id,
    max(request_received) AS received, max(responded) AS responded,
    count(request_received) AS times_received, count(responded) AS times_responded,
    {_ENDS.format("request_received")} AS receipts, {_ENDS.format("responded")} AS responses,
    count(forward_sent) AS attempts, count_if(NOT forward_sent.local) AS remote_attempts,
    count(forward_replied) AS times_returned,
    min(forward_sent.seq) FILTER (WHERE NOT forward_sent.local) AS first_remote_seq,
    min(forward_sent.wall_ms) FILTER (WHERE NOT forward_sent.local) AS first_remote_ms,
    max(forward_sent.mono_ns) AS last_sent_ns,
    max_by(forward_replied.mono_ns, forward_replied.attempt) AS last_returned_ns,
    max_by(forward_sent.identity, forward_sent.attempt) AS identity,
    max_by(envelope_received, envelope_received.mono_ns) AS envelope,
    count(envelope_rejected) AS envelopes_rejected,
    max(envelope_rejected).error AS rejected_error,
    max_by(execution_started, execution_started.mono_ns) AS started,
    max_by(request_decided, request_decided.mono_ns) AS decided
  FROM (SELECT /*+ REPARTITION(run, request_id) */ * FROM parts) GROUP BY run, request_id)
SELECT run, request_id, received, responded, times_received, times_responded, receipts, responses,
  attempts, remote_attempts, times_returned, first_remote_seq, first_remote_ms, identity,
  envelopes_rejected,
  rejected_error, decided.epoch,
  envelope.node AS controller,
  responded.mono_ns - received.mono_ns AS total_ns,
  last_returned_ns - last_sent_ns AS forward_ns,
  CASE WHEN envelope.host_boot_id = received.host_boot_id AND envelope.mono_ns >= last_sent_ns
       THEN envelope.mono_ns - last_sent_ns END AS to_controller_ns,
  CASE WHEN started.node = envelope.node THEN started.mono_ns - envelope.mono_ns END AS queue_ns,
  CASE WHEN decided.node = started.node THEN decided.mono_ns - started.mono_ns END AS decide_ns
FROM whole
"""

REQUESTS: Final = Table(
    name="gold/requests",
    inputs=tuple(f"silver/{kind}" for kind in _PARTS),
    schema="run STRING, request_id STRING, received STRUCT<file: STRING, line_number: BIGINT, "
    "node: STRING, boot: STRING, seq: BIGINT, mono_ns: BIGINT, wall_ms: BIGINT, "
    "host_boot_id: STRING, connection: STRING, "
    "api_key: BIGINT, api_version: BIGINT, client_id: STRING, principal: STRING, "
    "token_authenticated: BOOLEAN, client_host: STRING, listener: STRING, "
    "security_protocol: STRING, dialect: STRING, route: STRING, body_sha256: STRING, "
    "client_software_name: STRING, client_software_version: STRING>, "
    "responded STRUCT<file: STRING, line_number: BIGINT, node: STRING, boot: STRING, "
    "seq: BIGINT, mono_ns: BIGINT, error: BIGINT, "
    "closed: BOOLEAN, zxid: BIGINT, route: STRING>, times_received BIGINT, "
    f"times_responded BIGINT, receipts {PLACES}, responses {PLACES}, attempts BIGINT, "
    "remote_attempts BIGINT, times_returned BIGINT, first_remote_seq BIGINT, "
    "first_remote_ms BIGINT, "
    f"identity {IDENTITY}, "
    "envelopes_rejected BIGINT, rejected_error BIGINT, epoch BIGINT, controller STRING, "
    "total_ns BIGINT, forward_ns BIGINT, "
    "to_controller_ns BIGINT, queue_ns BIGINT, decide_ns BIGINT",
    build=query(_REQUESTS),
)
