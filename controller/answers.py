"""When a committed request is answered: what its answer waits for, and who must know of it first.

Kafka's answers wait for the controller's own image (kafka-semantics 3.22). With
`bridgehead.metadata.blocking=cluster` they wait for every live broker as well, which is what KIP-4
asks for: whoever was told of success finds it at any broker. A broker that is gone is no longer
waited for once ZooKeeper has dropped its registration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.image import MetadataImage
from controller.apis.base import WaitFor
from controller.shell import Shell
from controller.waiting import Waiting
from controller.work import Work
from envelope.messages import EnvelopeAnswer

_NOT_CONTROLLER = EnvelopeAnswer(int(ErrorCode.NOT_CONTROLLER), None, 0)
_TIMED_OUT = EnvelopeAnswer(int(ErrorCode.REQUEST_TIMED_OUT), None, 0)


class Everywhere:
    """Which broker has applied what, and who waits for all of them. Pure."""

    def __init__(self) -> None:
        self._applied: dict[tuple[int, str], int] = {}  # by broker id and incarnation
        self._held: dict[Work, int] = {}  # the zxid that everybody must have applied

    def report(self, broker_id: int, incarnation: str, zxid: int) -> bool:
        """A broker says up to where it has applied everything; False for nothing new."""
        key = broker_id, incarnation
        if zxid <= self._applied.get(key, 0):
            return False
        self._applied[key] = zxid
        return True

    def have_applied(self, zxid: int, image: MetadataImage) -> bool:
        """Tell whether every live broker has."""
        return all(
            self._applied.get((broker.broker_id, broker.incarnation), 0) >= zxid
            for broker in image.brokers.values()
        )

    def hold(self, work: Work, zxid: int) -> None:
        """Keep an answer back."""
        self._held[work] = zxid

    def ready(self, image: MetadataImage) -> list[Work]:
        """Return, and forget, whose answers every live broker knows of now."""
        live = {(broker.broker_id, broker.incarnation) for broker in image.brokers.values()}
        for gone in [key for key in self._applied if key not in live]:
            if gone[0] in image.brokers:  # Another incarnation; one that is only late stays.
                del self._applied[gone]
        known = min((self._applied.get(key, 0) for key in live), default=0)
        ready = [work for work, zxid in self._held.items() if zxid <= known]
        for work in ready:
            del self._held[work]
        return ready

    def give_up(self, work: Work) -> bool:
        """The time is over; False if it was answered before."""
        return self._held.pop(work, None) is not None

    def drain(self) -> list[Work]:
        """Return everybody who waits, and forget them."""
        works = list(self._held)
        self._held.clear()
        return works


class Answers:
    """Sends the answers of one term of office, each when it may be sent."""

    def __init__(
        self,
        shell: Shell,
        *,
        image: Callable[[], MetadataImage],
        lease_holds: Callable[[], bool],
        flush: Callable[[], None],
        everywhere: bool,
    ) -> None:
        """`everywhere`: success is told when every live broker knows of it."""
        self._shell = shell
        self._image = image
        self._lease_holds = lease_holds
        self._flush = flush
        self._waiting = Waiting()
        self._everywhere = Everywhere() if everywhere else None

    def finish(self, work: Work) -> None:
        """Everything of a request is decided and committed: answer it, now or later."""
        succeeded = {e: key for e, key in work.wait.topics.items() if work.outcomes[e].succeeded}
        if work.wait.what is WaitFor.NOTHING or not succeeded:
            self._answer(work, frozenset())
        elif self._waiting.add(work, succeeded, self._image()):
            work.waits_s = self._shell.now_s()
            timeout_s = min(work.wait.timeout_ms / 1000, work.deadline_s - work.waits_s)
            if timeout_s <= 0:
                self._time_out(work)
            else:
                asyncio.get_running_loop().call_later(timeout_s, self._time_out, work)
        else:
            self._answer(work, frozenset())

    def published(self, changed: Iterable[str]) -> None:
        """The image has news of these topics."""
        image = self._image()
        for work in self._waiting.reached(image, changed):
            # The answer stands for the transaction that brought what it waited for.
            work.zxid = image.zxid
            self._answer(work, frozenset())

    def applied(self, broker_id: int, incarnation: str, zxid: int) -> None:
        """A broker has applied everything up to `zxid`."""
        if self._everywhere is not None and self._everywhere.report(broker_id, incarnation, zxid):
            self.brokers_changed()

    def brokers_changed(self) -> None:
        """Some broker knows more, or need not know any more."""
        if self._everywhere is None:
            return
        ready = self._everywhere.ready(self._image())
        for work in ready:
            self._send(work, frozenset())
        if ready:
            self._flush()

    def drain(self) -> list[Work]:
        """Return everybody who waits, and forget them."""
        held = self._everywhere.drain() if self._everywhere is not None else []
        return [*self._waiting.drain(), *held]

    def _time_out(self, work: Work) -> None:
        unfinished = self._waiting.give_up(work)
        if unfinished is not None and not work.answer.done():
            self._answer(work, unfinished)
            self._flush()

    def _answer(self, work: Work, unfinished: frozenset[str]) -> None:
        """Send, or hold until every live broker knows of what succeeded."""
        everywhere, image = self._everywhere, self._image()
        succeeded = {e for e, outcome in work.outcomes.items() if outcome.succeeded} - unfinished
        if everywhere is None or not succeeded or everywhere.have_applied(image.zxid, image):
            self._send(work, unfinished)
        elif unfinished:
            # Its time is over already: what nobody was waited for has timed out as well.
            self._send(work, unfinished | succeeded)
        else:
            everywhere.hold(work, image.zxid)
            waits_s = self._shell.now_s()
            work.waits_s = work.waits_s or waits_s
            ends_s = work.deadline_s
            if work.wait.what is not WaitFor.NOTHING:
                ends_s = min(ends_s, work.waits_s + work.wait.timeout_ms / 1000)
            loop = asyncio.get_running_loop()
            loop.call_later(max(ends_s - waits_s, 0), self._give_up, work)

    def _give_up(self, work: Work) -> None:
        assert self._everywhere is not None
        if not self._everywhere.give_up(work) or work.answer.done():
            return
        if work.wait.what is WaitFor.NOTHING:
            work.answer.set_result(_TIMED_OUT)  # Its API knows no time; the broker's is over.
        else:
            succeeded = frozenset(e for e, outcome in work.outcomes.items() if outcome.succeeded)
            self._send(work, succeeded)
        self._flush()

    def _send(self, work: Work, unfinished: frozenset[str]) -> None:
        if not self._lease_holds():
            # Silence from ZooKeeper: somebody else may be in office (design 5.8).
            work.answer.set_result(_NOT_CONTROLLER)
            return
        work.answer.set_result(self._shell.encode_answer(work, unfinished, self._image()))
