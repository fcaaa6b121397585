"""Envelopes on their way through a controller: checked, executed once, answered.

KIP-590 §EnvelopeRequest Handling. An Envelope that comes while the state is loaded waits; a copy
of one that is under way joins it; one of a registration the controller has not seen yet is sent
back to be asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import encode_response_header
from cluster_model.authorization import nothing_is_allowed
from cluster_model.image import MetadataImage
from cluster_model.quirks import (
    DENIAL_DUMPS_REQUEST,
    DumpedRequest,
    denial_text,
    tell_denial,
)
from controller.apis.base import RequestContext
from controller.askers import Askers
from controller.host_names import with_hosts
from controller.loop import ControllerLoop
from controller.open_envelope import Opened, Refused, open_envelope, refuse_sender
from controller.services import THIS_PROCESS, Sender, Services
from controller.work import Work, told_codes
from envelope.messages import Envelope, EnvelopeAnswer, RequestIdentity
from event_log.digests import answer_sha256, body_sha256
from event_log.events import EnvelopeReceived, EnvelopeRefused, RequestDecided

_log = logging.getLogger(__name__)


class EnvelopeDesk:
    """Answers Envelopes for one candidate, whatever office it holds at the moment."""

    def __init__(
        self,
        services: Services,
        *,
        in_office: Callable[[], ControllerLoop | None],
        brokers_may_have_changed: Callable[[], None],
    ) -> None:
        self._services = services
        self._in_office = in_office
        self._brokers_may_have_changed = brokers_may_have_changed
        self._open = asyncio.Event()  # set while no Envelope must wait
        self._open.set()
        self._askers = Askers(services.mutants)
        self._running: dict[RequestIdentity, asyncio.Future[EnvelopeAnswer]] = {}

    def close(self) -> None:
        """Office is near: let Envelopes wait until it is taken or lost."""
        self._open.clear()

    def reopen(self) -> None:
        """Answer again, from office or from standby."""
        self._open.set()

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeAnswer:
        """Answer one Envelope. Never raises; see kafka-semantics 1.5 for the codes.

        NOT_CONTROLLER is the one answer that decides nothing: the broker asks the next controller.
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
        refused = refuse_sender(sender, envelope.identity, services.may_send_envelopes)
        if refused is not None:
            services.authorization_failed()
            return self._refuse(envelope, refused)
        if not self._open.is_set():
            await self._open.wait()
        loop = self._in_office()
        if loop is None:
            return self._refuse(envelope, Refused(ErrorCode.NOT_CONTROLLER, "not in office"))
        if not (services.understands_envelopes or _needs_none(envelope, sender)):
            # Kafka's broker sees that its peer lacks the API, and its client is told -1.
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            return self._refuse(envelope, Refused(error, "this release knows no Envelope"))
        running = self._running.get(envelope.identity)
        if running is not None:
            return await asyncio.shield(running)  # A copy of a request that is under way.
        envelope = self._askers.received(envelope)
        stale = self._refuse_identity(envelope, loop)
        opened = stale or open_envelope(envelope, services.serde, services.apis)
        if isinstance(opened, Refused):
            return self._refuse(envelope, opened)
        asked = self._askers.of(opened, sender)
        return await self._execute(envelope, asked, loop, sender.connection_id)

    def _refuse(self, envelope: Envelope, refused: Refused) -> EnvelopeAnswer:
        if refused.error is not ErrorCode.NOT_CONTROLLER:
            self._services.envelope_refused()
            _log.warning("Envelope %s was refused: %s", envelope.request_id, refused.reason)
        self._services.log.append(
            EnvelopeRefused(
                request_id=envelope.request_id,
                identity=envelope.identity,
                error=int(refused.error),
                reason=refused.reason,
            )
        )
        return EnvelopeAnswer(int(refused.error), None, 0)

    def _refuse_identity(self, envelope: Envelope, loop: ControllerLoop) -> Refused | None:
        identity = envelope.identity
        broker = loop.image.brokers.get(identity.broker_id)
        if broker is None or broker.incarnation != identity.incarnation:
            # It may have registered a moment ago: it shall ask again (design 5.5).
            self._brokers_may_have_changed()
            return Refused(ErrorCode.NOT_CONTROLLER, "this incarnation is not registered")
        if loop.outcomes.is_below_floor(identity):
            return Refused(ErrorCode.INVALID_REQUEST, "its broker has finished with this request")
        return None

    async def _execute(
        self,
        envelope: Envelope,
        opened: Opened,
        loop: ControllerLoop,
        connection_id: str | None,
    ) -> EnvelopeAnswer:
        services = self._services
        received_s = services.now_s()
        header = opened.header
        answer: asyncio.Future[EnvelopeAnswer] = asyncio.get_running_loop().create_future()
        self._running[envelope.identity] = answer
        context = RequestContext(
            request_id=envelope.request_id,
            api_key=header.api_key,
            api_version=header.api_version,
            dialect=envelope.dialect,
            principal=opened.principal,
            client_host=opened.client_host,
            client_id=header.client_id,
            listener_name=envelope.listener_name,
            security_protocol=envelope.security_protocol,
            authorize=nothing_is_allowed,  # Until the loop decides.
            random=services.random,
            now_ms=services.now_ms(),
            made_by_broker=envelope.made_by_broker,
        )
        context = await with_hosts(
            context, opened.request, services.bind_authorize, loop.image.acls
        )
        if self._in_office() is not loop:  # Lost while names were looked up.
            answer.set_result(EnvelopeAnswer(int(ErrorCode.NOT_CONTROLLER), None, 0))
            return self._running.pop(envelope.identity).result()
        work = Work(
            identity=envelope.identity,
            context=context,
            api=opened.api,
            request=opened.request,
            correlation_id=header.correlation_id,
            deadline_s=received_s + envelope.remaining_ms / 1000,
            answer=answer,
            attempt=envelope.attempt,
            body_sha256=body_sha256(header.api_key, envelope.request_data),
        )
        if DENIAL_DUMPS_REQUEST in services.quirks:
            work.denial = self._dump(envelope, connection_id)
        loop.submit(work)
        try:
            return await asyncio.shield(answer)
        finally:
            self._running.pop(envelope.identity, None)
            services.request_log.completed(work, connection_id, received_s)

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
        around = len(envelope.principal) + len(envelope.client_host)
        session = self._services.random.randbytes(4).hex()
        return denial_text(inner, replace(inner, session=session, size=size + around))

    def encode_answer(
        self, work: Work, unfinished: frozenset[str], image: MetadataImage
    ) -> EnvelopeAnswer:
        """Build the answer of a request that is decided and committed."""
        context = work.context
        message = work.api.answer(context, work.request, work.outcomes, image, unfinished)
        if work.denial is not None:
            tell_denial(context.api_key, message, work.denial)
        throttle_ms = work.charges.throttle_left_ms(self._services.now_ms())
        if throttle_ms:
            message.throttle_time_ms = throttle_ms
        zxid = work.zxid or image.zxid
        elements = told_codes(work.outcomes, unfinished)
        answer = _relayed(work, message, zxid, throttle_ms)
        epoch = image.controller_epoch
        self._services.log.append(_decided(work, elements, answer, epoch=epoch))
        return answer

    def encode_refusal(self, work: Work, error: ErrorCode) -> EnvelopeAnswer:
        """Build the answer of a request that failed as a whole, in its API's own shape."""
        context = work.context
        message = work.api.refuse(work.request, context.api_version, error, None)
        answer = _relayed(work, message, 0)
        self._services.log.append(_decided(work, [], answer, epoch=0, error=error))
        return answer


