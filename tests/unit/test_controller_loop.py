"""The single writer: what it commits, in which order it tells, what a conflict or a loss does."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.records import ConfigRecord, ConfigResource, Record
from cluster_model.znode_operations import Create
from controller.apis.base import DONE, Decided, Decision, Outcome
from controller.store.outcomes import decode_outcomes
from controller.store.port import ControllerMovedError, UnknownOutcomeError
from envelope.messages import EnvelopeAnswer
from tests.unit.loop_bench import MemoryStore, Term
from tests.unit.topic_decisions import create_topics, creation, topic

NOT_CONTROLLER = EnvelopeAnswer(int(ErrorCode.NOT_CONTROLLER), None, 0)
EXISTS, NONE = "TOPIC_ALREADY_EXISTS", "NONE"


def created(*names: str, **fields: Any) -> Any:
    return creation(*(topic(name) for name in names), **fields)


def large(count: int) -> Any:
    """Topics of 100 partitions: four fill a multi less than twice."""
    return creation(*(topic(f"large-{n:02}", 100) for n in range(count)), timeout_ms=0)


async def test_an_answer_comes_after_the_commit_and_the_push_and_names_the_commit() -> None:
    """Who reads right after the answer, anywhere, finds what was written."""
    term = Term()
    answer = term.ask(create_topics(), created("orders", timeout_ms=1000))
    (told,) = await term.run_until(answer)
    assert told == {"orders": NONE}
    assert term.happened == ["published ['orders']", "answered 1"]
    assert answer.result().zxid == term.store.zxid == 101


async def test_an_outcome_stands_in_the_multi_of_its_effects() -> None:
    """Whoever is controller next finds both or neither."""
    term = Term()
    await term.run_until(term.ask(create_topics(), created("orders", "refunds")))
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


async def test_requests_that_are_queued_go_out_together_each_seeing_those_before_it() -> None:
    """One multi for all; the second creation of a name meets the first."""
    term = Term()
    asked = [term.ask(create_topics(), created(name)) for name in ("a", "b", "a")]
    assert await term.run_until(*asked) == [{"a": NONE}, {"b": NONE}, {"a": EXISTS}]
    assert len(term.store.multis) == 1


async def test_a_request_that_comes_again_is_answered_and_not_executed() -> None:
    """Its outcome is known: no second effect, and no ghost."""
    term = Term()
    await term.run_until(term.ask(create_topics(), created("orders"), sequence=7))
    again = term.ask(create_topics(), created("orders"), sequence=7)
    assert await term.run_until(again) == [{"orders": NONE}]
    assert len(term.store.multis) == 1


async def test_of_a_request_that_was_cut_off_only_the_rest_is_executed() -> None:
    """The elements that an earlier multi settled keep their outcomes."""
    term = Term()
    await term.run_until(term.ask(create_topics(), created("orders"), sequence=7))
    rest = term.ask(create_topics(), created("orders", "refunds"), sequence=7)
    assert await term.run_until(rest) == [{"orders": NONE, "refunds": NONE}]
    assert "/brokers/topics/refunds" in term.store.znodes
    assert not any(operation.path == "/brokers/topics/orders" for operation in term.store.multis[1])


async def test_a_conflict_is_told_to_its_element_alone() -> None:
    """A foreign topic: who asked for it hears so, the others' topics are there all the same."""
    term = Term()
    term.store.znodes["/brokers/topics/taken"] = b"foreign"
    mixed = term.ask(create_topics(), created("first", "taken", "last"))
    other = term.ask(create_topics(), created("other"))
    told = await term.run_until(mixed, other)
    assert told == [{"first": NONE, "taken": EXISTS, "last": NONE}, {"other": NONE}]
    assert term.store.znodes["/brokers/topics/taken"] == b"foreign"
    assert {f"/brokers/topics/{name}" for name in ("first", "last", "other")} <= set(
        term.store.znodes
    )
    assert "reload" in term.happened


