"""Carries write requests to whoever is controller, until there is an answer or no time is left.

Each request has one identity for all its attempts, so that a repeated request is executed once
(design 5.5). Many are in flight at once; a slow one holds up nobody but its own connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from broker_proxy.apis.base import ClientRequest
from broker_proxy.attempt import Step, after_answer, after_broken_channel
from envelope.messages import ChannelClosedError, Envelope, EnvelopeAnswer, RequestIdentity
from envelope.principal_serde import PrincipalSerde
from event_log.digests import answer_sha256
from event_log.events import ForwardAnswered, ForwardSent
from event_log.writer import EventLog

# A controller that says NOT_CONTROLLER has lost or not yet won office: Kafka waits 50 ms as well.
RETRY_BACKOFF_S: Final = 0.05
_NO_ANSWER: Final = EnvelopeAnswer(0, None, 0)


class ControllerLink(Protocol):
    """A way to the controller: a channel, or the controller in this very process."""

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeAnswer]:
        """Hand one Envelope over; the future ends in its answer or in ChannelClosedError."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """The controller as this broker knows it."""

    link: ControllerLink
    controller_id: int
    is_local: bool


@dataclass(frozen=True, slots=True)
class Forwarded:
    """How forwarding ended. `answer` is there for RELAY; `zxid` is what it stands for."""

    step: Step
    answer: bytes | None
    zxid: int
    remote_ms: float | None  # since it first went out to another node; None: it never did
    queued_ms: float | None = None  # from its arrival until then
    throttle_ms: int = 0  # as the controller in this very process says


class _Message(NamedTuple):
    """What stays the same in all attempts of one request."""

    identity: RequestIdentity
    request: ClientRequest
    body: bytes
    principal: bytes


class ForwardingManager:
    """All requests of this broker that are on their way to the controller."""

    def __init__(
        self,
        *,
        broker_id: int,
        incarnation: str,
        serde: PrincipalSerde,
        request_timeout_ms: int,
        log: EventLog,
        now_s: Callable[[], float],
        broker_epoch: Callable[[], int],
        redirected: Callable[[], None],  # metric: num-messages-redirected
    ) -> None:
        self._broker_id = broker_id
        self._incarnation = incarnation
        self._serde = serde
        self._timeout_s = request_timeout_ms / 1000
        self._log = log
        self._now_s = now_s
        self._broker_epoch = broker_epoch
        self._redirected = redirected
        self._target: Target | None = None
        self._waiting: dict[int, asyncio.Future[None]] = {}  # by sequence
        self._next_sequence = 1
        self._unfinished: dict[int, None] = {}  # in order of sequence

    @property
    def lowest_unfinished(self) -> int:
        """Every request below this sequence is answered or abandoned."""
        return next(iter(self._unfinished), self._next_sequence)

    @property
    def queue_length(self) -> int:
        """Requests on their way or waiting for a controller."""
        return len(self._unfinished)

    def draw_identity(self) -> RequestIdentity:
        """Return the identity of the next write request of this broker, forwarded or not."""
        sequence = self._next_sequence
        self._next_sequence += 1
        return RequestIdentity(self._broker_id, self._incarnation, sequence)

    def set_target(self, target: Target | None) -> None:
        """The controller moved (None: nobody is known). Whoever waits goes on, oldest first."""
        self._target = target
        for _, waiter in sorted(self._waiting.items()):
            if not waiter.done():
                waiter.set_result(None)

    async def forward(self, request: ClientRequest, body: bytes) -> Forwarded:
        """Send one request until it is answered or `request.timeout.ms` have passed.

        See `Step` for the ends; nothing is raised but what a principal serde of one's own raises.
        `body` is the client's, or what is left of it after this broker has answered its own part
        (kafka-semantics 1.3).
        """
        identity = self.draw_identity()
        self._unfinished[identity.sequence] = None
        try:
            principal = self._serde.serialize(request.connection.principal)
            return await self._attempts(_Message(identity, request, body, principal))
        finally:
            del self._unfinished[identity.sequence]

    def _envelope(self, message: _Message, attempt: int, left_s: float) -> Envelope:
        identity, request, body, principal = message
        connection = request.connection
        return Envelope(
            identity=identity,
            broker_epoch=self._broker_epoch(),
            request_header=request.header_bytes,
            request_data=body,
            principal=principal,
            client_host=connection.client_address,
            listener_name=connection.listener_name,
            security_protocol=connection.security_protocol,
            dialect=connection.dialect,
            remaining_ms=max(1, int(left_s * 1000)),
            request_id=request.request_id,
            attempt=attempt,
            client_software_name=connection.software_name,
            client_software_version=connection.software_version,
            made_by_broker=request.made_by_broker,
        )

    async def _attempts(self, message: _Message) -> Forwarded:
        attempt, sent_s, queued_ms = 0, None, None
        sequence = message.identity.sequence
        arrived_s = self._now_s()
        deadline_s = arrived_s + self._timeout_s
        while True:
            target = await self._known_target(sequence, deadline_s)
            if target is None:
                return Forwarded(Step.TIMED_OUT, None, 0, self._since_ms(sent_s), queued_ms)
            attempt += 1
            if not target.is_local and sent_s is None:
                sent_s = self._now_s()
                queued_ms = (sent_s - arrived_s) * 1000
                self._redirected()
            answer = await self._attempt(message, attempt, target, deadline_s)
            now_s = self._now_s()
            if answer is None:
                step = after_broken_channel(now_s=now_s, deadline_s=deadline_s)
            else:
                step = after_answer(answer, now_s=now_s, deadline_s=deadline_s)
            if step is not Step.RETRY:
                ended = answer or _NO_ANSWER
                return Forwarded(
                    step,
                    ended.response_data,
                    ended.zxid,
                    self._since_ms(sent_s),
                    queued_ms,
                    ended.throttle_ms,
                )
            if self._target is target:  # A new controller is asked at once.
                pause_s = min(RETRY_BACKOFF_S, deadline_s - now_s)
                await self._until_changed(sequence, pause_s)

    def _since_ms(self, sent_s: float | None) -> float | None:
        return None if sent_s is None else (self._now_s() - sent_s) * 1000

    async def _known_target(self, sequence: int, deadline_s: float) -> Target | None:
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
        self, message: _Message, attempt: int, target: Target, deadline_s: float
    ) -> EnvelopeAnswer | None:
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
        answer = await _ended(target.link.send(envelope), left_s)
        self._log.append(
            ForwardAnswered(
                request_id=envelope.request_id,
                attempt=attempt,
                error=None if answer is None else answer.error_code,
                zxid=0 if answer is None else answer.zxid,
                answer_sha256=_digest(envelope, answer),
            )
        )
        return answer


def _digest(envelope: Envelope, answer: EnvelopeAnswer | None) -> str | None:
    if answer is None or answer.response_data is None:
        return None
    return answer_sha256(envelope.api_key, answer.response_data)


async def _ended(future: asyncio.Future[EnvelopeAnswer], left_s: float) -> EnvelopeAnswer | None:
    """Wait for one attempt; None: nothing is known of it. Our giving up stops no execution."""
    try:
        await asyncio.wait((future,), timeout=max(left_s, 0))
    finally:
        if not future.done():  # Whatever becomes of it, nobody asks any more.
            future.add_done_callback(_forget)
    if not future.done() or future.cancelled():  # Cancelled: this process's controller stopped.
        return None
    try:
        return future.result()
    except ChannelClosedError:
        return None


def _forget(future: asyncio.Future[EnvelopeAnswer]) -> None:
    if not future.cancelled():
        future.exception()
