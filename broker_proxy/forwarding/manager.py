"""Forwards requests to the active controller; retries until `request.timeout.ms` passes.

A request keeps its identity on every resend, so it is executed once (docs/adr/0003). Many requests
are in flight at a time. A slow request delays only its own connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple, Protocol

from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.retry import NextStep, after_broken_channel, after_reply
from envelope.messages import ChannelClosedError, Envelope, EnvelopeReply, RequestIdentity
from envelope.principal_serde import PrincipalSerde
from event_log.digests import response_sha256
from event_log.events import ForwardReplied, ForwardSent
from event_log.writer import EventLog

# Kafka also waits 50 ms after NOT_CONTROLLER.
RETRY_BACKOFF_S: Final = 0.05
_NO_REPLY: Final = EnvelopeReply(0, None, 0)


class ControllerLink(Protocol):
    """A connection to the controller: a gRPC channel, or a direct call within this process."""

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeReply]:
        """Send an Envelope; return a future that has its reply or raises ChannelClosedError."""


@dataclass(frozen=True, slots=True)
class KnownController:
    """The active controller as this broker knows it."""

    link: ControllerLink
    controller_id: int
    is_local: bool


@dataclass(frozen=True, slots=True)
class Forwarded:
    """The result of forwarding. `response` is set for RELAY; `zxid` comes from the reply."""

    step: NextStep
    response: bytes | None
    zxid: int
    remote_ms: float | None  # since the first send to another node; None: no such send
    queued_ms: float | None = None  # from arrival until that send
    throttle_ms: int = 0  # reported by the controller, if it is in this process


class _Message(NamedTuple):
    """The parts of a request that are the same in every attempt."""

    identity: RequestIdentity
    request: ClientRequest
    body: bytes
    principal: bytes
    redirected: Callable[[], None]


class ForwardingManager:
    """Forwards requests, and tracks those that are not finished yet."""

    def __init__(
        self,
        *,
        broker_id: int,
        incarnation: str,
        serde: PrincipalSerde,
        request_timeout_ms: int,
        log: EventLog,
        now_s: Callable[[], float],
        redirected: Callable[[], None],  # metric: num-messages-redirected
        wrap_link: Callable[[ControllerLink], ControllerLink] = lambda link: link,
    ) -> None:
        self._broker_id = broker_id
        self._incarnation = incarnation
        self._serde = serde
        self._timeout_s = request_timeout_ms / 1000
        self._log = log
        self._now_s = now_s
        self._redirected = redirected
        self._wrap_link = wrap_link
        self._target: KnownController | None = None
        self._waiting: dict[int, asyncio.Future[None]] = {}  # by sequence
        self._next_sequence = 1
        self._unfinished: dict[int, None] = {}  # in order of sequence

    @property
    def lowest_unfinished(self) -> int:
        """The floor: every forwarded request with a lower sequence is answered or abandoned."""
        return next(iter(self._unfinished), self._next_sequence)

    @property
    def queue_length(self) -> int:
        """The number of requests that are in flight or wait for a controller."""
        return len(self._unfinished)

    def next_identity(self) -> RequestIdentity:
        """Return the identity of the next write request of this broker, forwarded or not."""
        sequence = self._next_sequence
        self._next_sequence += 1
        return RequestIdentity(self._broker_id, self._incarnation, sequence)

    def set_target(self, target: KnownController | None) -> None:
        """Change the target (None: unknown); waiting requests continue, oldest first."""
        if target is not None:
            target = replace(target, link=self._wrap_link(target.link))
        self._target = target
        for _, waiter in sorted(self._waiting.items()):
            if not waiter.done():
                waiter.set_result(None)

    async def forward(
        self,
        request: ClientRequest,
        body: bytes,
        redirected: Callable[[], None] = lambda: None,
    ) -> Forwarded:
        """Send one request, with resends, until it is answered or `request.timeout.ms` passes.

        `body` is the client's body, or the part of it that this broker does not answer itself
        (docs/kafka/forwarding.md#forwardable-apis). `redirected` is called when the request is
        first sent to another node.

        Raises:
            Exception: a custom principal serde failed; it may raise anything.
        """
        identity = self.next_identity()
        self._unfinished[identity.sequence] = None
        try:
            principal = self._serde.serialize(request.client.principal)
            return await self._attempts(_Message(identity, request, body, principal, redirected))
        finally:
            del self._unfinished[identity.sequence]

    def _envelope(self, message: _Message, attempt: int, left_s: float) -> Envelope:
        identity, request, body, principal, _ = message
        client = request.client
        return Envelope(
            identity=identity,
            request_header=request.header_bytes,
            request_data=body,
            principal=principal,
            client_address=client.address,
            listener_name=client.listener_name,
            security_protocol=client.security_protocol,
            dialect=client.dialect,
            remaining_ms=max(1, int(left_s * 1000)),
            request_id=request.request_id,
            attempt=attempt,
            made_by_broker=request.made_by_broker,
            is_as_broker=request.is_as_broker,
        )

    async def _attempts(self, message: _Message) -> Forwarded:
        attempt, sent_s, queued_ms = 0, None, None
        sequence = message.identity.sequence
        arrived_s = self._now_s()
        deadline_s = arrived_s + self._timeout_s
        while True:
            target = await self._known_target(sequence, deadline_s)
            if target is None:
                return Forwarded(NextStep.TIMED_OUT, None, 0, self._since_ms(sent_s), queued_ms)
            attempt += 1
            if not target.is_local and sent_s is None:
                sent_s = self._now_s()
                queued_ms = (sent_s - arrived_s) * 1000
                self._redirected()
                message.redirected()
            reply = await self._attempt(message, attempt, target, deadline_s)
            now_s = self._now_s()
            if reply is None:
                step = after_broken_channel(now_s=now_s, deadline_s=deadline_s)
            else:
                step = after_reply(reply, now_s=now_s, deadline_s=deadline_s)
            if step is not NextStep.RETRY:
                ended = reply or _NO_REPLY
                return Forwarded(
                    step,
                    ended.response_data,
                    ended.zxid,
                    self._since_ms(sent_s),
                    queued_ms,
                    ended.throttle_ms,
                )
            if self._target is target:  # If there is a new controller, it is tried without a pause.
                pause_s = min(RETRY_BACKOFF_S, deadline_s - now_s)
                await self._until_changed(sequence, pause_s)

    def _since_ms(self, sent_s: float | None) -> float | None:
        return None if sent_s is None else (self._now_s() - sent_s) * 1000

    async def _known_target(self, sequence: int, deadline_s: float) -> KnownController | None:
        while self._target is None:
            left_s = deadline_s - self._now_s()
            if left_s <= 0:
                return None
            await self._until_changed(sequence, left_s)
        return self._target

    async def _until_changed(self, sequence: int, timeout_s: float) -> None:
        waiter = self._waiting[sequence] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(max(timeout_s, 0)):
                await waiter
        except TimeoutError:
            return
        finally:
            del self._waiting[sequence]

    async def _attempt(
        self, message: _Message, attempt: int, target: KnownController, deadline_s: float
    ) -> EnvelopeReply | None:
        left_s = deadline_s - self._now_s()
        envelope = self._envelope(message, attempt, left_s)
        self._log.append(
            ForwardSent(
                request_id=envelope.request_id,
                identity=envelope.identity,
                attempt=attempt,
                controller_id=target.controller_id,
                local=target.is_local,
            )
        )
        reply = await _ended(target.link.send(envelope), left_s)
        self._log.append(
            ForwardReplied(
                request_id=envelope.request_id,
                attempt=attempt,
                error=None if reply is None else reply.error_code,
                zxid=0 if reply is None else reply.zxid,
                response_sha256=_digest(envelope, reply),
            )
        )
        return reply


def _digest(envelope: Envelope, reply: EnvelopeReply | None) -> str | None:
    if reply is None or reply.response_data is None:
        return None
    return response_sha256(envelope.api_key, reply.response_data)


async def _ended(future: asyncio.Future[EnvelopeReply], left_s: float) -> EnvelopeReply | None:
    """Wait for one attempt. Return None if its outcome is unknown; it may still be executed."""
    # Less work than asyncio.wait, which every request would pay for.
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    timer = loop.call_later(max(left_s, 0), _end, ended)
    future.add_done_callback(partial(_end, ended))
    try:
        await ended
    finally:
        timer.cancel()
        if not future.done():  # Its late result is not needed.
            future.add_done_callback(_forget)
    if not future.done() or future.cancelled():  # cancelled: this process's controller stopped
        return None
    try:
        return future.result()
    except ChannelClosedError:
        return None


def _end(ended: asyncio.Future[None], _: object = None) -> None:
    if not ended.done():
        ended.set_result(None)


def _forget(future: asyncio.Future[EnvelopeReply]) -> None:
    if not future.cancelled():
        future.exception()