async def test_nobody_is_refused_because_of_a_topic_that_a_conflict_undid() -> None:
    """A refusal decided on an image that did not come true is decided again before it is told."""
    term = Term()
    term.store.znodes["/brokers/topics/taken"] = b"foreign"
    asked = [term.ask(create_topics(), created(name)) for name in ("taken", "orders", "orders")]
    assert await term.run_until(*asked) == [{"taken": EXISTS}, {"orders": NONE}, {"orders": EXISTS}]
    third = term.happened.index("answered 3")
    assert "published ['orders']" in term.happened[:third]


async def test_what_was_committed_before_a_conflict_stays_and_what_comes_after_is_tried_again() -> (
    None
):
    """Several multis under way: the image holds exactly what was written, once each."""
    term = Term()
    names = [f"large-{n:02}" for n in range(40)]
    term.store.znodes["/brokers/topics/large-21"] = b"foreign"
    (told,) = await term.run_until(term.ask(create_topics(), large(40)))
    assert told == {n: EXISTS if n == "large-21" else "REQUEST_TIMED_OUT" for n in names}
    await term.run_until_idle()
    assert set(term.loop.image.topics) == set(names) - {"large-21"}
    made = [o.path for multi in term.store.multis for o in multi if isinstance(o, Create)]
    assert len(made) == len(set(made))


@pytest.mark.parametrize("lost", [ControllerMovedError, UnknownOutcomeError])
async def test_when_office_is_lost_everybody_is_sent_to_the_next_controller(
    lost: type[Exception],
) -> None:
    """In flight, queued and waiting alike: nobody is told a failure that may be a success."""
    term = Term()
    waiting = term.ask(create_topics(), creation(topic("vast", 900), timeout_ms=60_000))
    term.store.unknown_from = 2 if lost is UnknownOutcomeError else None
    running = asyncio.create_task(term.loop.run())
    while not term.store.multis:
        await asyncio.sleep(0)
    term.store.moved = lost is ControllerMovedError
    in_flight = term.ask(create_topics(), created("orders"))
    with pytest.raises(lost):
        await running
    queued = term.ask(create_topics(), created("refunds"))
    term.loop.end(NOT_CONTROLLER)
    assert [each.result() for each in (waiting, in_flight, queued)] == [NOT_CONTROLLER] * 3


async def test_a_request_whose_very_multi_is_lost_is_sent_to_the_next_controller() -> None:
    """It was decided and is neither queued nor waiting: its answer is not forgotten."""
    term = Term()
    term.store.unknown_from = 1
    answer = term.ask(create_topics(), created("orders"))
    with pytest.raises(UnknownOutcomeError):
        await term.loop.run()
    term.loop.end(NOT_CONTROLLER)
    assert answer.result() == NOT_CONTROLLER
    assert term.happened == []


async def test_after_its_deadline_nothing_of_a_request_happens() -> None:
    """Its broker has given up: the outer answer says so, and nothing is written."""
    term = Term()
    late = term.ask(create_topics(), created("orders"), deadline_s=999.0)
    await term.run_until(late)
    assert late.result().error_code == int(ErrorCode.REQUEST_TIMED_OUT)
    assert term.store.multis == []


async def test_a_controller_without_word_from_zookeeper_says_nothing_definite() -> None:
    """It was committed, and still somebody else may be in office: the next one tells."""
    term = Term()
    term.store.holds = False
    answer = term.ask(create_topics(), created("orders"))
    await term.run_until(answer)
    assert answer.result() == NOT_CONTROLLER
    assert "/brokers/topics/orders" in term.store.znodes


class Decides:
    """An API whose decision is given: elements with their records, or a fault."""

    api_key: ClassVar[int] = 44

    def __init__(self, *elements: Decided) -> None:
        self._elements = elements

    def decide(self, *_asked: Any) -> Decision:
        if not self._elements:
            raise ZeroDivisionError
        return Decision(self._elements)

    def conflict(self, element: str) -> Outcome:
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, element)

    def answer(self, *_asked: Any) -> Any: ...
    def refuse(self, *_asked: Any) -> Any: ...


def configured(name: str, value: str) -> Record:
    return ConfigRecord(ConfigResource("brokers", name), {"key": value})


