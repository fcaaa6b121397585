"""The controller loop: commits, order of publication and reply, conflicts, end of a term."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, ClassVar, cast

import pytest

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_topics import CreateTopicsRequest
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest
from bridgehead.kafka_wire.messages.drafted.alter_acls import AlterAclsRequest
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource, Record
from cluster_model.znodes.operations import Create
from controller.apis.alter_acls import AlterAcls
from controller.apis.base import DONE, AdminApi, Decided, Decision, Outcome, Results
from controller.apis.delete_topics import DeleteTopics
from controller.loop.delayed_responses import DelayedResponses
from controller.loop.loop import MULTIS_IN_FLIGHT_MAX, OPERATIONS_PER_MULTI
from controller.requests.pending_request import PendingRequest
from controller.requests.responses import ResponseEncoder
from controller.store.outcomes import decode_outcomes
from controller.store.port import (
    Committed,
    ContentConflictError,
    ControllerMovedError,
    Fence,
    UnknownOutcomeError,
)
from envelope.messages import EnvelopeReply
from tests.unit.controller.loop_bench import MemoryStore, Term
from tests.unit.controller.request_contexts import a_pending_request
from tests.unit.controller.test_drafted_acls import ADD, action, on
from tests.unit.controller.topic_decisions import config, create_topics, creation, image, topic
from tests.unit.turns import turns_during

NOT_CONTROLLER = EnvelopeReply(int(ErrorCode.NOT_CONTROLLER), None, 0)
EXISTS, NONE = "TOPIC_ALREADY_EXISTS", "NONE"


def created(*names: str, **fields: Any) -> Any:
    return creation(*(topic(name) for name in names), **fields)


def large(count: int) -> Any:
    """Create topics of 100 partitions each. Two such topics fit in a multi."""
    return creation(*(topic(f"large-{n:02}", 100) for n in range(count)), timeout_ms=0)


async def test_a_reply_follows_commit_and_publication_and_has_the_zxid_of_the_commit() -> None:
    term = Term()
    reply = term.submit(create_topics(), created("orders", timeout_ms=1000))
    (errors,) = await term.run_until(reply)
    assert errors == {"orders": NONE}
    assert term.happened == ["published ['orders']", "answered 1"]
    assert reply.result().zxid == term.store.zxid == 101


async def test_a_response_that_waits_for_nothing_is_sent_after_the_commit() -> None:
    """The reply has the zxid of the commit."""
    term = Term()
    request = AlterAclsRequest([on("orders", action(ADD))])
    reply = term.submit(AlterAcls(True), request)
    assert list((await term.run_until(reply))[0].values()) == [NONE]
    assert len(term.store.multis) == 1
    assert reply.result().zxid == term.store.zxid == 101


async def test_an_outcome_is_in_the_multi_of_its_effects() -> None:
    term = Term()
    await term.run_until(term.submit(create_topics(), created("orders", "refunds")))
    ((marker, *effects),) = term.store.multis
    assert isinstance(marker, Create)
    assert marker.path == "/bridgehead/outcomes/0000000001"
    (entry,) = decode_outcomes(marker.path, marker.data)
    assert entry.identity == (1, "life", 1)
    assert {name: outcome.error.name for name, outcome in entry.elements.items()} == {
        "orders": NONE,
        "refunds": NONE,
    }
    assert {"/brokers/topics/orders", "/brokers/topics/refunds"} <= {o.path for o in effects}


async def test_queued_requests_are_decided_in_order_and_committed_in_one_multi() -> None:
    term = Term()
    replies = [term.submit(create_topics(), created(name)) for name in ("a", "b", "a")]
    assert await term.run_until(*replies) == [{"a": NONE}, {"b": NONE}, {"a": EXISTS}]
    assert len(term.store.multis) == 1


async def test_a_resend_gets_its_response_and_not_executed_again() -> None:
    term = Term()
    await term.run_until(term.submit(create_topics(), created("orders"), sequence=7))
    again = term.submit(create_topics(), created("orders"), sequence=7)
    assert await term.run_until(again) == [{"orders": NONE}]
    assert len(term.store.multis) == 1


async def test_a_resend_executes_only_the_uncommitted_elements() -> None:
    term = Term()
    await term.run_until(term.submit(create_topics(), created("orders"), sequence=7))
    rest = term.submit(create_topics(), created("orders", "refunds"), sequence=7)
    assert await term.run_until(rest) == [{"orders": NONE, "refunds": NONE}]
    assert "/brokers/topics/refunds" in term.store.znodes
    assert not any(operation.path == "/brokers/topics/orders" for operation in term.store.multis[1])


async def test_a_conflict_fails_its_own_element_only() -> None:
    term = Term()
    term.store.znodes["/brokers/topics/taken"] = b"external"
    mixed = term.submit(create_topics(), created("first", "taken", "last"))
    other = term.submit(create_topics(), created("other"))
    errors = await term.run_until(mixed, other)
    assert errors == [{"first": NONE, "taken": EXISTS, "last": NONE}, {"other": NONE}]
    assert term.store.znodes["/brokers/topics/taken"] == b"external"
    assert {f"/brokers/topics/{name}" for name in ("first", "last", "other")} <= set(
        term.store.znodes
    )
    assert "reload" in term.happened


async def test_a_rejection_that_depends_on_an_uncommitted_topic_is_decided_again() -> None:
    term = Term()
    term.store.znodes["/brokers/topics/taken"] = b"external"
    replies = [
        term.submit(create_topics(), created(name)) for name in ("taken", "orders", "orders")
    ]
    assert await term.run_until(*replies) == [
        {"taken": EXISTS},
        {"orders": NONE},
        {"orders": EXISTS},
    ]
    third = term.happened.index("answered 3")
    assert "published ['orders']" in term.happened[:third]


async def test_after_a_conflict_the_later_multis_are_tried_again() -> None:
    """The image has exactly the written topics. No topic is written twice."""
    term = Term()
    names = [f"large-{n:02}" for n in range(40)]
    term.store.znodes["/brokers/topics/large-21"] = b"external"
    (errors,) = await term.run_until(term.submit(create_topics(), large(40)))
    assert errors == {n: EXISTS if n == "large-21" else "REQUEST_TIMED_OUT" for n in names}
    await term.run_until_idle()
    assert set(term.loop.image.topics) == set(names) - {"large-21"}
    created = [o.path for multi in term.store.multis for o in multi if isinstance(o, Create)]
    assert len(created) == len(set(created))


@pytest.mark.parametrize("lost", [ControllerMovedError, UnknownOutcomeError])
async def test_every_pending_request_gets_not_controller_when_the_term_ends(
    lost: type[Exception],
) -> None:
    """The requests are in flight, queued or delayed. Some of them may have been committed."""
    term = Term()
    waiting = term.submit(create_topics(), creation(topic("vast", 900), timeout_ms=60_000))
    term.store.unknown_from = 2 if lost is UnknownOutcomeError else None
    running = asyncio.create_task(term.loop.run())
    while not term.store.multis:
        await asyncio.sleep(0)
    term.store.moved = lost is ControllerMovedError
    in_flight = term.submit(create_topics(), created("orders"))
    with pytest.raises(lost):
        await running
    queued = term.submit(create_topics(), created("refunds"))
    term.loop.end()
    assert [future.result() for future in (waiting, in_flight, queued)] == [NOT_CONTROLLER] * 3


async def test_request_gets_not_controller_if_its_multi_is_lost() -> None:
    term = Term()
    term.store.unknown_from = 1
    reply = term.submit(create_topics(), created("orders"))
    with pytest.raises(UnknownOutcomeError):
        await term.loop.run()
    term.loop.end()
    assert reply.result() == NOT_CONTROLLER
    assert term.happened == []


async def test_a_request_is_not_executed_after_its_deadline() -> None:
    term = Term()
    late = term.submit(create_topics(), created("orders"), deadline_s=999.0)
    await term.run_until(late)
    assert late.result().error_code == int(ErrorCode.REQUEST_TIMED_OUT)
    assert term.store.multis == []


async def test_a_waiting_copy_is_not_executed_after_its_broker_has_finished_the_request() -> None:
    """The first copy was committed. The broker gave up, so the outcome is pruned meanwhile."""
    term = Term()
    first = term.submit(create_topics(), created("orders"), sequence=7)
    await term.run_until(first)
    (commit,) = term.loop.outcomes.commits
    term.loop.outcomes.raise_floor((1, "life"), 8)
    term.loop.outcomes.pruned(term.loop.outcomes.plan_pruning([commit], frozenset()))
    copy = term.submit(create_topics(), created("refunds"), sequence=7)
    await term.run_until(copy)
    assert copy.result().error_code == int(ErrorCode.INVALID_REQUEST)
    assert len(term.store.multis) == 1


async def test_without_replies_from_zookeeper_a_request_gets_not_controller() -> None:
    """The request was committed, but another controller may be active."""
    term = Term()
    term.store.holds = False
    reply = term.submit(create_topics(), created("orders"))
    await term.run_until(reply)
    assert reply.result() == NOT_CONTROLLER
    assert "/brokers/topics/orders" in term.store.znodes


class Decides(AdminApi):
    """An API that always decides the given elements. Without elements, `decide` raises."""

    api_key: ClassVar[ApiKey] = ApiKey.INCREMENTAL_ALTER_CONFIGS

    def __init__(self, *elements: Decided) -> None:
        self._elements = elements

    def decide(self, *_arguments: Any) -> Decision:
        if not self._elements:
            raise ZeroDivisionError
        return Decision(self._elements)

    def conflict(self, element: str) -> Outcome:
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, element)

    def response(self, *_arguments: Any) -> Any:
        return None

    def error_response(self, *_arguments: Any) -> Any:
        return None


def configured(name: str, value: str) -> Record:
    return ConfigRecord(ConfigResource("brokers", name), {"key": value})


@pytest.mark.parametrize("culprit", [0, 1, 2])
async def test_a_conflict_is_attributed_to_the_right_element(
    culprit: int,
) -> None:
    """In the multi, the operation that creates the outcomes precedes the elements' operations."""
    term = Term()
    term.store.znodes[f"/config/brokers/{culprit}"] = b"external"
    quiet = [ConfigRecord(ConfigResource("brokers", f"{n}"), {}, notify=False) for n in range(3)]
    api = Decides(*(Decided(f"{n}", DONE, (record,)) for n, record in enumerate(quiet)))
    (errors,) = await term.run_until(term.submit(api, None))
    assert errors == {f"{n}": "UNKNOWN_SERVER_ERROR" if n == culprit else NONE for n in range(3)}


