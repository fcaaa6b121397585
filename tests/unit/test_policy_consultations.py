"""Policies between deciding and committing: who is asked about what, in which turn, how often."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.policy import ClusterState, KafkaPrincipal
from cluster_model.principal import KafkaPrincipal as Principal
from cluster_model.records import DeletionMarkerRecord
from controller import consultations
from controller.apis.alter_partition_reassignments import AlterPartitionReassignments
from controller.apis.create_partitions import CreatePartitions
from controller.apis.delete_topics import DeleteTopics
from controller.policy_questions import ImageClusterState
from controller.store.outcomes import RequestOutcomes
from envelope.messages import RequestIdentity
from tests.unit.loop_bench import MemoryStore, Term
from tests.unit.topic_decisions import (
    ID,
    config,
    context,
    create_topics,
    creation,
    image,
    topic,
    with_topic,
)

VIOLATION, NONE = "POLICY_VIOLATION", "NONE"


class Asked:
    """Policies that say what `judge` says, and remember what they were asked."""

    def __init__(self, judge: Callable[[Any, ClusterState], str | None] | None = None) -> None:
        self.questions: list[Any] = []
        self.judge = judge or (lambda question, cluster: None)
        self.go = asyncio.Event()
        self.go.set()

    async def ask(self, question: Any, cluster: ClusterState) -> ApiError | None:
        self.questions.append(question)
        await self.go.wait()
        said = self.judge(question, cluster)
        return ApiError(ErrorCode.POLICY_VIOLATION, said) if said else None


def refusing(*names: str) -> Asked:
    return Asked(lambda question, _: "no" if question.topic in names else None)


def at_most(count: int) -> Asked:
    """A limit on the topics of the cluster."""

    def judge(question: Any, cluster: ClusterState) -> str | None:
        return "full" if len(cluster.topics(True, True)) >= count else None

    return Asked(judge)


def created(*names: str, **fields: Any) -> Any:
    return creation(*(topic(name) for name in names), timeout_ms=0, **fields)


async def test_a_violation_concerns_its_topic_alone() -> None:
    """The others of the request are created, and only they are written."""
    term = Term(policies=refusing("b"))
    (told,) = await term.run_until(term.ask(create_topics(), created("a", "b", "c")))
    assert told == {"a": "REQUEST_TIMED_OUT", "b": VIOLATION, "c": "REQUEST_TIMED_OUT"}
    assert set(term.loop.image.topics) == {"a", "c"}


async def test_a_dry_run_is_asked_about_and_writes_nothing() -> None:
    """KIP-108: validate_only tells what would be refused."""
    term = Term(policies=refusing("b"))
    (told,) = await term.run_until(term.ask(create_topics(), created("a", "b", validate_only=True)))
    assert told == {"a": NONE, "b": VIOLATION}
    assert term.store.multis == []


async def test_without_a_policy_nobody_is_asked_and_nothing_is_built() -> None:
    """A topic may have many partitions, and most clusters have no policy."""
    decision = create_topics().decide(context(7), created("a"), image(), {})
    (decided,) = decision.elements
    term = Term()
    assert term.loop._consultations.judge(None, decision, image()) is decision  # type: ignore[arg-type]
    assert decided.question is not None


async def test_what_kafka_refuses_never_reaches_the_policy() -> None:
    """KIP-108: the hardcoded validation comes first."""
    policies = refusing()
    term = Term(policies=policies)
    await term.run_until(term.ask(create_topics(), created("bad name", "a", "a", "good")))
    assert [question.topic for question in policies.questions] == ["good"]


async def test_a_request_is_asked_about_once_though_it_is_decided_twice() -> None:
    """The placement that the policy saw is the one that is written."""
    policies = refusing()
    term = Term(policies=policies)
    request = creation(topic("a", 7, 2), topic("b", 5, 3), timeout_ms=0)
    await term.run_until(term.ask(create_topics(), request))
    assert [question.topic for question in policies.questions] == ["a", "b"]
    for question in policies.questions:
        written = term.loop.image.topics[question.topic].assignment
        assert question.requested_state.replicas_assignments == dict(enumerate(written))
    ids = {each.topic_id for each in term.loop.image.topics.values()}
    assert len(ids) == 2


async def test_requests_take_turns_so_a_limit_on_the_cluster_holds() -> None:
    """Each is asked about on the image that the one before it left."""
    term = Term(policies=at_most(3))
    answers = [term.ask(create_topics(), created(f"t{n}")) for n in range(10)]
    told = [next(iter(each.values())) for each in await term.run_until(*answers)]
    assert told.count(VIOLATION) == 7
    assert len(term.loop.image.topics) == 3


async def test_a_limit_holds_within_one_request_too() -> None:
    """Topics are processed in sequence: the next one sees what was allowed before it."""
    term = Term(policies=at_most(3))
    (told,) = await term.run_until(
        term.ask(create_topics(), created(*(f"t{n}" for n in range(10))))
    )
    assert list(told.values()).count(VIOLATION) == 7


async def test_a_policy_that_takes_long_holds_up_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It loses its turn; requests that need no policy never wait for one."""
    monkeypatch.setattr(consultations, "TURN_S", 0.01)
    slow = Asked()
    go = asyncio.Event()

    async def ask(question: Any, cluster: ClusterState) -> ApiError | None:
        slow.questions.append(question.topic)
        if question.topic == "slow":
            await go.wait()
        return None

    slow.ask = ask  # type: ignore[method-assign]
    term = Term(policies=slow)
    stuck = term.ask(create_topics(), created("slow"))
    refused, quick = (term.ask(create_topics(), created(name)) for name in ("bad name", "quick"))
    await term.run_until(refused, quick)
    assert not stuck.done()
    go.set()
    await term.run_until(stuck)
    assert set(term.loop.image.topics) == {"quick", "slow"}