@pytest.mark.parametrize("culprit", [0, 1, 2])
async def test_the_culprit_of_a_conflict_is_found_among_neighbours_of_one_operation(
    culprit: int,
) -> None:
    """The index counts from the outcomes' znode; one beside it would blame somebody else."""
    term = Term()
    term.store.znodes[f"/config/brokers/{culprit}"] = b"foreign"
    quiet = [ConfigRecord(ConfigResource("brokers", f"{n}"), {}, notify=False) for n in range(3)]
    api = Decides(*(Decided(f"{n}", DONE, (record,)) for n, record in enumerate(quiet)))
    (told,) = await term.run_until(term.ask(api, None))
    assert told == {f"{n}": "UNKNOWN_SERVER_ERROR" if n == culprit else NONE for n in range(3)}


async def test_a_fault_in_a_decision_is_that_requests_alone() -> None:
    """The others of its round are decided, committed and answered."""
    term = Term()
    broken = term.ask(Decides(), None)
    fine = term.ask(create_topics(), created("orders"))
    running = asyncio.create_task(term.loop.run())
    await asyncio.gather(broken, fine)
    running.cancel()
    assert broken.result().response_data == b"UNKNOWN_SERVER_ERROR"
    assert fine.result().response_data == b'{"orders": "NONE"}'


async def test_what_no_multi_can_hold_is_refused_and_not_sent() -> None:
    """ZooKeeper would hang up on it, however often it is sent, and no other write would pass."""
    term = Term()
    api = Decides(
        Decided("vast", DONE, (configured("1", "x" * 900_001),)),
        Decided("small", DONE, (configured("2", "x"),)),
    )
    assert await term.run_until(term.ask(api, None)) == [{"vast": "INVALID_REQUEST", "small": NONE}]
    assert "/config/brokers/1" not in term.store.znodes
    assert "/config/brokers/2" in term.store.znodes


async def test_an_answer_waits_for_the_partitions_that_did_not_fit_its_multi() -> None:
    """900 partitions take several multis; NONE is told when each of them has its leader."""
    term = Term()
    request = creation(topic("vast", 900), timeout_ms=60_000)
    assert await term.run_until(term.ask(create_topics(), request)) == [{"vast": NONE}]
    assert all(state.leader > 0 for state in term.loop.image.topics["vast"].states)
    assert len(term.store.multis) > 2
    states = [path for path in term.store.znodes if path.endswith("/state")]
    assert len(states) == 900


async def test_a_wait_of_no_time_ends_at_once_and_the_topic_is_made_all_the_same() -> None:
    """Kafka's answer to timeout 0: REQUEST_TIMED_OUT, and the outcome says NONE."""
    term = Term()
    request = created("orders", timeout_ms=0)
    assert await term.run_until(term.ask(create_topics(), request, sequence=3)) == [
        {"orders": "REQUEST_TIMED_OUT"}
    ]
    assert "/brokers/topics/orders" in term.store.znodes
    again = term.ask(create_topics(), created("orders", timeout_ms=1000), sequence=3)
    assert await term.run_until(again) == [{"orders": NONE}]


async def test_the_controllers_own_work_lets_requests_through() -> None:
    """A long job is committed piece by piece, and a request does not wait for its end."""
    term = Term()
    pieces = ([configured(str(n), "x")] for n in range(100))
    term.loop.start_job(pieces)
    running = asyncio.create_task(term.loop.run())
    while len(term.store.multis) < 3:
        await asyncio.sleep(0)
    await term.ask(create_topics(), created("orders"))
    assert len(term.store.multis) < 10
    while len(term.store.multis) < 101:
        await asyncio.sleep(0)
    running.cancel()


async def test_a_job_that_meets_a_foreign_write_ends_and_everything_is_read_again() -> None:
    """The term goes on."""
    store = MemoryStore()
    store.znodes["/config/brokers/1"] = b"foreign"
    term = Term(store)
    term.loop.start_job(iter([[configured("1", "x")], [configured("2", "x")]]))
    await term.run_until(term.ask(create_topics(), created("orders")))
    await term.run_until_idle()
    assert term.happened.count("reload") == 1
    assert "/config/brokers/2" not in store.znodes
