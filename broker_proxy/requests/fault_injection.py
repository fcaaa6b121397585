"""Applies fault rules to the requests and Envelopes of one broker (bridgehead/fault_rules.py).

A node uses these classes only with `bridgehead.faults.allow=true`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from bridgehead.fault_rules import Action, FaultRule, FaultRules, Phase, Side, Subject
from bridgehead.kafka_wire.apis import error_response
from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.headers import decode_request_header, encode_response_header
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.slices import in_thread, is_large
from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.manager import ControllerLink
from broker_proxy.requests.dispatch import Dispatcher
from envelope.messages import ChannelClosedError, Envelope, EnvelopeReply
from envelope.principal_serde import PrincipalSerde
from event_log.events import FaultRuleActed
from event_log.writer import EventLog

OWNER: Final = "owner"
"""The connection id of requests from the control socket. Fault rules do not apply to them."""
_TOPIC: Final = 2  # a resource type
# The fields of requests, and of the groups of OffsetFetch, that list topics.
_TOPIC_LISTS: Final = ("topics", "topic_data", "topic_partitions")
_MILLISECONDS: Final = 1000

_log = logging.getLogger(__name__)


class SharedCount:
    """A count of all brokers: each call appends a byte to their file and returns its number.

    The system appends atomically, so no broker waits for another, even if one is frozen or killed.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self) -> int:
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:  # The rule is being removed.
            return 0
        try:
            os.write(descriptor, b".")
            return os.lseek(descriptor, 0, os.SEEK_CUR)
        finally:
            os.close(descriptor)


def topics_of(message: Any) -> frozenset[str]:
    """Return the names of the topics in a request."""
    names = set(getattr(message, "topic_names", None) or ())
    for holder in (message, *(getattr(message, "groups", None) or ())):
        for rows in _TOPIC_LISTS:
            for row in getattr(holder, rows, None) or ():
                name = getattr(row, "name", None) or getattr(row, "topic", None)
                names.add(row if isinstance(row, str) else name)
    for resource in getattr(message, "resources", None) or ():
        if getattr(resource, "resource_type", None) == _TOPIC:
            names.add(getattr(resource, "resource_name", None))
    return frozenset(name for name in names if isinstance(name, str))


def _acted(name: str, rule: FaultRule, request_id: str, api_key: int) -> FaultRuleActed:
    return FaultRuleActed(
        rule=name,
        action=rule.action,
        side=rule.side,
        phase=rule.phase,
        request_id=request_id,
        api_key=api_key,
    )


