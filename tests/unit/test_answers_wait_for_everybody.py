"""Success is told when every live broker has applied it, where that is asked for."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from immutables import Map

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.image import BrokerRegistration, MetadataImage
from controller.answers import Answers, Everywhere
from controller.apis.base import Outcome, Wait, WaitFor
from envelope.messages import EnvelopeAnswer

DONE, REFUSED = Outcome(ErrorCode.NONE), Outcome(ErrorCode.TOPIC_ALREADY_EXISTS)


def an_image(zxid: int, **incarnations: str) -> MetadataImage:
    """Live brokers by name: b1="x"."""
    brokers = {
        int(name[1:]): BrokerRegistration(int(name[1:]), 1, (), incarnation=incarnation)
        for name, incarnation in incarnations.items()
    }
    return MetadataImage(zxid=zxid, controller_epoch=1, brokers=Map(brokers))


class Request:
    """What Answers looks at of a Work."""

    def __init__(
        self, timeout_s: float = 5.0, wait: Wait | None = None, **outcomes: Outcome
    ) -> None:
        self.outcomes = outcomes
        self.wait = wait or Wait()
        self.deadline_s = time.monotonic() + timeout_s
        self.waits_s = 0.0
        self.zxid = 0
        self.answer: asyncio.Future[EnvelopeAnswer] = asyncio.get_running_loop().create_future()

    @property
    def told(self) -> Any:
        """What was answered, or None."""
        return self.answer.result() if self.answer.done() else None


class Shell:
    """Answers with the elements that have not finished."""

    now_s = staticmethod(time.monotonic)

    def encode_answer(self, work: Any, unfinished: frozenset[str], image: Any) -> Any:
        return sorted(unfinished)


class Term:
    """Answers of one term, over an image that the test moves on."""

    def __init__(self, image: MetadataImage, *, everywhere: bool = True) -> None:
        self.image = image
        shell: Any = Shell()
        self.answers = Answers(
            shell,
            image=lambda: self.image,
            lease_holds=lambda: True,
            flush=lambda: None,
            everywhere=everywhere,
        )

    def finish(self, work: Any) -> None:
        self.answers.finish(work)


async def test_an_answer_waits_until_the_last_live_broker_has_applied_it() -> None:
    """In whatever order they say so; what they had applied before does not count."""
    term = Term(an_image(7, b1="x", b2="y"))
    term.answers.applied(1, "x", 6)
    work = Request(t=DONE)
    term.finish(work)
    term.answers.applied(1, "x", 7)
    term.answers.applied(2, "y", 6)
    assert work.told is None
    term.answers.applied(2, "y", 9)
    assert work.told == []


async def test_who_applied_it_before_it_was_asked_is_not_asked_again() -> None:
    """Answered at once."""
    term = Term(an_image(7, b1="x"))
    term.answers.applied(1, "x", 7)
    work = Request(t=DONE)
    term.finish(work)
    assert work.told == []


async def test_a_refusal_waits_for_nobody_and_neither_does_kafkas_own_way() -> None:
    """Nothing came of it that anybody could look for."""
    work = Request(t=REFUSED)
    Term(an_image(7, b1="x")).finish(work)
    assert work.told == []
    work = Request(t=DONE)
    Term(an_image(7, b1="x"), everywhere=False).finish(work)
    assert work.told == []


async def test_a_broker_that_is_gone_is_not_waited_for_and_its_successor_is() -> None:
    """What another incarnation had applied says nothing of the new one."""
    term = Term(an_image(7, b1="x", b2="y"))
    work, other = Request(t=DONE), Request(t=DONE)
    term.finish(work)
    term.answers.applied(1, "x", 7)
    term.image = an_image(7, b1="x")
    term.answers.brokers_changed()
    assert work.told == []
    term.answers.applied(2, "y", 7)
    term.image = an_image(7, b1="x", b2="z")
    term.finish(other)
    term.answers.brokers_changed()
    assert other.told is None
    term.answers.applied(2, "z", 7)
    assert other.told == []


async def test_when_its_time_is_over_what_succeeded_has_timed_out() -> None:
    """For an API that knows a time; another one's request times out as a whole."""
    term = Term(an_image(7, b1="x"))
    knows = Request(wait=Wait(WaitFor.LEADERS, {}, 50), t=DONE, u=REFUSED)
    knows_not = Request(timeout_s=0.05, t=DONE)
    term.finish(knows)
    term.finish(knows_not)
    assert await asyncio.wait_for(knows.answer, 2) == ["t"]
    assert (await asyncio.wait_for(knows_not.answer, 2)).error_code == ErrorCode.REQUEST_TIMED_OUT
    term.answers.applied(1, "x", 7)  # Too late; nothing is answered twice.


async def test_whoever_waits_is_told_when_the_term_ends() -> None:
    """By the loop, which drains."""
    term = Term(an_image(7, b1="x"))
    work = Request(t=DONE)
    term.finish(work)
    assert term.answers.drain() == [work]
    term.answers.applied(1, "x", 7)
    assert work.told is None


def test_reports_of_brokers_that_are_gone_are_forgotten() -> None:
    """When another incarnation is there; else memory would grow with every restart."""
    everywhere = Everywhere()
    for number in range(100):
        assert everywhere.report(1, f"i{number}", 5)
        everywhere.ready(an_image(5, b1=f"i{number}"))
    assert not everywhere.report(1, "i99", 5)
    assert everywhere.report(1, "i0", 5)
    assert everywhere.have_applied(5, an_image(5, b1="i99"))
