"""Handles Envelopes for one candidate: checks each, and executes it once.

KIP-590 §EnvelopeRequest Handling. While the candidate becomes active, Envelopes wait. A resend of
a pending request waits for the same reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.schema import free_elements
from bridgehead.slices import in_thread, is_large, sliced
from controller.envelopes.open import OpenEnvelope, RejectedEnvelope, check_sender
from controller.loop.loop import ControllerLoop
from controller.requests.host_names import resolve_hosts
from controller.requests.pending_request import NOT_CONTROLLER, PendingRequest
from controller.services import THIS_PROCESS, Sender, Services
from envelope.messages import Envelope, EnvelopeReply, RequestIdentity
from event_log.digests import body_sha256
from event_log.events import EnvelopeReceived, EnvelopeRejected

_log = logging.getLogger(__name__)


class EnvelopeHandler:
    """Handles the Envelopes of one candidate, in each of its states."""

    def __init__(
        self,
        services: Services,
        open_envelope: OpenEnvelope,
        brokers_may_have_changed: Callable[[], None],
    ) -> None:
        self._services = services
        self._open_envelope = open_envelope
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
        rejected = self._check_identity(envelope, loop)
        if rejected is not None:
            return self._reject(envelope, rejected)
        reply: asyncio.Future[EnvelopeReply] = asyncio.get_running_loop().create_future()
        self._running[envelope.identity] = reply
        try:
            return await self._open_and_execute(envelope, sender, loop, reply)
        finally:
            self._running.pop(envelope.identity, None)

    async def _open_and_execute(
        self,
        envelope: Envelope,
        sender: Sender,
        loop: ControllerLoop,
        reply: asyncio.Future[EnvelopeReply],
    ) -> EnvelopeReply:
        received_s = self._services.now_s()
        large, data = is_large(envelope.request_data), envelope.request_data
        try:
            opened = await in_thread(large, self._open_envelope, envelope, sender)
            if isinstance(opened, RejectedEnvelope):
                reply.set_result(self._reject(envelope, opened))
                return reply.result()
            digest = await in_thread(large, body_sha256, opened.header.api_key, data)
        except BaseException:
            reply.cancel()  # A resend may wait for it.
            raise
        pending = PendingRequest(
            identity=envelope.identity,
            request_id=envelope.request_id,
            header=opened.header,
            client=opened.client,
            api=opened.api,
            request=opened.request,
            random=self._services.random,
            deadline_s=received_s + envelope.remaining_ms / 1000,
            reply=reply,
            made_by_broker=envelope.made_by_broker,
            is_large=large,
            body_sha256=digest,
        )
        return await self._execute(pending, loop, sender.connection_id, received_s)

    def _reject(self, envelope: Envelope, rejected: RejectedEnvelope) -> EnvelopeReply:
        if rejected.error is not ErrorCode.NOT_CONTROLLER:
            self._services.envelope_rejected()
            _log.warning("rejected Envelope %s: %s", envelope.request_id, rejected.reason)
        self._services.log.append(
            EnvelopeRejected(
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
        pending: PendingRequest,
        loop: ControllerLoop,
        connection_id: str | None,
        received_s: float,
    ) -> EnvelopeReply:
        services = self._services
        try:
            await resolve_hosts(pending, services.bind_authorize, loop.image.acls)
            if self._loop is loop:
                loop.submit(pending)
            else:  # The controller resigned meanwhile.
                pending.reply.set_result(NOT_CONTROLLER)
            return await asyncio.shield(pending.reply)
        finally:
            services.request_log.completed(pending, connection_id, received_s)
            if pending.is_large and pending.reply.done():
                await _free(pending)


async def _free(pending: PendingRequest) -> None:
    """Free the messages of a large request in slices."""
    for message in (pending.request, pending.response):
        if message is not None:
            async for _ in sliced(free_elements(message)):
                pass


def _predates_envelopes(envelope: Envelope, sender: Sender) -> bool:
    """True for a request that is executed even without support for Envelopes.

    Such a request is a broker's own, or it comes from the broker in this process and so needs no
    Envelope.
    """
    return envelope.made_by_broker or sender.host == THIS_PROCESS
