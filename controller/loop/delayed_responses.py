"""Delays the response to a committed request until its conditions are met.

As in Kafka, a response can wait until the controller's own image meets a condition, for example
until a new topic has leaders (docs/kafka/requests.md#waiting-for-a-result). With
`bridgehead.metadata.blocking=cluster` it also waits until every live broker has applied the change,
as KIP-4 requires: after a successful response a client sees the change on every broker. A failed
broker delays responses until ZooKeeper removes its registration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.image import MetadataImage
from controller.apis.base import WaitFor
from controller.loop.image_waits import ImageWaits
from controller.requests.pending_request import NOT_CONTROLLER, PendingRequest
from controller.requests.responses import ResponseEncoder
from envelope.messages import EnvelopeReply

_log = logging.getLogger(__name__)
_TIMED_OUT: Final = EnvelopeReply(int(ErrorCode.REQUEST_TIMED_OUT), None, 0)


class AppliedZxids:
    """The zxid that each broker has applied, and the requests that wait for all brokers. Pure."""

    def __init__(self) -> None:
        self._applied: dict[tuple[int, str], int] = {}  # by broker id and incarnation
        self._held: dict[PendingRequest, int] = {}  # the zxid that every broker must apply

    def report(self, broker_id: int, incarnation: str, zxid: int) -> bool:
        """Record that a broker has applied `zxid`; False if that was recorded already."""
        key = broker_id, incarnation
        if zxid <= self._applied.get(key, 0):
            return False
        self._applied[key] = zxid
        return True

    def have_applied(self, zxid: int, image: MetadataImage) -> bool:
        """True if every live broker has applied `zxid`."""
        return all(
            self._applied.get((broker.broker_id, broker.incarnation), 0) >= zxid
            for broker in image.brokers.values()
        )

    def hold(self, pending: PendingRequest, zxid: int) -> None:
        """Hold a request until every live broker has applied `zxid`."""
        self._held[pending] = zxid

    def ready(self, image: MetadataImage) -> list[PendingRequest]:
        """Pop the requests whose zxid every live broker has applied."""
        live = {(broker.broker_id, broker.incarnation) for broker in image.brokers.values()}
        for gone in [key for key in self._applied if key not in live]:
            # Forget an incarnation only if a new one has replaced it. A broker that lost only its
            # registration may register again as the same incarnation, so its zxid is kept.
            if gone[0] in image.brokers:
                del self._applied[gone]
        applied = min((self._applied.get(key, 0) for key in live), default=0)
        ready = [pending for pending, zxid in self._held.items() if zxid <= applied]
        for pending in ready:
            del self._held[pending]
        return ready

    def give_up(self, pending: PendingRequest) -> bool:
        """Pop a request that timed out; False if it was not held."""
        return self._held.pop(pending, None) is not None

    def drain(self) -> list[PendingRequest]:
        """Pop all requests."""
        held = list(self._held)
        self._held.clear()
        return held


class DelayedResponses:
    """Completes the committed requests of one term."""

    def __init__(
        self,
        encoder: ResponseEncoder,
        *,
        image: Callable[[], MetadataImage],
        lease_holds: Callable[[], bool],
        flush: Callable[[], None],
        now_s: Callable[[], float],
        waits_for_brokers: bool,
    ) -> None:
        """`waits_for_brokers`: hold a success until every live broker has applied the change."""
        self._encoder = encoder
        self._now_s = now_s
        self._image = image
        self._lease_holds = lease_holds
        self._flush = flush
        self._image_waits = ImageWaits()
        self._tasks: set[asyncio.Task[None]] = set()  # that encode large responses
        self._zxids = AppliedZxids() if waits_for_brokers else None

    def complete(self, pending: PendingRequest) -> None:
        """Reply to a request whose elements are all committed: immediately, or after its wait."""
        outcomes, wait = pending.outcomes, pending.wait
        succeeded = {e: key for e, key in wait.topics.items() if outcomes[e].succeeded}
        if (
            wait.condition is WaitFor.NOTHING
            or not succeeded
            or not self._image_waits.add(pending, succeeded, self._image())
        ):
            self._reply(pending, frozenset())
            return
        now_s = pending.waiting_since_s = self._now_s()
        timeout_s = min(wait.timeout_ms / 1000, pending.deadline_s - now_s)
        if timeout_s <= 0:
            self._time_out_image_wait(pending)
        else:
            asyncio.get_running_loop().call_later(timeout_s, self._time_out_image_wait, pending)

    def published(self, changed: Iterable[str]) -> None:
        """Send the responses whose conditions are met after a change of these topics."""
        image = self._image()
        for pending in self._image_waits.reached(image, changed):
            pending.zxid = image.zxid  # the transaction that met the last condition
            self._reply(pending, frozenset())

    def applied(self, broker_id: int, incarnation: str, zxid: int) -> None:
        """Record that a broker has applied `zxid`, and send what is now complete."""
        if self._zxids is not None and self._zxids.report(broker_id, incarnation, zxid):
            self.brokers_changed()

    def brokers_changed(self) -> None:
        """A broker has applied a newer zxid, or is no longer live: send what is now complete."""
        if self._zxids is None:
            return
        ready = self._zxids.ready(self._image())
        for pending in ready:
            self._send(pending, frozenset())
        if ready:
            self._flush()

    def drain(self) -> list[PendingRequest]:
        """Pop all delayed requests."""
        held = self._zxids.drain() if self._zxids is not None else []
        return [*self._image_waits.drain(), *held]

    def _time_out_image_wait(self, pending: PendingRequest) -> None:
        unfinished = self._image_waits.give_up(pending)
        if unfinished is not None and not pending.reply.done():
            self._reply(pending, unfinished)
            self._flush()

    def _reply(self, pending: PendingRequest, unfinished: frozenset[str]) -> None:
        """Send the response, or hold it until every live broker has applied the changes."""
        zxids, image = self._zxids, self._image()
        succeeded = _succeeded(pending) - unfinished
        if zxids is None or not succeeded or zxids.have_applied(image.zxid, image):
            self._send(pending, unfinished)
        elif unfinished:  # The timeout has passed, so do not wait for the brokers.
            self._send(pending, unfinished | succeeded)
        else:
            zxids.hold(pending, image.zxid)
            now_s = self._now_s()
            pending.waiting_since_s = pending.waiting_since_s or now_s
            ends_s = pending.deadline_s
            if pending.wait.condition is not WaitFor.NOTHING:
                ends_s = min(ends_s, pending.waiting_since_s + pending.wait.timeout_ms / 1000)
            loop = asyncio.get_running_loop()
            loop.call_later(max(ends_s - now_s, 0), self._time_out_broker_wait, pending)

    def _time_out_broker_wait(self, pending: PendingRequest) -> None:
        assert self._zxids is not None
        if not self._zxids.give_up(pending) or pending.reply.done():
            return
        if pending.wait.condition is WaitFor.NOTHING:  # The Envelope's deadline ended the wait.
            pending.reply.set_result(_TIMED_OUT)
        else:
            self._send(pending, _succeeded(pending))
        self._flush()

    def _send(self, pending: PendingRequest, unfinished: frozenset[str]) -> None:
        if pending.is_large:
            task = asyncio.create_task(self._send_large(pending, unfinished))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            pending.reply.set_result(self._response(pending, unfinished))

    async def _send_large(self, pending: PendingRequest, unfinished: frozenset[str]) -> None:
        try:
            encoded = await self._encoder.encode_in_thread(pending, unfinished, self._image())
            response = encoded if self._lease_holds() else NOT_CONTROLLER
        except Exception:
            response = self._failure(pending)
        if not pending.reply.done():
            pending.reply.set_result(response)
            self._flush()

    def _response(self, pending: PendingRequest, unfinished: frozenset[str]) -> EnvelopeReply:
        """Return the response. An exception fails this request only.

        For example, an error message that contains a long name may exceed the limit of a string.
        """
        if not self._lease_holds():  # ZooKeeper is silent: another controller may be active.
            return NOT_CONTROLLER
        try:
            return self._encoder.encode(pending, unfinished, self._image())
        except Exception:
            return self._failure(pending)

    def _failure(self, pending: PendingRequest) -> EnvelopeReply:
        _log.exception("an unexpected error in the response to %s", pending.request_id)
        return self._encoder.encode_error(pending, ErrorCode.UNKNOWN_SERVER_ERROR)


def _succeeded(pending: PendingRequest) -> frozenset[str]:
    return frozenset(e for e, outcome in pending.outcomes.items() if outcome.succeeded)