async def test_a_fault_in_a_decision_fails_its_own_request_only() -> None:
    term = Term()
    broken = term.submit(Decides(), None)
    fine = term.submit(create_topics(), created("orders"))
    running = asyncio.create_task(term.loop.run())
    await asyncio.gather(broken, fine)
    running.cancel()
    assert broken.result().response_data == b"UNKNOWN_SERVER_ERROR"
    assert fine.result().response_data == b'{"orders": "NONE"}'


class LimitsMessages(Term):
    """A term that also encodes CreateTopics responses for clients, with Kafka's limit on texts."""

    def _respond(
        self, pending: PendingRequest, unfinished: frozenset[str], image: MetadataImage
    ) -> EnvelopeReply:
        results = Results(pending.outcomes, image, unfinished)
        message = pending.api.response(pending.context, pending.request, results)
        encode_response(ApiKey.CREATE_TOPICS, pending.header.api_version, message)
        return super()._respond(pending, unfinished, image)


@pytest.mark.parametrize("version", [4, 7])
async def test_a_response_that_cannot_be_encoded_fails_its_own_request_only(version: int) -> None:
    """The error message contains the name, so it is longer than the protocol allows."""
    term = LimitsMessages()
    broken = term.submit(create_topics(), created("a" * 0x7FFF), version=version)
    fine = term.submit(create_topics(), created("orders"), version=version)
    running = asyncio.create_task(term.loop.run())
    await asyncio.wait((running, asyncio.gather(broken, fine)), return_when="FIRST_COMPLETED")
    assert not running.done(), running
    running.cancel()
    assert broken.result().response_data == b"UNKNOWN_SERVER_ERROR"
    assert fine.result().response_data == b'{"orders": "NONE"}'


