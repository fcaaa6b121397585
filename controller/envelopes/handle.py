"""Handles Envelopes for one candidate: checks each, executes it once, encodes the response.

KIP-590 §EnvelopeRequest Handling. While the candidate becomes active, Envelopes wait. A resend of
a pending request waits for the same reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import encode_response_header
from cluster_model.image import MetadataImage
from cluster_model.quirks import (
    DENIAL_DUMPS_REQUEST,
    DumpedRequest,
    denial_text,
    set_denial_message,
)
from controller.apis.base import Results
from controller.envelopes.host_names import resolve_hosts
from controller.envelopes.open import (
    OpenedEnvelope,
    RejectedEnvelope,
    check_sender,
    open_envelope,
)
from controller.loop.loop import ControllerLoop
from controller.loop.pending_request import (
    NOT_CONTROLLER,
    PendingRequest,
    error_codes,
    request_decided,
)
from controller.services import THIS_PROCESS, Sender, Services
from envelope.messages import Envelope, EnvelopeReply, RequestIdentity
from event_log.digests import answer_sha256, body_sha256
from event_log.events import EnvelopeReceived, EnvelopeRefused

_log = logging.getLogger(__name__)
# For these APIs, KIP-4 says that an InvalidRequestException is "logged on the broker".
_LOGGED_IF_INVALID: Final = frozenset({ApiKey.CREATE_TOPICS, ApiKey.ALTER_ACLS})
_INVALID_LINES_MAX: Final = 10  # of one request
_SHOWN_MAX: Final = 249  # characters of an element


class EnvelopeHandler:
    """Handles the Envelopes of one candidate, in each of its states."""

    def __init__(self, services: Services, brokers_may_have_changed: Callable[[], None]) -> None:
        self._services = services
        self._brokers_may_have_changed = brokers_may_have_changed
        self._loop: ControllerLoop | None = None
        self._is_open = asyncio.Event()  # cleared while Envelopes wait
        self._is_open.set()
        self._running: dict[RequestIdentity, asyncio.Future[EnvelopeReply]] = {}

    def close(self) -> None:
        """Make Envelopes wait: this candidate may become active."""
        self._loop = None
        self._is_open.clear()

    def open(self, loop: ControllerLoop | None) -> None:
        """Stop making Envelopes wait. `loop`: the active controller's loop; None on standby."""
        self._loop = loop
        self._is_open.set()

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        """Handle one Envelope. Never raises; see docs/kafka/forwarding.md for the error codes.

        Every error but NOT_CONTROLLER is final. After NOT_CONTROLLER the outcome is unknown, so the
        broker resends the request to the next controller.
        """
        services = self._services
        services.log.append(
            EnvelopeReceived(
                request_id=envelope.request_id,
                identity=envelope.identity,
                attempt=envelope.attempt,
                sender=str(sender.principal),
            )
        )
        rejected = check_sender(sender, envelope.identity, services.may_send_envelopes)
        if rejected is not None:
            services.authorization_failed()
            return self._reject(envelope, rejected)
        if not self._is_open.is_set():
            await self._is_open.wait()
        loop = self._loop
        if loop is None:
            reason = "this is not the active controller"
            return self._reject(envelope, RejectedEnvelope(ErrorCode.NOT_CONTROLLER, reason))
        if not (services.understands_envelopes or _predates_envelopes(envelope, sender)):
            # A Kafka broker responds with this error if the controller does not support Envelopes.
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            reason = "this release does not support Envelopes"
            return self._reject(envelope, RejectedEnvelope(error, reason))
        running = self._running.get(envelope.identity)
        if running is not None:
            return await asyncio.shield(running)
        opened = self._check_identity(envelope, loop) or open_envelope(
            envelope, services.serde, services.apis
        )
        if isinstance(opened, RejectedEnvelope):
            return self._reject(envelope, opened)
        return await self._execute(envelope, opened, loop, sender.connection_id)

    def _reject(self, envelope: Envelope, rejected: RejectedEnvelope) -> EnvelopeReply:
        if rejected.error is not ErrorCode.NOT_CONTROLLER:
            self._services.envelope_refused()
            _log.warning("rejected Envelope %s: %s", envelope.request_id, rejected.reason)
        self._services.log.append(
            EnvelopeRefused(
                request_id=envelope.request_id,
                identity=envelope.identity,
                error=int(rejected.error),
                reason=rejected.reason,
            )
        )
        return EnvelopeReply(int(rejected.error), None, 0)

    def _check_identity(self, envelope: Envelope, loop: ControllerLoop) -> RejectedEnvelope | None:
        identity = envelope.identity
        broker = loop.image.brokers.get(identity.broker_id)
        if broker is None or broker.incarnation != identity.incarnation:
            # The broker may have registered a moment ago, so it should resend.
            self._brokers_may_have_changed()
            reason = "this incarnation is not registered"
            return RejectedEnvelope(ErrorCode.NOT_CONTROLLER, reason)
        if loop.outcomes.is_below_floor(identity):
            reason = "the broker had already finished this request"
            return RejectedEnvelope(ErrorCode.INVALID_REQUEST, reason)
        return None

    async def _execute(
        self,
        envelope: Envelope,
        opened: OpenedEnvelope,
        loop: ControllerLoop,
        connection_id: str | None,
    ) -> EnvelopeReply:
        services = self._services
        received_s = services.now_s()
        reply: asyncio.Future[EnvelopeReply] = asyncio.get_running_loop().create_future()
        self._running[envelope.identity] = reply
        pending = PendingRequest(
            identity=envelope.identity,
            request_id=envelope.request_id,
            header=opened.header,
            client=opened.client,
            api=opened.api,
            request=opened.request,
            random=services.random,
            deadline_s=received_s + envelope.remaining_ms / 1000,
            reply=reply,
            made_by_broker=envelope.made_by_broker,
            body_sha256=body_sha256(opened.header.api_key, envelope.request_data),
        )
        try:
            await resolve_hosts(pending, services.bind_authorize, loop.image.acls)
            if DENIAL_DUMPS_REQUEST in services.quirks:
                pending.denial = self._dump(envelope, connection_id)
            if self._loop is loop:
                loop.submit(pending)
            else:  # The controller resigned while host names were resolved.
                reply.set_result(NOT_CONTROLLER)
            return await asyncio.shield(reply)
        finally:
            self._running.pop(envelope.identity, None)
            services.request_log.completed(pending, connection_id, received_s)

    def _dump(self, envelope: Envelope, connection_id: str | None) -> str:
        size = len(envelope.request_header) + len(envelope.request_data)
        inner = DumpedRequest(
            connection_id or envelope.request_id,
            envelope.listener_name,
            envelope.security_protocol,
            session=self._services.random.randbytes(4).hex(),
            size=size,
        )
        if connection_id is None:
            return denial_text(inner, None)
        around = len(envelope.principal) + len(envelope.client_address)
        session = self._services.random.randbytes(4).hex()
        return denial_text(inner, replace(inner, session=session, size=size + around))

    def encode_response(
        self, pending: PendingRequest, unfinished: frozenset[str], image: MetadataImage
    ) -> EnvelopeReply:
        """Return the response to a decided and committed request."""
        results = Results(pending.outcomes, image, unfinished)
        message = pending.api.response(pending.context, pending.request, results)
        if pending.denial is not None:
            set_denial_message(pending.header.api_key, message, pending.denial)
        throttle_ms = pending.charges.throttle_left_ms(self._services.now_ms())
        if throttle_ms:
            message.throttle_time_ms = throttle_ms
        _log_invalid_elements(pending)
        reply = _reply(pending, message, pending.zxid or image.zxid, throttle_ms)
        elements = error_codes(pending.outcomes, unfinished)
        self._log_decided(pending, elements, reply, epoch=image.controller_epoch)
        return reply

    def encode_error_response(self, pending: PendingRequest, error: ErrorCode) -> EnvelopeReply:
        """Return the response to a request that failed as a whole."""
        version = pending.header.api_version
        message = pending.api.error_response(pending.request, version, error, None)
        reply = _reply(pending, message, 0)
        self._log_decided(pending, [], reply, epoch=0, error=error)
        return reply

    def _log_decided(
        self,
        pending: PendingRequest,
        elements: list[tuple[str, int]],
        reply: EnvelopeReply,
        *,
        epoch: int,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        digest = answer_sha256(pending.header.api_key, reply.response_data or b"")
        self._services.log.append(
            request_decided(
                pending, elements, epoch=epoch, zxid=reply.zxid, answer_sha256=digest, error=error
            )
        )


def _log_invalid_elements(pending: PendingRequest) -> None:
    """Log the elements with INVALID_REQUEST (KIP-4): a response of version 0 has no message."""
    if pending.header.api_key not in _LOGGED_IF_INVALID:
        return
    name = ApiKey(pending.header.api_key).name
    invalid = [
        (element, outcome.message)
        for element, outcome in pending.outcomes.items()
        if outcome.error is ErrorCode.INVALID_REQUEST
    ]
    for element, text in invalid[:_INVALID_LINES_MAX]:
        shown = ascii(element[:_SHOWN_MAX])  # It may contain any character.
        _log.info("%s %s: INVALID_REQUEST for %s: %s", pending.request_id, name, shown, text)
    if (more := len(invalid) - _INVALID_LINES_MAX) > 0:
        _log.info("%s %s: INVALID_REQUEST for %d more elements", pending.request_id, name, more)


def _predates_envelopes(envelope: Envelope, sender: Sender) -> bool:
    """True for a request that is executed even without support for Envelopes.

    Such a request is a broker's own, or it comes from the broker in this process and so needs no
    Envelope.
    """
    return envelope.made_by_broker or sender.host == THIS_PROCESS


def _reply(
    pending: PendingRequest, message: object, zxid: int, throttle_ms: int = 0
) -> EnvelopeReply:
    pending.response = message
    key, version, correlation_id, _ = pending.header
    head = encode_response_header(key, version, correlation_id)
    body = encode_response(key, version, message, dialect=pending.client.dialect)
    return EnvelopeReply(int(ErrorCode.NONE), head + body, zxid, throttle_ms)
