"""An Envelope with a large request: it is opened in a thread, and still executed once."""

from __future__ import annotations

import asyncio
import random
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest
from bridgehead.slices import LARGE_BYTES
from cluster_model.acls.authorization import no_authorizer
from controller.envelopes.handle import EnvelopeHandler
from controller.envelopes.open import OpenedEnvelope, RejectedEnvelope
from controller.requests.pending_request import PendingRequest
from controller.services import THIS_PROCESS, Sender, Services
from envelope.messages import Envelope, EnvelopeReply, RequestIdentity
from event_log.events import EnvelopeRejected
from tests.unit.controller.request_contexts import a_client

IDENTITY = RequestIdentity(1, "life", 7)


class Controller:
    """A handler whose thread opens an Envelope when the test lets it, and a loop that replies."""

    def __init__(
        self, opened: OpenedEnvelope | RejectedEnvelope, *, understands_envelopes: bool = True
    ) -> None:
        self.may_open, self.opened_count = threading.Event(), 0
        self.submitted: list[PendingRequest] = []
        self.events: list[Any] = []
        self.replies = True  # whether the loop replies at once
        services = SimpleNamespace(
            log=SimpleNamespace(append=self.events.append),
            may_send_envelopes=lambda _sender: True,
            understands_envelopes=understands_envelopes,
            envelope_rejected=lambda: None,
            now_s=lambda: 0.0,
            random=random.Random(1),
            bind_authorize=no_authorizer,
            request_log=SimpleNamespace(completed=lambda *_: None),
        )

        def open_envelope(_envelope: Envelope, _sender: Sender) -> Any:
            self.opened_count += 1
            assert self.may_open.wait(10)
            return opened

        self.handler = EnvelopeHandler(cast(Services, services), open_envelope, lambda: None)
        brokers = {1: SimpleNamespace(incarnation="life")}
        image = SimpleNamespace(brokers=brokers, acls=None)
        outcomes = SimpleNamespace(is_below_floor=lambda _identity: False)
        loop = SimpleNamespace(image=image, outcomes=outcomes, submit=self._submit)
        self.handler.open(cast(Any, loop))

    def _submit(self, pending: PendingRequest) -> None:
        self.submitted.append(pending)
        if self.replies:
            pending.reply.set_result(EnvelopeReply(0, b"response", 5))

    def send(
        self, *, host: str = THIS_PROCESS, made_by_broker: bool = False
    ) -> asyncio.Task[EnvelopeReply]:
        hello = SimpleNamespace(broker_id=1, incarnation="life")
        sender = SimpleNamespace(principal="User:broker", hello=hello, host=host, connection_id="c")
        envelope = SimpleNamespace(
            request_id="r",
            identity=IDENTITY,
            attempt=1,
            request_data=bytes(LARGE_BYTES + 1),
            remaining_ms=1_000,
            made_by_broker=made_by_broker,
        )
        return asyncio.create_task(self.handler.handle(cast(Any, envelope), cast(Any, sender)))


def _opened() -> OpenedEnvelope:
    header = RequestHeader(20, 5, 1, "c")
    return OpenedEnvelope(header, a_client(), cast(Any, None), DeleteTopicsRequest(timeout_ms=1))


async def _twice(controller: Controller) -> list[EnvelopeReply]:
    first = controller.send()
    while not controller.opened_count:
        await asyncio.sleep(0)
    second = controller.send()
    for _ in range(5):
        await asyncio.sleep(0)
    controller.may_open.set()
    return [await first, await second]


async def test_a_resend_while_a_large_request_is_opened_is_not_executed_again() -> None:
    controller = Controller(_opened())
    assert await _twice(controller) == [EnvelopeReply(0, b"response", 5)] * 2
    assert (controller.opened_count, len(controller.submitted)) == (1, 1)
    assert controller.submitted[0].is_large


async def test_a_resend_of_a_large_request_that_is_rejected_gets_the_same_error() -> None:
    error = ErrorCode.UNSUPPORTED_VERSION
    controller = Controller(RejectedEnvelope(error, "malformed"))
    assert [reply.error_code for reply in await _twice(controller)] == [int(error)] * 2
    assert controller.submitted == []


async def test_a_resend_does_not_wait_for_ever_if_the_first_handling_is_cancelled() -> None:
    controller = Controller(_opened())
    first = controller.send()
    while not controller.opened_count:
        await asyncio.sleep(0)
    second = controller.send()
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    controller.may_open.set()


async def test_a_resend_gets_the_reply_if_the_first_handling_is_cancelled_later() -> None:
    """The controller's loop completes the reply in any case."""
    controller = Controller(_opened())
    controller.replies = False
    controller.may_open.set()
    first = controller.send()
    while not controller.submitted:
        await asyncio.sleep(0)
    second = controller.send()
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    controller.submitted[0].reply.set_result(EnvelopeReply(0, b"response", 5))
    assert (await second).response_data == b"response"


@pytest.mark.parametrize(
    ("understands", "host", "made_by_broker", "is_executed"),
    [
        (False, "10.0.0.7", False, False),
        (False, "10.0.0.7", True, True),  # a broker's own request, such as AlterPartition
        (False, THIS_PROCESS, False, True),  # from the broker of this node
        (True, "10.0.0.7", False, True),
    ],
)
async def test_a_controller_of_an_old_release_rejects_what_other_brokers_forward(
    understands: bool, host: str, made_by_broker: bool, is_executed: bool
) -> None:
    controller = Controller(_opened(), understands_envelopes=understands)
    controller.may_open.set()
    reply = await controller.send(host=host, made_by_broker=made_by_broker)
    rejections = [event for event in controller.events if isinstance(event, EnvelopeRejected)]
    assert len(controller.submitted) == int(is_executed)
    if is_executed:
        assert (reply.error_code, rejections) == (0, [])
    else:
        assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        (rejection,) = rejections
        assert rejection.error == ErrorCode.UNKNOWN_SERVER_ERROR
        assert rejection.reason == "this release does not support Envelopes"