async def test_an_element_larger_than_a_multi_is_rejected_and_not_sent() -> None:
    term = Term()
    api = Decides(
        Decided("vast", DONE, (configured("1", "x" * 900_001),)),
        Decided("small", DONE, (configured("2", "x"),)),
    )
    assert await term.run_until(term.submit(api, None)) == [
        {"vast": "INVALID_REQUEST", "small": NONE}
    ]
    assert "/config/brokers/1" not in term.store.znodes
    assert "/config/brokers/2" in term.store.znodes


async def test_a_reply_waits_for_partitions_beyond_the_first_multi() -> None:
    term = Term()
    request = creation(topic("vast", 900), timeout_ms=60_000)
    assert await term.run_until(term.submit(create_topics(), request)) == [{"vast": NONE}]
    assert all(state.leader > 0 for state in term.loop.image.topics["vast"].states)
    assert len(term.store.multis) > 2
    states = [path for path in term.store.znodes if path.endswith("/state")]
    assert len(states) == 900


async def test_timeout_0_gets_request_timed_out_and_the_topic_is_created() -> None:
    term = Term()
    request = created("orders", timeout_ms=0)
    assert await term.run_until(term.submit(create_topics(), request, sequence=3)) == [
        {"orders": "REQUEST_TIMED_OUT"}
    ]
    assert "/brokers/topics/orders" in term.store.znodes
    again = term.submit(create_topics(), created("orders", timeout_ms=1000), sequence=3)
    assert await term.run_until(again) == [{"orders": NONE}]


