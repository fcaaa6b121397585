"""This broker's part of kafka-request.log: requests that it has answered, as they were answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from broker_proxy.apis.base import ClientRequest
from cluster_model.request_lines import CompletedRequest, Times, is_deprecated, request_line
from event_log.text_log import Level, TextLog

_log = logging.getLogger(__name__)


class RequestLog:
    """Writes a line for each request, after its answer has left."""

    def __init__(
        self, lines: TextLog, *, now_ns: Callable[[], int], wall_ms: Callable[[], int]
    ) -> None:
        self._lines = lines
        self._now_ns = now_ns
        self._wall_ms = wall_ms

    def completed(self, requests: Iterable[ClientRequest], write_began_ns: int) -> None:
        """Write the lines of requests whose answers went out in one write."""
        if self._lines.level is Level.OFF:
            return
        written_ns = self._now_ns()
        for request in requests:
            level = Level.INFO if is_deprecated(request.header) else Level.DEBUG
            if level < self._lines.level:
                continue
            try:
                line = request_line(_completed(request, write_began_ns, written_ns))
            except Exception:  # A line that cannot be written costs nobody an answer.
                _log.exception("no line in the request log for %s", request.request_id)
                continue
            self._lines.append(level, line, self._wall_ms())


def _completed(request: ClientRequest, write_began_ns: int, written_ns: int) -> CompletedRequest:
    course, connection = request.course, request.connection
    handed_on_ns = course.handed_on_ns or course.answered_ns
    return CompletedRequest(
        is_forwarded=False,
        header=request.header,
        request=course.message,
        response=course.response,
        connection_id=connection.connection_id,
        times=Times(
            queue_ns=course.executed_ns - request.received_ns,
            local_ns=handed_on_ns - course.executed_ns,
            remote_ns=course.answered_ns - handed_on_ns,
            response_queue_ns=write_began_ns - course.answered_ns,
            send_ns=written_ns - write_began_ns,
            throttle_ms=course.own_throttle_ms,
        ),
        security_protocol=connection.security_protocol,
        principal=str(connection.principal),
        listener_name=connection.listener_name,
        software_name=connection.software_name,
        software_version=connection.software_version,
        dialect=connection.dialect,
    )
