"""bridgehead.metadata.blocking=cluster: a success waits until all live brokers apply the change."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.records import NO_LEADER, PartitionRecord, PartitionState, TopicRecord
from controller.apis.base import Outcome, Wait, WaitFor
from controller.loop.delayed_responses import AppliedZxids, DelayedResponses
from controller.loop.pending_request import PendingRequest
from tests.unit.controller.request_contexts import a_pending_request
from tests.unit.controller.transcripts import topic_id

DONE, EXISTS = Outcome(ErrorCode.NONE), Outcome(ErrorCode.TOPIC_ALREADY_EXISTS)


def an_image(zxid: int, **incarnations: str) -> MetadataImage:
    """Return an image with live brokers: b1="x" is broker 1 with incarnation "x"."""
    brokers = {
        int(name[1:]): BrokerRegistration(int(name[1:]), 1, (), incarnation=incarnation)
        for name, incarnation in incarnations.items()
    }
    return MetadataImage(zxid=zxid, controller_epoch=1, brokers=Map(brokers))


class Request:
    """A pending request, and its reply so far."""

    def __init__(
        self, timeout_s: float = 5.0, wait: Wait | None = None, **outcomes: Outcome
    ) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.pending: PendingRequest = a_pending_request(
            self.future, deadline_s=time.monotonic() + timeout_s, outcomes=outcomes
        )
        self.pending.wait = wait or Wait()

    @property
    def reply(self) -> Any:
        return self.future.result() if self.future.done() else None


class Callbacks:
    """Encodes a response as the sorted list of its unfinished elements."""

    now_s = staticmethod(time.monotonic)

    def encode_response(self, _pending: Any, unfinished: frozenset[str], _image: Any) -> Any:
        return sorted(unfinished)


class Responses:
    """The delayed responses of one term. Tests replace its `image`."""

    def __init__(self, image: MetadataImage, *, waits_for_brokers: bool = True) -> None:
        self.image = image
        callbacks: Any = Callbacks()
        self.delayed = DelayedResponses(
            callbacks,
            image=lambda: self.image,
            lease_holds=lambda: True,
            flush=lambda: None,
            waits_for_brokers=waits_for_brokers,
        )

    def complete(self, request: Request) -> None:
        self.delayed.complete(request.pending)


async def test_a_success_waits_until_the_last_live_broker_has_applied_it() -> None:
    responses = Responses(an_image(7, b1="x", b2="y"))
    responses.delayed.applied(1, "x", 6)
    request = Request(t=DONE)
    responses.complete(request)
    responses.delayed.applied(1, "x", 7)
    responses.delayed.applied(2, "y", 6)
    assert request.reply is None
    responses.delayed.applied(2, "y", 9)
    assert request.reply == []


async def test_a_success_does_not_wait_for_brokers_that_have_applied_it() -> None:
    responses = Responses(an_image(7, b1="x"))
    responses.delayed.applied(1, "x", 7)
    request = Request(t=DONE)
    responses.complete(request)
    assert request.reply == []


async def test_errors_and_the_default_setting_do_not_wait_for_brokers() -> None:
    request = Request(t=EXISTS)
    Responses(an_image(7, b1="x")).complete(request)
    assert request.reply == []
    request = Request(t=DONE)
    Responses(an_image(7, b1="x"), waits_for_brokers=False).complete(request)
    assert request.reply == []


async def test_a_dead_broker_delays_no_response_but_its_next_incarnation_does() -> None:
    responses = Responses(an_image(7, b1="x", b2="y"))
    request, other = Request(t=DONE), Request(t=DONE)
    responses.complete(request)
    responses.delayed.applied(1, "x", 7)
    responses.image = an_image(7, b1="x")
    responses.delayed.brokers_changed()
    assert request.reply == []
    responses.delayed.applied(2, "y", 7)
    responses.image = an_image(7, b1="x", b2="z")
    responses.complete(other)
    responses.delayed.brokers_changed()
    assert other.reply is None
    responses.delayed.applied(2, "z", 7)
    assert other.reply == []


def with_topics(image: MetadataImage, **leaders: int) -> MetadataImage:
    """Add topics of one partition each."""
    return image.replay(
        record
        for name, leader in leaders.items()
        for record in (
            TopicRecord(name, topic_id(name), ((1,),), {}),
            PartitionRecord(name, 0, PartitionState(leader, 0, (1,), 1, 0)),
        )
    )


@pytest.mark.parametrize("condition", [WaitFor.LEADERS, WaitFor.DELETION])
async def test_a_batch_that_times_out_names_only_its_unfinished_topics(condition: WaitFor) -> None:
    """KIP-4 §Create and §Delete Topics Response: topics that did complete have no error."""
    image = an_image(7, b1="x")
    if condition is WaitFor.LEADERS:
        image = with_topics(image, done=1, late=NO_LEADER)
        wait = Wait(condition, {"done": "done", "late": "late"}, 20)
    else:
        image = with_topics(image, late=1)
        wait = Wait(condition, {name: topic_id(name) for name in ("done", "late")}, 20)
    request = Request(wait=wait, done=DONE, late=DONE)
    Responses(image, waits_for_brokers=False).complete(request)
    assert await request.future == ["late"]


async def test_a_timeout_of_the_wait_for_brokers_fails_the_successes_or_the_request() -> None:
    """REQUEST_TIMED_OUT replaces each success or, if the API has no timeout, the whole response."""
    responses = Responses(an_image(7, b1="x"))
    with_timeout = Request(wait=Wait(WaitFor.LEADERS, {}, 50), t=DONE, u=EXISTS)
    without = Request(timeout_s=0.05, t=DONE)
    responses.complete(with_timeout)
    responses.complete(without)
    assert await asyncio.wait_for(with_timeout.future, 2) == ["t"]
    assert (await asyncio.wait_for(without.future, 2)).error_code == ErrorCode.REQUEST_TIMED_OUT
    responses.delayed.applied(1, "x", 7)  # This is too late. No request is completed twice.


async def test_drain_pops_the_delayed_requests() -> None:
    responses = Responses(an_image(7, b1="x"))
    request = Request(t=DONE)
    responses.complete(request)
    assert responses.delayed.drain() == [request.pending]
    responses.delayed.applied(1, "x", 7)
    assert request.reply is None


def test_reports_of_replaced_incarnations_are_forgotten() -> None:
    zxids = AppliedZxids()
    for number in range(100):
        assert zxids.report(1, f"i{number}", 5)
        zxids.ready(an_image(5, b1=f"i{number}"))
    assert not zxids.report(1, "i99", 5)
    assert zxids.report(1, "i0", 5)
    assert zxids.have_applied(5, an_image(5, b1="i99"))
