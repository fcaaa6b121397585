"""The controller's part of kafka-request.log: forwarded requests, as they were answered here.

As in Kafka the line shows the client's principal, client id and request, but the connection that
the Envelope came over, and no client software.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from bridgehead.kafka_wire.headers import RequestHeader
from cluster_model.request_lines import CompletedRequest, Times, is_deprecated, request_line
from controller.work import Work
from event_log.text_log import Level, TextLog

_log = logging.getLogger(__name__)
# What Envelopes come over has no Kafka listener.
ENVELOPE_LISTENER = "ENVELOPE"


class ForwardedRequestLog:
    """Writes a line for each request that another broker forwarded."""

    def __init__(
        self, lines: TextLog, *, now_s: Callable[[], float], wall_ms: Callable[[], int]
    ) -> None:
        self._lines = lines
        self._now_s = now_s
        self._wall_ms = wall_ms

    def completed(self, work: Work, connection_id: str | None, received_s: float) -> None:
        """Write the line; nothing for the own broker's request, which that broker writes."""
        context = work.context
        header = RequestHeader(
            context.api_key, context.api_version, work.correlation_id, context.client_id
        )
        level = Level.INFO if is_deprecated(header) else Level.DEBUG
        if connection_id is None or level < self._lines.level or work.response is None:
            return
        now_s = self._now_s()
        decided_s = work.decided_s or now_s
        waits_s = work.waits_s or now_s
        done = CompletedRequest(
            is_forwarded=True,
            header=header,
            request=work.request,
            response=work.response,
            connection_id=connection_id,
            times=Times(
                queue_ns=int((decided_s - received_s) * 1e9),
                local_ns=int((waits_s - decided_s) * 1e9),
                remote_ns=int((now_s - waits_s) * 1e9),
            ),
            security_protocol="PLAINTEXT",
            principal=str(context.principal),
            listener_name=ENVELOPE_LISTENER,
        )
        try:
            line = request_line(done)
        except Exception:  # A line that cannot be written costs nobody an answer.
            _log.exception("no line in the request log for %s", context.request_id)
            return
        self._lines.append(level, line, self._wall_ms())