async def test_a_background_job_does_not_delay_requests() -> None:
    term = Term()
    pieces = ([configured(str(n), "x")] for n in range(100))
    term.loop.start_job(pieces)
    running = asyncio.create_task(term.loop.run())
    while len(term.store.multis) < 3:
        await asyncio.sleep(0)
    await term.submit(create_topics(), created("orders"))
    assert len(term.store.multis) < 10
    while len(term.store.multis) < 101:
        await asyncio.sleep(0)
    running.cancel()


async def test_a_conflict_ends_the_background_job_and_reloads_the_image() -> None:
    store = MemoryStore()
    store.znodes["/config/brokers/1"] = b"external"
    term = Term(store)
    term.loop.start_job(iter([[configured("1", "x")], [configured("2", "x")]]))
    await term.run_until(term.submit(create_topics(), created("orders")))
    await term.run_until_idle()
    assert term.happened.count("reload") == 1
    assert "/config/brokers/2" not in store.znodes


async def test_a_reload_runs_before_the_next_round_and_before_earlier_actions() -> None:
    term = Term()

    def recorded(name: str) -> Callable[[], Awaitable[None]]:
        async def action() -> None:
            term.happened.append(name)

        return action

    term.loop.schedule(recorded("earlier action"))
    term.loop.schedule(recorded("reload"), first=True)
    await term.run_until(term.submit(create_topics(), created("orders")))
    assert term.happened[:2] == ["reload", "published ['orders']"]
    assert "earlier action" in term.happened