async def test_who_waits_for_a_policy_when_office_ends_asks_the_next_controller() -> None:
    """Both the one that is asked about, and those in line."""
    policies = refusing()
    policies.go.clear()
    term = Term(policies=policies)
    answers = [term.ask(create_topics(), created(name)) for name in "abc"]
    running = asyncio.create_task(term.loop.run())
    while not policies.questions:
        await asyncio.sleep(0)
    running.cancel()
    over: Any = "not controller"
    term.loop.end(over)
    assert [answer.result() for answer in answers] == [over] * 3
    policies.go.set()
    for _ in range(20):  # turns of the loop, not time
        await asyncio.sleep(0)
    assert len(policies.questions) == 1
    assert term.store.multis == []


async def test_who_is_asked_about_past_his_deadline_is_told_so_and_nothing_is_written() -> None:
    """Its broker has given up; whatever the policy says comes too late."""
    policies = refusing()
    policies.go.clear()
    term = Term(policies=policies)
    answer = term.ask(create_topics(), created("a", "b"), deadline_s=1001)
    running = asyncio.create_task(term.loop.run())
    while not policies.questions:
        await asyncio.sleep(0)
    term.now_s = 1002
    policies.go.set()
    await asyncio.wait((answer,), timeout=10)
    running.cancel()
    assert answer.result().error_code == ErrorCode.REQUEST_TIMED_OUT
    assert term.store.multis == []


@pytest.mark.parametrize("seeded", [False, True])
async def test_a_request_that_is_sent_again_is_asked_about_again(seeded: bool) -> None:
    """The next controller's policy decides; the seeded bug lets a retry through."""
    term = Term(policies=refusing("b"), skips_policy_on_retry=seeded)
    (told,) = await term.run_until(term.ask(create_topics(), created("b"), attempt=2))
    assert (told == {"b": VIOLATION}) is not seeded


async def test_the_audit_log_hears_of_a_request_once_though_it_is_decided_twice() -> None:
    """Deciding is how the policy's questions are found; nobody asked for more rights by that."""
    told: list[str] = []

    def bind(_asker: Any, _acls: Any) -> Any:
        def authorize(operation: str, kind: str, name: str, **log: Any) -> bool:
            if log.get("log_if_allowed", True):
                told.append(f"{operation} {kind} {name}")
            return True

        return authorize

    for policies in (None, refusing()):
        term = Term(policies=policies)
        term.loop._shell = replace(term.loop._shell, bind_authorize=bind)
        await term.run_until(term.ask(create_topics(), created("a")))
    assert told == ["CREATE CLUSTER kafka-cluster"] * 2


async def test_what_was_done_under_another_controller_is_not_asked_about_again() -> None:
    """Its outcome is in ZooKeeper: the policy of then has spoken."""
    policies, store = refusing("a", "b"), MemoryStore()
    term = Term(store, before=with_topic("a"), policies=policies)
    done = create_topics().decide(context(7), created("a"), image(), {}).elements[0]
    identity = RequestIdentity(1, "life", 1)
    term.loop.outcomes.add(1, 1, [RequestOutcomes(identity, "r", {"a": done.outcome})])
    (told,) = await term.run_until(
        term.ask(create_topics(), created("a", "b"), sequence=1, attempt=2)
    )
    assert told == {"a": "REQUEST_TIMED_OUT", "b": VIOLATION}
    assert [question.topic for question in policies.questions] == ["b"]