class FaultyDispatcher(Dispatcher):
    """A dispatcher that applies fault rules to the clients' requests and their responses."""

    def __init__(self, rules: FaultRules, **options: Any) -> None:
        """`options` are those of Dispatcher."""
        super().__init__(**options)
        self._rules = rules

    def may_overlap(self, request: ClientRequest) -> bool:
        """See Dispatcher. False if there are rules: a rule may count requests or disconnect."""
        return not self._rules.described() and super().may_overlap(request)

    async def handle(
        self, request: ClientRequest, earlier: asyncio.Future[Any] | None = None
    ) -> bytes | None:
        hit = await self._hit(request)
        if hit is None:
            return await super().handle(request, earlier)
        name, rule = hit
        self._log.append(_acted(name, rule, request.request_id, request.header.api_key))
        _log.info("%s: fault rule %s acts: %s", request.request_id, name, rule.to_json())
        if rule.phase is Phase.REQUEST and rule.action is not Action.DELAY:
            return self._instead(request, rule, None)
        if rule.phase is Phase.REQUEST:
            await asyncio.sleep(rule.delay_ms / _MILLISECONDS)
            return await super().handle(request, earlier)
        response = await super().handle(request, earlier)
        if rule.action is not Action.DELAY:
            return self._instead(request, rule, response)
        await asyncio.sleep(rule.delay_ms / _MILLISECONDS)
        return response

    async def _hit(self, request: ClientRequest) -> tuple[str, FaultRule] | None:
        if request.connection.connection_id == OWNER or not self._rules.described():
            return None
        header, client = request.header, request.client
        try:
            large, version = is_large(request.body), header.api_version
            message = await in_thread(
                large, decode_request, header.api_key, version, request.body, dialect=client.dialect
            )
        except WireError:  # The dispatcher closes the connection.
            return None
        subject = Subject(
            api_key=header.api_key,
            api_version=header.api_version,
            client_id=header.client_id,
            principal=str(client.principal),
            topics=topics_of(message),
        )
        return self._rules.hit(Side.CLIENT, subject)

    def _instead(
        self, request: ClientRequest, rule: FaultRule, response: bytes | None
    ) -> bytes | None:
        """Return what the client gets instead of the response."""
        progress = request.progress
        progress.executed_ns = progress.executed_ns or self._now_ns()
        progress.responded_ns = self._now_ns()
        match rule.action:
            case Action.ERROR:
                return self._error_of(request, rule)
            case Action.TRUNCATE if response is not None:
                return response[: len(response) // 2]
            case Action.DROP:
                progress.never_gets_response = True
        return None

    def _error_of(self, request: ClientRequest, rule: FaultRule) -> bytes | None:
        header, dialect = request.header, request.client.dialect
        key, version = header.api_key, header.api_version
        message = decode_request(key, version, request.body, dialect=dialect)
        reply = error_response(key, message, version, rule.error, "a fault rule")
        if reply is None:  # No response of this version can report an error.
            return None
        head = encode_response_header(key, version, header.correlation_id)
        return head + encode_response(key, version, reply, dialect)


class FaultyLink:
    """A link to the controller that applies fault rules to Envelopes and replies."""

    def __init__(
        self, link: ControllerLink, rules: FaultRules, serde: PrincipalSerde, log: EventLog
    ) -> None:
        self._link = link
        self._rules = rules
        self._serde = serde
        self._log = log

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeReply]:
        hit = self._hit(envelope)
        if hit is None:
            return self._link.send(envelope)
        name, rule = hit
        self._log.append(_acted(name, rule, envelope.request_id, envelope.api_key))
        return asyncio.ensure_future(self._act(rule, envelope))

    def _hit(self, envelope: Envelope) -> tuple[str, FaultRule] | None:
        if not self._rules.described():
            return None
        header, _ = decode_request_header(envelope.request_header, envelope.dialect)
        message = decode_request(
            header.api_key, header.api_version, envelope.request_data, dialect=envelope.dialect
        )
        subject = Subject(
            api_key=header.api_key,
            api_version=header.api_version,
            client_id=header.client_id,
            principal=str(self._serde.deserialize(envelope.principal)),
            topics=topics_of(message),
        )
        return self._rules.hit(Side.ENVELOPE, subject)

    async def _act(self, rule: FaultRule, envelope: Envelope) -> EnvelopeReply:
        if rule.phase is Phase.REQUEST:
            match rule.action:
                case Action.DELAY:
                    await asyncio.sleep(rule.delay_ms / _MILLISECONDS)
                    return await self._link.send(envelope)
                case Action.DUPLICATE:
                    # A channel identifies both copies by the same sequence, so one of them may get
                    # no reply.
                    attempts = [self._link.send(envelope) for _ in range(2)]
                    done, _ = await asyncio.wait(attempts, return_when=asyncio.FIRST_COMPLETED)
                    return done.pop().result()
            return await _instead(rule, EnvelopeReply(0, None, 0))
        reply = await self._link.send(envelope)
        if rule.action is not Action.DELAY:
            return await _instead(rule, reply)
        await asyncio.sleep(rule.delay_ms / _MILLISECONDS)
        return reply


def link_wrapper(
    rules: FaultRules | None, serde: PrincipalSerde, log: EventLog
) -> Callable[[ControllerLink], ControllerLink]:
    """Return a function that adds the rules to a link; without rules it returns the link itself."""
    if rules is None:
        return lambda link: link
    return lambda link: FaultyLink(link, rules, serde, log)


async def _instead(rule: FaultRule, reply: EnvelopeReply) -> EnvelopeReply:
    """Return what the broker gets instead of the reply. For `drop`, never return."""
    match rule.action:
        case Action.ERROR:
            return EnvelopeReply(int(rule.error), None, 0)
        case Action.TRUNCATE if reply.response_data is not None:
            return replace(
                reply, response_data=reply.response_data[: len(reply.response_data) // 2]
            )
        case Action.DROP:
            await asyncio.get_running_loop().create_future()
    raise ChannelClosedError("a fault rule")
