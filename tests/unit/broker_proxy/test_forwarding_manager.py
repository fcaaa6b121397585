"""The forwarding manager: identities, resends, order and timeouts."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from bridgehead.kafka_wire.errors import ErrorCode
from broker_proxy.client_request import ClientRequest
from broker_proxy.forwarding.manager import ForwardingManager, KnownController
from broker_proxy.forwarding.retry import NextStep
from cluster_model.principal import KafkaPrincipal
from envelope.messages import ChannelClosedError, Envelope, EnvelopeReply
from envelope.principal_serde import DefaultPrincipalSerde
from event_log.events import Event, ForwardReplied, ForwardSent
from tests.unit.broker_proxy.client_requests import a_request

DONE = EnvelopeReply(0, b"inner", 77)
MOVED = EnvelopeReply(int(ErrorCode.NOT_CONTROLLER), None, 0)


class ListLog:
    """An event log in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, event: Event) -> None:
        self.events.append(event)

    def flush(self) -> None:
        pass


class ScriptedLink:
    """Gives the scripted replies in order; `open` has the futures of Envelopes without a reply."""

    def __init__(self, *script: EnvelopeReply | Exception) -> None:
        self.script = list(script)
        self.sent: list[Envelope] = []
        self.open: list[asyncio.Future[EnvelopeReply]] = []

    def send(self, envelope: Envelope) -> asyncio.Future[EnvelopeReply]:
        future: asyncio.Future[EnvelopeReply] = asyncio.get_running_loop().create_future()
        self.sent.append(envelope)
        if not self.script:
            self.open.append(future)
        elif isinstance(end := self.script.pop(0), Exception):
            future.set_exception(end)
        else:
            future.set_result(end)
        return future


class Broker:
    """A forwarding manager and its events."""

    def __init__(self, timeout_ms: int = 2_000) -> None:
        self.log = ListLog()
        self.redirected = 0
        self.manager = ForwardingManager(
            broker_id=2,
            incarnation="inc",
            serde=DefaultPrincipalSerde(),
            request_timeout_ms=timeout_ms,
            log=self.log,
            now_s=time.monotonic,
            redirected=self._count,
        )

    def _count(self) -> None:
        self.redirected += 1

    def target(self, link: ScriptedLink | None, controller_id: int = 1) -> None:
        new_target = (
            None if link is None else KnownController(link, controller_id, controller_id == 2)
        )
        self.manager.set_target(new_target)

    def forward(self, name: str = "r") -> asyncio.Task[object]:
        return asyncio.create_task(self.manager.forward(_request(name), b"body"))


def _request(name: str) -> ClientRequest:
    alice = KafkaPrincipal("User", "alice")
    return a_request(19, 7, request_id=name, host="10.0.0.9", principal=alice)


async def _settle() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_envelope_has_every_field_of_the_request() -> None:
    """No field has the value that it has in other tests or by default."""
    broker, link = Broker(), ScriptedLink(DONE)
    broker.target(link, 3)
    request = a_request(
        19,
        7,
        request_id="r9",
        host="10.0.0.9",
        listener_name="OUTSIDE",
        security_protocol="SASL_SSL",
        dialect="drafted",
        client_id="audit",
        principal=KafkaPrincipal("Group", "ops", token_authenticated=True),
    )
    request = replace(request, made_by_broker=True)
    done = await broker.manager.forward(request, b"body")
    assert (done.step, done.response, done.zxid) == (NextStep.RELAY, b"inner", 77)
    (sent,) = link.sent
    assert sent.identity == (2, "inc", 1)
    assert sent.request_header == request.header_bytes
    assert (sent.request_header[:4], sent.request_data) == (b"\0\x13\0\7", b"body")
    assert b"audit" in sent.request_header
    assert sent.principal == bytes.fromhex("0000 06 47726f7570 04 6f7073 01 00")
    assert sent.client_address == b"\x0a\0\0\x09"
    assert (sent.listener_name, sent.security_protocol) == ("OUTSIDE", "SASL_SSL")
    assert (sent.dialect, sent.request_id, sent.attempt) == ("drafted", "r9", 1)
    assert sent.made_by_broker
    assert 0 < sent.remaining_ms <= 2_000


async def test_a_resend_keeps_the_identity() -> None:
    """Attempt 1 loses its channel. Attempt 2 gets NOT_CONTROLLER, attempt 3 the response."""
    broker = Broker()
    first, second = ScriptedLink(ChannelClosedError("gone")), ScriptedLink(MOVED, DONE)
    broker.target(first)
    task = broker.forward()
    await _settle()
    broker.target(second, 3)
    done = await task
    assert done.step is NextStep.RELAY  # type: ignore[attr-defined]
    sent = first.sent + second.sent
    assert {e.identity for e in sent} == {(2, "inc", 1)}
    assert [e.attempt for e in sent] == [1, 2, 3]
    assert broker.redirected == 1
    tried = [e for e in broker.log.events if isinstance(e, ForwardSent)]
    ended = [e for e in broker.log.events if isinstance(e, ForwardReplied)]
    assert [(e.attempt, e.controller_id) for e in tried] == [(1, 1), (2, 3), (3, 3)]
    assert [e.error for e in ended] == [None, 41, 0]


