"""Encodes the response to a decided request in the client's version, and records it as an event."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import encode_response_header
from bridgehead.slices import in_thread
from cluster_model.image import MetadataImage
from controller.apis.base import Results
from controller.requests.events import error_codes, request_decided
from controller.requests.pending_request import PendingRequest
from envelope.messages import EnvelopeReply
from event_log.digests import response_sha256
from event_log.events import RequestDecided
from event_log.writer import EventLog

_log = logging.getLogger(__name__)
# For these APIs, KIP-4 says that an InvalidRequestException is "logged on the broker".
_LOGGED_IF_INVALID: Final = frozenset({ApiKey.CREATE_TOPICS, ApiKey.ALTER_ACLS})
_INVALID_LINES_MAX: Final = 10  # of one request
_SHOWN_MAX: Final = 249  # characters of an element


class ResponseEncoder:
    """Encodes the responses of one term."""

    def __init__(self, log: EventLog, now_ms: Callable[[], int]) -> None:
        self._log = log
        self._now_ms = now_ms

    def encode(
        self, pending: PendingRequest, unfinished: frozenset[str], image: MetadataImage
    ) -> EnvelopeReply:
        """Return the response to a decided and committed request."""
        done = _success(pending, unfinished, image, self._throttle_ms(pending))
        self._log.append(done.event)
        return done.reply

    async def encode_in_thread(
        self, pending: PendingRequest, unfinished: frozenset[str], image: MetadataImage
    ) -> EnvelopeReply:
        """Return the response to a large request; see `encode`."""
        throttle_ms = self._throttle_ms(pending)
        done = await in_thread(True, _success, pending, unfinished, image, throttle_ms)
        self._log.append(done.event)
        return done.reply

    def encode_error(self, pending: PendingRequest, error: ErrorCode) -> EnvelopeReply:
        """Return the response to a request that failed as a whole."""
        version = pending.header.api_version
        message = pending.api.error_response(pending.request, version, error, None)
        reply, digest = _reply(pending, message, 0, 0)
        self._log.append(
            request_decided(pending, [], epoch=0, zxid=0, response_sha256=digest, error=error)
        )
        return reply

    def _throttle_ms(self, pending: PendingRequest) -> int:
        return pending.charges.throttle_left_ms(self._now_ms())


class _Encoded(NamedTuple):
    reply: EnvelopeReply
    event: RequestDecided


def _success(
    pending: PendingRequest, unfinished: frozenset[str], image: MetadataImage, throttle_ms: int
) -> _Encoded:
    results = Results(pending.outcomes, image, unfinished)
    message = pending.api.response(pending.context, pending.request, results)
    if throttle_ms:
        message.throttle_time_ms = throttle_ms
    _log_invalid_elements(pending)
    reply, digest = _reply(pending, message, pending.zxid or image.zxid, throttle_ms)
    event = request_decided(
        *(pending, error_codes(pending.outcomes, unfinished)),
        epoch=image.controller_epoch,
        zxid=reply.zxid,
        response_sha256=digest,
    )
    return _Encoded(reply, event)


def _log_invalid_elements(pending: PendingRequest) -> None:
    """Log the elements with INVALID_REQUEST (KIP-4): a response of version 0 has no message."""
    if pending.header.api_key not in _LOGGED_IF_INVALID:
        return
    invalid = [
        (element, outcome.message)
        for element, outcome in pending.outcomes.items()
        if outcome.error is ErrorCode.INVALID_REQUEST
    ]
    if not invalid:
        return
    name = ApiKey(pending.header.api_key).name
    for element, text in invalid[:_INVALID_LINES_MAX]:
        shown = ascii(element[:_SHOWN_MAX])  # It may contain any character.
        _log.info("%s %s: INVALID_REQUEST for %s: %s", pending.request_id, name, shown, text)
    if (more := len(invalid) - _INVALID_LINES_MAX) > 0:
        _log.info("%s %s: INVALID_REQUEST for %d more elements", pending.request_id, name, more)


def _reply(
    pending: PendingRequest, message: object, zxid: int, throttle_ms: int
) -> tuple[EnvelopeReply, str | None]:
    """Return the reply, and the digest of the response in it."""
    pending.response = message
    key, version, correlation_id, _ = pending.header
    head = encode_response_header(key, version, correlation_id)
    body = encode_response(key, version, message, dialect=pending.client.dialect)
    reply = EnvelopeReply(int(ErrorCode.NONE), head + body, zxid, throttle_ms)
    return reply, response_sha256(key, head + body)
