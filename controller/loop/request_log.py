"""The controller's part of kafka-request.log: forwarded requests.

As in Kafka, a line shows the client's principal, client id and request. The connection is the one
on which the Envelope arrived. The client's software is not shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cluster_model.request_lines import CompletedRequest, Times, is_deprecated, request_line
from controller.loop.pending_request import PendingRequest
from event_log.text_log import Level, TextLog

_log = logging.getLogger(__name__)
# Shown as the listener, because Envelopes do not arrive on a Kafka listener.
ENVELOPE_LISTENER = "ENVELOPE"


class ForwardedRequestLog:
    """Writes one line per request that another broker forwarded."""

    def __init__(
        self, lines: TextLog, *, now_s: Callable[[], float], wall_ms: Callable[[], int]
    ) -> None:
        self._lines = lines
        self._now_s = now_s
        self._wall_ms = wall_ms

    def completed(
        self, pending: PendingRequest, connection_id: str | None, received_s: float
    ) -> None:
        """Write the line, unless this node's broker received the request and writes it itself."""
        level = Level.INFO if is_deprecated(pending.header) else Level.DEBUG
        if connection_id is None or level < self._lines.level or pending.response is None:
            return
        now_s = self._now_s()
        decided_s = pending.decided_s or now_s
        waits_s = pending.waiting_since_s or now_s
        done = CompletedRequest(
            is_forwarded=True,
            header=pending.header,
            request=pending.request,
            response=pending.response,
            connection_id=connection_id,
            times=Times(
                queue_ns=int((decided_s - received_s) * 1e9),
                local_ns=int((waits_s - decided_s) * 1e9),
                remote_ns=int((now_s - waits_s) * 1e9),
            ),
            security_protocol="PLAINTEXT",
            principal=str(pending.client.principal),
            listener_name=ENVELOPE_LISTENER,
        )
        try:
            line = request_line(done)
        except Exception:  # Must not prevent the reply.
            _log.exception("cannot write the request log line of %s", pending.request_id)
            return
        self._lines.append(level, line, self._wall_ms())