async def test_waiting_requests_are_sent_in_order_of_sequence() -> None:
    broker = Broker()
    tasks = [broker.forward(str(i)) for i in range(20)]
    await _settle()
    assert broker.manager.queue_length == 20
    first = ScriptedLink()
    broker.target(first)
    await _settle()
    assert [e.identity.sequence for e in first.sent] == list(range(1, 21))
    first.open[7].set_result(DONE)
    for future in reversed(first.open):
        if not future.done():
            future.set_exception(ChannelClosedError("gone"))
    broker.target(None)
    await _settle()
    second = ScriptedLink(*[DONE] * 19)
    broker.target(second)
    await asyncio.gather(*tasks)
    assert [e.identity.sequence for e in second.sent] == [*range(1, 8), *range(9, 21)]


async def test_the_lowest_unfinished_sequence_belongs_to_the_oldest_unfinished_request() -> None:
    broker, link = Broker(), ScriptedLink()
    broker.target(link)
    assert broker.manager.lowest_unfinished == 1
    tasks = [broker.forward() for _ in range(3)]
    await _settle()
    link.open[1].set_result(DONE)
    await tasks[1]
    assert broker.manager.lowest_unfinished == 1
    link.open[0].set_result(DONE)
    await tasks[0]
    assert broker.manager.lowest_unfinished == 3
    link.open[2].set_result(DONE)
    await tasks[2]
    assert broker.manager.lowest_unfinished == 4


async def test_a_slow_request_does_not_delay_others() -> None:
    broker, link = Broker(), ScriptedLink()
    broker.target(link)
    slow, quick = broker.forward("slow"), broker.forward("quick")
    await _settle()
    link.open[1].set_result(DONE)
    await quick
    assert not slow.done()
    link.open[0].set_result(DONE)
    await slow


async def test_a_request_without_a_controller_times_out() -> None:
    broker = Broker(timeout_ms=60)
    done = await broker.manager.forward(_request("r"), b"")
    assert (done.step, done.remote_ms) == (NextStep.TIMED_OUT, None)
    assert broker.manager.lowest_unfinished == 2
    assert broker.redirected == 0


async def test_a_timeout_does_not_cancel_the_attempt() -> None:
    broker, link = Broker(timeout_ms=60), ScriptedLink()
    broker.target(link)
    done = await broker.manager.forward(_request("r"), b"")
    assert done.step is NextStep.TIMED_OUT
    assert not link.open[0].cancelled()


async def test_a_retry_after_not_controller_is_sent_after_a_pause() -> None:
    broker, link = Broker(timeout_ms=200), ScriptedLink(*[MOVED] * 1_000)
    broker.target(link)
    done = await broker.manager.forward(_request("r"), b"")
    assert done.step is NextStep.TIMED_OUT
    assert 2 <= len(link.sent) <= 6


async def test_forwarding_within_the_process_writes_events_but_counts_no_redirect() -> None:
    broker, link = Broker(), ScriptedLink()
    broker.target(link, controller_id=2)
    task = broker.forward()
    await _settle()
    link.open[0].cancel()  # the controller in this process stopped
    other = ScriptedLink(DONE)
    await _settle()
    assert not task.done()
    broker.target(other, controller_id=2)
    done = await task
    assert done.step is NextStep.RELAY  # type: ignore[attr-defined]
    assert done.remote_ms is None  # type: ignore[attr-defined]
    assert other.sent[0].identity == link.sent[0].identity
    assert broker.redirected == 0
    assert [e.local for e in broker.log.events if isinstance(e, ForwardSent)] == [True, True]


async def test_a_cancelled_request_does_not_count_as_a_broken_link() -> None:
    broker, link = Broker(), ScriptedLink()
    broker.target(link)
    task = broker.forward()
    await _settle()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert broker.manager.queue_length == 0


async def test_queue_time_and_remote_time_are_separate() -> None:
    now_s = [100.0]
    broker, link = Broker(timeout_ms=60_000), ScriptedLink()
    broker.manager._now_s = lambda: now_s[0]
    running = broker.forward()
    await _settle()
    now_s[0] += 0.5
    broker.target(link)
    await _settle()
    now_s[0] += 0.25
    link.open[0].set_result(DONE)
    done = await running
    assert (done.queued_ms, done.remote_ms) == (500.0, 250.0)  # type: ignore[attr-defined]
