"""Bugs of forwarding: Envelopes that change on the way, and brokers that resend them wrongly."""

from __future__ import annotations

import copy
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final, cast

from bridgehead.kafka_wire.codec import decode_request, encode_request
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import decode_request_header
from broker_proxy.forwarding.manager import ForwardingManager
from chaos.bugs.bug import Bug, KafkaBug, Run, part
from controller.controller import Controller
from controller.services import THIS_PROCESS, Sender
from envelope.messages import Envelope, EnvelopeReply, Hello

_IMPATIENT_MS: Final = 200
_FOR_EVER_MS: Final = 1_000_000_000
_OTHER_PRINCIPAL: Final = (
    "integration/test_forwarded_principals.py::test_decision_for_another_principal_is_detected"
)


# --- What the controller reads from an Envelope --------------------------------------------------


class _OtherTimeout(Controller):
    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        return await super().handle(_with_own_timeout(envelope), sender)


def _with_own_timeout(envelope: Envelope) -> Envelope:
    header, _ = decode_request_header(envelope.request_header, envelope.dialect)
    of = (header.api_key, header.api_version)
    request = decode_request(*of, envelope.request_data, dialect=envelope.dialect)
    if hasattr(request, "timeout_ms"):
        request.timeout_ms = 12_345
    body = encode_request(*of, request, dialect=envelope.dialect)
    return replace(envelope, request_data=body)


class _DropsPrincipal(Controller):
    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        if sender.host != THIS_PROCESS:
            brokers = self._services.serde.serialize(sender.principal)
            envelope = replace(envelope, principal=brokers)
        return await super().handle(envelope, sender)


class _SwapsPrincipals(Controller):
    _previous: Envelope | None = None

    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        previous, self._previous = self._previous, envelope
        if sender.host != THIS_PROCESS and previous is not None:
            envelope = replace(envelope, principal=previous.principal)
        return await super().handle(envelope, sender)


class _UsesBrokersHost(Controller):
    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        if sender.host != THIS_PROCESS:
            envelope = replace(envelope, client_address=ip_address(sender.host).packed)
        return await super().handle(envelope, sender)


class _TrustsIdentities(Controller):
    async def handle(self, envelope: Envelope, sender: Sender) -> EnvelopeReply:
        trusted = copy.copy(sender)
        broker_id, incarnation, _ = envelope.identity
        cast(Any, trusted).hello = Hello(broker_id, incarnation)
        return await super().handle(envelope, trusted)


# --- When a broker resends -----------------------------------------------------------------------


class _CountingForwarding(ForwardingManager):
    async def _attempt(self, message: Any, attempt: int, *others: Any) -> EnvelopeReply | None:
        if attempt > 1:
            self._redirected()
        return await super()._attempt(message, attempt, *others)


class _RelayingForwarding(ForwardingManager):
    async def _attempt(self, *arguments: Any) -> EnvelopeReply | None:
        reply = await super()._attempt(*arguments)
        if reply is not None and reply.error_code == ErrorCode.NOT_CONTROLLER:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        return reply


class _EndlessForwarding(ForwardingManager):
    def __init__(self, **others: Any) -> None:
        super().__init__(**{**others, "request_timeout_ms": _FOR_EVER_MS})


class _ImpatientForwarding(ForwardingManager):
    def __init__(self, **others: Any) -> None:
        super().__init__(**{**others, "request_timeout_ms": _IMPATIENT_MS})


class _UnrepeatingForwarding(ForwardingManager):
    async def _attempt(self, *arguments: Any) -> EnvelopeReply | None:
        reply = await super()._attempt(*arguments)
        return EnvelopeReply(ErrorCode.REQUEST_TIMED_OUT, None, 0) if reply is None else reply


BUGS: Final[tuple[Bug, ...]] = (
    Bug(
        name="fill_in_default",
        does="The controller encodes a request again with a timeout of its own.",
        apply=part("controller", _OtherTimeout),
        found_by="F2",
        test="integration/test_forwarded_principals.py::test_reencoded_request_is_detected",
    ),
    Bug(
        name="drop_principal",
        does="The controller decides a forwarded request for the forwarding broker.",
        apply=part("controller", _DropsPrincipal),
        found_by="F1",
        test=_OTHER_PRINCIPAL,
    ),
    KafkaBug(
        name="swap_principals",
        does="The controller decides a forwarded request for the principal of the one before it.",
        apply=part("controller", _SwapsPrincipals),
        found_by="F1",
        test=_OTHER_PRINCIPAL,
        issue="KIP-590, review",
        happened="The controller executed a request for the principal of another request that was "
        "in flight.",
        run=Run(scenario="principals_in_failover", found_by=("F1",)),
    ),
    Bug(
        name="broker_host",
        does="The controller decides a forwarded request for the host of the forwarding broker.",
        apply=part("controller", _UsesBrokersHost),
        found_by="F1",
        test=_OTHER_PRINCIPAL,
    ),
    Bug(
        name="trusts_identities",
        does="The controller treats every sender as the broker that its Envelope names.",
        apply=part("controller", _TrustsIdentities),
        found_by="F10",
        test="integration/test_bugs_of_connections.py"
        "::test_an_envelope_that_no_broker_sent_fails_f10",
    ),
    Bug(
        name="counts_attempts",
        does="The metric of forwarded requests counts resends as well.",
        apply=part("forwarding", _CountingForwarding),
        found_by="K1",
        run=Run(scenario="sessions_flap", found_by=("K1",)),
    ),
    KafkaBug(
        name="relays_not_controller",
        does="A broker returns the controller's NOT_CONTROLLER to the client.",
        apply=part("forwarding", _RelayingForwarding),
        found_by="F5, F6",
        issue="KAFKA-12677",
        happened="A broker forwarded a request, got NOT_CONTROLLER, and returned this error to the "
        "client.",
        run=Run(scenario="sessions_flap", found_by=("F5", "F6")),
    ),
    KafkaBug(
        name="resends_forever",
        does="No time limit ends a broker's attempts to forward a request.",
        apply=part("forwarding", _EndlessForwarding),
        found_by="F8, L1",
        issue="KAFKA-10667",
        happened="A broker resent forwarded requests without end, although their clients had given "
        "up.",
        run=Run(scenario="requests_time_out", found_by=("F8", "L1")),
    ),
    Bug(
        name="gives_up_early",
        does="A broker waits only 200 ms for the controller's response.",
        apply=part("forwarding", _ImpatientForwarding),
        found_by="unknown outcomes",
    ),
    Bug(
        name="never_resends",
        does="A request whose reply is lost times out at once.",
        apply=part("forwarding", _UnrepeatingForwarding),
        found_by="unknown outcomes",
    ),
)