def _needs_none(envelope: Envelope, sender: Sender) -> bool:
    """Tell what reached a controller before there were Envelopes: its own clients and brokers."""
    return envelope.made_by_broker or sender.host == THIS_PROCESS


def _decided(
    work: Work,
    elements: list[tuple[str, int]],
    answer: EnvelopeAnswer,
    *,
    epoch: int,
    error: ErrorCode = ErrorCode.NONE,
) -> RequestDecided:
    return RequestDecided(
        request_id=work.context.request_id,
        identity=work.identity,
        api_key=work.context.api_key,
        principal=str(work.context.principal),
        epoch=epoch,
        image_zxid=work.image_zxid,
        zxid=answer.zxid,
        elements=elements,
        unchanged=sorted(work.without_effect),
        error=int(error),
        validate_only=bool(getattr(work.request, "validate_only", False)),
        answer_sha256=answer_sha256(work.context.api_key, answer.response_data or b""),
    )


def _relayed(work: Work, message: object, zxid: int, throttle_ms: int = 0) -> EnvelopeAnswer:
    context, work.response = work.context, message
    head = encode_response_header(context.api_key, context.api_version, work.correlation_id)
    body = encode_response(context.api_key, context.api_version, message, dialect=context.dialect)
    return EnvelopeAnswer(int(ErrorCode.NONE), head + body, zxid, throttle_ms)
