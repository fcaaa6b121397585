"""Requests, each with its whole path.

`received` is null if no broker recorded that it read the request. Durations are in nanoseconds of
the monotonic clock. A hop between two hosts (with different `host_boot_id`) has no duration.
"""

from __future__ import annotations

from typing import Final

from pipeline.query import query
from pipeline.schemas import IDENTITY
from pipeline.table import Table

PLACES: Final = (
    "ARRAY<STRUCT<file: STRING, line_number: BIGINT, node: STRING, boot: STRING, seq: BIGINT>>"
)
_REQUESTS: Final = """
WITH relevant AS (
  SELECT run, request_id, kind, node, boot, seq, mono_ns, wall_ms, host_boot_id, connection,
    api_key, api_version, client_id, principal, client_host, listener, security_protocol, dialect,
    route, client_software_name, client_software_version, error, closed, attempt, zxid, epoch,
    local, identity, struct(file, line_number) AS place,
    struct(node, boot, seq, mono_ns, host_boot_id) AS moment
  FROM events WHERE request_id IS NOT NULL),
whole AS (
  SELECT run, request_id,
    max_by(struct(node, boot, seq, mono_ns, wall_ms, host_boot_id, connection, api_key,
      api_version, client_id, principal, client_host, listener, security_protocol, dialect, route,
      client_software_name, client_software_version), place)
      FILTER (WHERE kind = 'request_received') AS received,
    max_by(struct(node, boot, seq, mono_ns, error, closed, zxid, route), place)
      FILTER (WHERE kind = 'responded') AS responded,
    count_if(kind = 'request_received') AS times_received,
    count_if(kind = 'responded') AS times_responded,
    slice(array_sort(collect_list(struct(file_line.file, file_line.line_number, node, boot, seq))
      FILTER (WHERE kind = 'request_received')), 1, 4) AS receipts,
    slice(array_sort(collect_list(struct(file_line.file, file_line.line_number, node, boot, seq))
      FILTER (WHERE kind = 'responded')), 1, 4) AS responses,
    count_if(kind = 'forward_sent') AS attempts,
    count_if(kind = 'forward_sent' AND NOT local) AS remote_attempts,
    count_if(kind = 'forward_replied') AS times_returned,
    min(seq) FILTER (WHERE kind = 'forward_sent' AND NOT local) AS first_remote_seq,
    min(wall_ms) FILTER (WHERE kind = 'forward_sent' AND NOT local) AS first_remote_ms,
    max(mono_ns) FILTER (WHERE kind = 'forward_sent') AS last_sent_ns,
    max_by(mono_ns, attempt) FILTER (WHERE kind = 'forward_replied') AS last_returned_ns,
    max_by(identity, attempt) FILTER (WHERE kind = 'forward_sent') AS identity,
    max_by(moment, mono_ns) FILTER (WHERE kind = 'envelope_received') AS envelope,
    count_if(kind = 'envelope_rejected') AS envelopes_rejected,
    max_by(error, place) FILTER (WHERE kind = 'envelope_rejected') AS rejected_error,
    max_by(moment, mono_ns) FILTER (WHERE kind = 'execution_started') AS started,
    max_by(moment, mono_ns) FILTER (WHERE kind = 'request_decided') AS decided,
    max_by(epoch, mono_ns) FILTER (WHERE kind = 'request_decided') AS epoch
  FROM (SELECT *, place AS file_line FROM relevant) GROUP BY run, request_id)
SELECT run, request_id, received, responded, times_received, times_responded, receipts, responses,
  attempts, remote_attempts, times_returned, first_remote_seq, first_remote_ms, identity,
  envelopes_rejected,
  rejected_error, epoch,
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
    inputs=("silver/events",),
    schema="run STRING, request_id STRING, received STRUCT<node: STRING, boot: STRING, "
    "seq: BIGINT, mono_ns: BIGINT, wall_ms: BIGINT, host_boot_id: STRING, connection: STRING, "
    "api_key: BIGINT, api_version: BIGINT, client_id: STRING, principal: STRING, "
    "client_host: STRING, listener: STRING, security_protocol: STRING, dialect: STRING, "
    "route: STRING, client_software_name: STRING, client_software_version: STRING>, "
    "responded STRUCT<node: STRING, boot: STRING, seq: BIGINT, mono_ns: BIGINT, error: BIGINT, "
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