async def test_partitions_that_are_added_and_who_asks_are_told_to_the_policy() -> None:
    """The state after the alteration; the state before it is in the cluster's."""
    before: list[Any] = []

    def judge(question: Any, cluster: ClusterState) -> str | None:
        before.append(cluster.topic_state("t"))
        return "no" if question.requested_state.num_partitions > 2 else None

    policies = Asked(judge)
    term = Term(policies=policies)
    await term.run_until(term.ask(create_topics(), creation(topic("t", 1, 2), timeout_ms=0)))
    policies.questions.clear()
    before.clear()
    grow = [
        CreatePartitionsTopic("t", 2, None),
        CreatePartitionsTopic("t", 3, [CreatePartitionsAssignment([2, 3])]),
    ]
    for asked, expected in zip(grow, ("REQUEST_TIMED_OUT", VIOLATION), strict=True):
        (told,) = await term.run_until(
            term.ask(
                CreatePartitions(),
                CreatePartitionsRequest([asked], 0, asked.assignments is not None),
                principal=Principal("User", "alice"),
            )
        )
        assert told == {"t": expected}
    generated = [q.requested_state.generated_replica_assignments for q in policies.questions]
    assert generated == [True, False]
    assert {q.principal for q in policies.questions} == {KafkaPrincipal("User", "alice")}
    assert [state.num_partitions for state in before] == [1, 2]


async def test_a_reassignment_is_one_question_for_each_topic() -> None:
    """All partitions of a refused topic stay; the other topic's go."""
    policies = refusing()
    term = Term(policies=policies)
    both = creation(topic("t", 2, 2), topic("u", 2, 2), timeout_ms=0)
    await term.run_until(term.ask(create_topics(), both))
    policies.questions.clear()
    policies.judge = refusing("t").judge
    two = term.loop.image
    request = AlterPartitionReassignmentsRequest(
        0,
        [
            ReassignableTopic(name, [ReassignablePartition(p, [3, 1]) for p in (0, 1)])
            for name in "tu"
        ],
    )
    (told,) = await term.run_until(term.ask(AlterPartitionReassignments(), request))
    assert told == {"t:0": VIOLATION, "t:1": VIOLATION, "u:0": NONE, "u:1": NONE}
    (asked, _) = policies.questions
    assert asked.requested_state.replicas_assignments == {0: (3, 1), 1: (3, 1)}
    assert not asked.requested_state.generated_replica_assignments
    assert term.loop.image.topics["t"] == two.topics["t"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [*((v, "UNKNOWN_SERVER_ERROR") for v in range(5)), (5, VIOLATION), (6, VIOLATION)],
)
async def test_a_deletion_that_is_refused_is_told_as_its_version_can(
    version: int, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Versions before error messages do not expect 44; the log says what it was."""
    caplog.set_level("INFO")
    term = Term(before=with_topic("t"), policies=refusing("t"))
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t")], topic_names=["t"])
    (told,) = await term.run_until(term.ask(DeleteTopics(config()), request, version=version))
    assert told == {"t": expected}
    assert term.loop.image.deletions == frozenset()
    explained = any("refused by policy" in record.getMessage() for record in caplog.records)
    assert explained is (expected != VIOLATION)


async def test_a_topic_deleted_by_name_and_by_id_is_refused_in_both() -> None:
    """And the answer to the id names it: who may describe it may know."""
    term = Term(before=with_topic("t"), policies=refusing("t"))
    request = DeleteTopicsRequest([DeleteTopicState("t"), DeleteTopicState(None, ID)], [], 0)
    api = DeleteTopics(config())
    (told,) = await term.run_until(term.ask(api, request, version=6))
    assert set(told.values()) == {VIOLATION}
    decision = api.decide(context(6), request, term.loop.image, {})
    outcomes = {
        d.element: type(d.outcome)(ErrorCode.POLICY_VIOLATION, "no") for d in decision.elements
    }
    answer = api.answer(context(6), request, outcomes, term.loop.image, frozenset())
    assert [(each.name, each.error_message) for each in answer.responses] == [("t", "no")] * 2


def test_the_cluster_is_shown_as_it_is() -> None:
    """Internal topics and those marked for deletion can be left out."""
    marked = with_topic("__consumer_offsets", before=with_topic("gone", before=with_topic("t")))
    marked = marked.replay([DeletionMarkerRecord("gone")])
    cluster = ImageClusterState(marked)
    named = {
        (internal, deleted): set(cluster.topics(internal, deleted))
        for internal, deleted in itertools.product((False, True), repeat=2)
    }
    assert named == {
        (False, False): {"t"},
        (False, True): {"t", "gone"},
        (True, False): {"t", "__consumer_offsets"},
        (True, True): {"t", "gone", "__consumer_offsets"},
    }
    gone, offsets = cluster.topic_state("gone"), cluster.topic_state("__consumer_offsets")
    assert gone is not None
    assert offsets is not None
    assert (gone.marked_for_deletion, gone.internal) == (True, False)
    assert (offsets.marked_for_deletion, offsets.internal) == (False, True)
    assert cluster.topic_state("nothing") is None
    assert cluster.cluster_size() == 3
    assert ImageClusterState(type(marked)(brokers=Map())).cluster_size() == 0