class InFlight(MemoryStore):
    """Records how many multis are in flight at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.in_flight: list[int] = []

    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        self.in_flight.append(len(effects))
        return await super().commit_pipelined(fence, effects)


async def test_the_multis_of_a_step_are_in_flight_together_and_published_once() -> None:
    store = InFlight()
    term = Term(store)
    step = [configured(f"{n:04}", "x") for n in range(4_800)]
    term.loop.start_job(iter([step]))
    await term.run_until_idle()
    assert store.in_flight == [MULTIS_IN_FLIGHT_MAX, len(store.multis) - MULTIS_IN_FLIGHT_MAX]
    assert max(map(len, store.multis)) == OPERATIONS_PER_MULTI
    assert term.happened == ["published []"]


async def test_after_a_conflict_the_later_multis_of_a_step_are_not_written() -> None:
    store = InFlight()
    store.znodes["/config/brokers/0300"] = b"external"
    term = Term(store)
    term.loop.start_job(iter([[configured(f"{n:04}", "x") for n in range(600)]]))
    await term.run_until_idle()
    assert term.happened == ["reload"]
    assert len(store.multis) == 1
    assert store.znodes["/config/brokers/0300"] == b"external"


async def test_others_run_while_a_large_request_is_decided() -> None:
    """Heartbeats to ZooKeeper, for example: without them another controller is elected."""
    term = Term()
    names = [f"missing-{number}" for number in range(20_000)]
    request = DeleteTopicsRequest(topic_names=names, timeout_ms=1000)
    reply = term.submit(DeleteTopics(config()), request, version=5, is_large=True)
    (errors,), turns = await turns_during(term.run_until(reply))
    assert errors == dict.fromkeys(names, "UNKNOWN_TOPIC_OR_PARTITION")
    assert turns >= 20


async def test_a_request_behind_a_large_one_is_decided_after_it() -> None:
    term = Term()
    first = term.submit(create_topics(), created("orders"), is_large=True)
    second = term.submit(create_topics(), created("orders"))
    assert await term.run_until(first, second) == [{"orders": NONE}, {"orders": EXISTS}]


class _LargeTerm:
    """A large request that is decided, and whose response is encoded when the test wants it."""

    def __init__(self) -> None:
        self.may_end, self.holds = asyncio.Event(), True
        self.delayed = DelayedResponses(
            cast(ResponseEncoder, self),
            image=image,
            lease_holds=lambda: self.holds,
            flush=lambda: None,
            now_s=lambda: 0.0,
            waits_for_brokers=False,
        )
        self.reply: asyncio.Future[EnvelopeReply] = asyncio.get_running_loop().create_future()
        self.delayed.complete(a_pending_request(self.reply, is_large=True))

    async def encode_in_thread(self, *_arguments: Any) -> EnvelopeReply:
        await self.may_end.wait()
        return EnvelopeReply(0, b"response", 7)


async def test_a_large_response_is_not_sent_after_the_lease_was_lost() -> None:
    """Another controller may be active by then, so the outcome must come from it."""
    term = _LargeTerm()
    await asyncio.sleep(0)
    assert not term.reply.done()
    term.holds = False
    term.may_end.set()
    assert await term.reply == NOT_CONTROLLER


async def test_a_large_response_does_not_replace_the_reply_of_the_ended_term() -> None:
    term = _LargeTerm()
    await asyncio.sleep(0)
    term.reply.set_result(NOT_CONTROLLER)
    term.may_end.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert term.reply.result() == NOT_CONTROLLER


@pytest.mark.parametrize("is_large", [True, False])
async def test_the_records_of_a_large_request_are_replayed_in_the_thread(
    is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For 20,000 topics that takes most of a second; heartbeats must go on meanwhile."""
    threads: list[str] = []
    replay = MetadataImage.replay

    def watched(image: MetadataImage, records: Iterable[Record]) -> MetadataImage:
        threads.append(threading.current_thread().name.partition("_")[0])
        return replay(image, records)

    monkeypatch.setattr(MetadataImage, "replay", watched)
    term = Term()
    request = CreateTopicsRequest([topic(f"t-{number}") for number in range(9)], 9_000, False)
    await term.run_until(term.submit(create_topics(), request, is_large=is_large))
    assert len(term.loop.image.topics) == 9
    assert set(threads) == {"large-requests" if is_large else "MainThread"}
