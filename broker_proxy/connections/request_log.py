"""The broker's part of kafka-request.log: the requests that it answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from broker_proxy.client_request import ClientRequest
from cluster_model.request_lines import CompletedRequest, Times, is_deprecated, request_line
from event_log.text_log import Level, TextLog

_log = logging.getLogger(__name__)


class RequestLog:
    """Writes one line per request after its response is sent."""

    def __init__(
        self, lines: TextLog, *, now_ns: Callable[[], int], wall_ms: Callable[[], int]
    ) -> None:
        self._lines = lines
        self._now_ns = now_ns
        self._wall_ms = wall_ms

    def completed(self, requests: Iterable[ClientRequest], write_began_ns: int) -> None:
        """Write the lines of requests whose responses were sent in one write."""
        if self._lines.level is Level.OFF:
            return
        written_ns = self._now_ns()
        for request in requests:
            level = Level.INFO if is_deprecated(request.header) else Level.DEBUG
            if level < self._lines.level:
                continue
            try:
                line = request_line(_completed(request, write_began_ns, written_ns))
            except Exception:  # A failed log line must not fail the responses.
                _log.exception("cannot write the request log line of %s", request.request_id)
                continue
            self._lines.append(level, line, self._wall_ms())


def _completed(request: ClientRequest, write_began_ns: int, written_ns: int) -> CompletedRequest:
    progress, client = request.progress, request.client
    software = request.connection.client  # ApiVersions may have just set it.
    forwarded_ns = progress.forwarded_ns or progress.responded_ns
    return CompletedRequest(
        is_forwarded=False,
        header=request.header,
        request=progress.message,
        response=progress.response,
        connection_id=request.connection.connection_id,
        times=Times(
            queue_ns=progress.executed_ns - request.received_ns,
            local_ns=forwarded_ns - progress.executed_ns,
            remote_ns=progress.responded_ns - forwarded_ns,
            response_queue_ns=write_began_ns - progress.responded_ns,
            send_ns=written_ns - write_began_ns,
            throttle_ms=progress.controller_throttle_ms,
        ),
        security_protocol=client.security_protocol,
        principal=str(client.principal),
        listener_name=client.listener_name,
        software_name=software.software_name,
        software_version=software.software_version,
        dialect=client.dialect,
    )
