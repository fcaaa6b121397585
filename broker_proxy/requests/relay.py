"""Forwards a request to the active controller, and relays the controller's response.

`forwarding.retry` decides what to do after each reply to an Envelope. The body of the response goes
to the client as the controller sent it; only its throttle time is read here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from bridgehead.kafka_wire.codec import throttle_time_ms
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import decode_response_header
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.manager import Forwarded, ForwardingManager
from broker_proxy.forwarding.retry import NextStep
from broker_proxy.requests.responses import EncodedResponse, failure
from metrics.node_metrics import NodeMetrics

_log = logging.getLogger(__name__)


class Relay:
    """Forwards the requests of one broker, and measures how long that takes."""

    def __init__(
        self,
        forwarding: ForwardingManager,
        *,
        is_controller: Callable[[], bool],
        image_zxid: Callable[[], int],
        now_ns: Callable[[], int],
        metrics: NodeMetrics,
    ) -> None:
        self._forwarding = forwarding
        self._is_controller = is_controller
        self._image_zxid = image_zxid
        self._now_ns = now_ns
        self._metrics = metrics

    async def forward(self, request: ClientRequest, message: Any, body: bytes) -> EncodedResponse:
        """Return the controller's response to `body`, which encodes `message`."""
        connection_id = request.connection.connection_id
        redirecting = not self._is_controller()
        request.progress.forwarded_ns = self._now_ns()
        if redirecting:
            self._metrics.forwarding_began(connection_id)
        try:
            forwarded = await self._forwarding.forward(
                request, body, self._metrics.client_request_redirected
            )
        finally:
            if redirecting:
                self._metrics.forwarding_ended(connection_id)
        if forwarded.queued_ms is not None:
            self._metrics.queue_time(forwarded.queued_ms)
        if forwarded.remote_ms is not None:
            self._metrics.remote_time(forwarded.remote_ms)
        return await self._relay(request, message, forwarded)

    async def _relay(
        self, request: ClientRequest, message: Any, forwarded: Forwarded
    ) -> EncodedResponse:
        key, version = request.header.api_key, request.header.api_version
        if forwarded.step is NextStep.RELAY and forwarded.response is not None:
            try:
                _, at = decode_response_header(key, version, forwarded.response)
                body = forwarded.response[at:]
                progress = request.progress
                progress.response, progress.controller_throttle_ms = body, forwarded.throttle_ms
                body_ms = throttle_time_ms(key, version, body)
                progress.throttle_ms = max(forwarded.throttle_ms, body_ms)
                return EncodedResponse(body, forwarded.zxid)
            except WireError as wrong:
                _log.warning("%s: malformed inner response: %s", request.request_id, wrong)
        self._metrics.forwarding_failed()
        if forwarded.step is NextStep.CLOSE:
            request.progress.response = None
            return EncodedResponse(None, 0, int(ErrorCode.UNSUPPORTED_VERSION))
        timed_out = forwarded.step is NextStep.TIMED_OUT
        error = ErrorCode.REQUEST_TIMED_OUT if timed_out else ErrorCode.UNKNOWN_SERVER_ERROR
        return await failure(request, message, error, None, self._image_zxid())
