"""Policies are evaluated between decision and commit, for one request after another."""

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
from bridgehead.kafka_wire.messages.create_topics import CreatableReplicaAssignment
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from bridgehead.policy import (
    ClusterState,
    KafkaPrincipal,
    PolicyViolationException,
    RequestedTopicState,
    TopicState,
)
from bridgehead.policy.limits import TopicLimits
from chaos.bugs.decisions import skip_policy_on_retry
from cluster_model.configs.broker_configs import BrokerConfig
from cluster_model.principal import KafkaPrincipal as Principal
from cluster_model.records import ConfigRecord, ConfigResource, DeletionMarkerRecord, Record
from controller.apis import policy_check
from controller.apis.alter_partition_reassignments import AlterPartitionReassignments
from controller.apis.base import Results
from controller.apis.create_partitions import CreatePartitions
from controller.apis.delete_topics import DeleteTopics
from controller.apis.incremental_alter_configs import IncrementalAlterConfigs
from controller.apis.policy_check import ImageClusterState
from controller.loop import policy_evaluation
from controller.store.outcomes import RequestOutcomes
from envelope.messages import RequestIdentity
from tests.unit.controller.loop_bench import MemoryStore, Term
from tests.unit.controller.topic_decisions import (
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
INCREMENTAL = IncrementalAlterConfigs(BrokerConfig.from_properties({"broker.id": "1"}))


class RecordingPolicies:
    """Policies that record their checks. They reject a check if `judge` returns a text."""

    def __init__(self, judge: Callable[[Any, ClusterState], str | None] | None = None) -> None:
        self.checks: list[Any] = []
        self.judge = judge or (lambda check, cluster: None)
        self.go = asyncio.Event()
        self.go.set()

    async def evaluate(self, check: Any, cluster: ClusterState) -> ApiError | None:
        self.checks.append(check)
        await self.go.wait()
        text = self.judge(check, cluster)
        return ApiError(ErrorCode.POLICY_VIOLATION, text) if text else None


def rejecting(*names: str) -> RecordingPolicies:
    return RecordingPolicies(lambda check, _: "no" if check.topic in names else None)


def at_most(count: int) -> RecordingPolicies:
    """A policy that limits the number of topics in the cluster."""

    def judge(check: Any, cluster: ClusterState) -> str | None:
        return "full" if len(cluster.topics(True, True)) >= count else None

    return RecordingPolicies(judge)


def created(*names: str, **fields: Any) -> Any:
    return creation(*(topic(name) for name in names), timeout_ms=0, **fields)


async def test_a_violation_rejects_its_own_topic_only() -> None:
    term = Term(policies=rejecting("b"))
    (errors,) = await term.run_until(term.submit(create_topics(), created("a", "b", "c")))
    assert errors == {"a": "REQUEST_TIMED_OUT", "b": VIOLATION, "c": "REQUEST_TIMED_OUT"}
    assert set(term.loop.image.topics) == {"a", "c"}


async def test_a_dry_run_is_checked_and_writes_nothing() -> None:
    """KIP-108: validate_only reports violations."""
    term = Term(policies=rejecting("b"))
    (errors,) = await term.run_until(
        term.submit(create_topics(), created("a", "b", validate_only=True))
    )
    assert errors == {"a": NONE, "b": VIOLATION}
    assert term.store.multis == []


async def test_without_a_policy_no_check_is_built() -> None:
    """Building a check takes time if a topic has many partitions."""
    decision = create_topics().decide(context(7), created("a"), image(), {})
    (decided,) = decision.elements
    term = Term()
    assert term.loop._policies.judge(None, decision) is decision  # type: ignore[arg-type]
    assert decided.policy_check is not None


async def test_a_topic_that_kafka_rejects_never_reaches_the_policy() -> None:
    """KIP-108: the built-in validation comes first."""
    policies = rejecting()
    term = Term(policies=policies)
    await term.run_until(term.submit(create_topics(), created("bad name", "a", "a", "good")))
    assert [check.topic for check in policies.checks] == ["good"]


async def test_the_second_decision_places_topics_as_the_policy_saw_them() -> None:
    policies = rejecting()
    term = Term(policies=policies)
    request = creation(topic("a", 7, 2), topic("b", 5, 3), timeout_ms=0)
    await term.run_until(term.submit(create_topics(), request))
    assert [check.topic for check in policies.checks] == ["a", "b"]
    for check in policies.checks:
        written = term.loop.image.topics[check.topic].assignment
        assert check.requested_state.replicas_assignments == dict(enumerate(written))
    ids = {decided_topic.topic_id for decided_topic in term.loop.image.topics.values()}
    assert len(ids) == 2


async def test_a_limit_holds_over_concurrent_requests() -> None:
    """Each request is checked against the image that includes the previous request."""
    term = Term(policies=at_most(3))
    replies = [term.submit(create_topics(), created(f"t{n}")) for n in range(10)]
    errors = [next(iter(reply.values())) for reply in await term.run_until(*replies)]
    assert errors.count(VIOLATION) == 7
    assert len(term.loop.image.topics) == 3


async def test_topics_are_checked_in_sequence_against_the_cluster_before_the_request() -> None:
    """KIP-108: topics are checked in sequence.

    KIP-201: ClusterState shows the cluster "before the request takes effect".
    """
    seen: list[tuple[str, str, set[str]]] = []
    policies = RecordingPolicies()

    async def evaluate(check: Any, cluster: ClusterState) -> None:
        seen.append(("begins", check.topic, set(cluster.topics(True, True))))
        await asyncio.sleep(0)
        seen.append(("ends", check.topic, set(cluster.topics(True, True))))

    policies.evaluate = evaluate  # type: ignore[method-assign]
    term = Term(before=with_topic("before"), policies=policies)
    await term.run_until(term.submit(create_topics(), created("c", "a", "b")))
    steps = [(step, name) for name in "cab" for step in ("begins", "ends")]
    assert seen == [(*step, {"before"}) for step in steps]
    await term.run_until(term.submit(create_topics(), created("d")))
    assert seen[-1] == ("ends", "d", {"before", "a", "b", "c"})


async def test_a_check_lists_the_accepted_changes_of_earlier_topics_in_its_request() -> None:
    """Without them, a policy could not see that the topics of a request together exceed a limit."""
    policies = rejecting("b")
    term = Term(before=with_topic("before"), policies=policies)
    await term.run_until(term.submit(create_topics(), created("a", "b", "c")))
    seen = {check.topic: [one.topic for one in check.accepted_before] for check in policies.checks}
    assert seen == {"a": [], "b": ["a"], "c": ["a"]}
    await term.run_until(term.submit(create_topics(), created("d")))
    assert policies.checks[-1].accepted_before == ()


async def test_one_request_cannot_exceed_a_limit_on_topics() -> None:
    policy = TopicLimits()
    policy.configure({"bridgehead.policy.limits.topics.max": "3"})

    def judge(check: Any, cluster: ClusterState) -> str | None:
        try:
            policy.validate_create_topic(check, cluster)
        except PolicyViolationException as violation:
            return str(violation)
        return None

    term = Term(before=with_topic("before"), policies=RecordingPolicies(judge))
    (errors,) = await term.run_until(term.submit(create_topics(), created("a", "b", "c", "d")))
    assert [errors[name] for name in "cd"] == [VIOLATION, VIOLATION]
    assert set(term.loop.image.topics) == {"before", "a", "b"}


async def test_a_slow_policy_delays_its_own_request_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After TURN_S the next request is evaluated. Requests without checks never wait."""
    monkeypatch.setattr(policy_evaluation, "TURN_S", 0.01)
    slow = RecordingPolicies()
    go = asyncio.Event()

    async def evaluate(check: Any, cluster: ClusterState) -> ApiError | None:
        slow.checks.append(check.topic)
        if check.topic == "slow":
            await go.wait()
        return None

    slow.evaluate = evaluate  # type: ignore[method-assign]
    term = Term(policies=slow)
    stuck = term.submit(create_topics(), created("slow"))
    invalid, quick = (term.submit(create_topics(), created(name)) for name in ("bad name", "quick"))
    await term.run_until(invalid, quick)
    assert not stuck.done()
    go.set()
    await term.run_until(stuck)
    assert set(term.loop.image.topics) == {"quick", "slow"}


async def test_a_check_is_repeated_after_an_unexpected_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the error would block every later request of the term that needs a policy."""
    monkeypatch.setattr(policy_evaluation, "_RETRY_S", 0.0)
    errors = [RuntimeError("can't start new thread")]

    def judge(_check: Any, _cluster: ClusterState) -> str | None:
        if errors:
            raise errors.pop()
        return None

    term = Term(policies=RecordingPolicies(judge))
    async with asyncio.timeout(10):
        (reply,) = await term.run_until(term.submit(create_topics(), created("a")))
    assert reply == {"a": "REQUEST_TIMED_OUT"}  # the timeout is 0 ms
    assert set(term.loop.image.topics) == {"a"}


async def test_requests_that_wait_for_a_policy_get_not_controller_when_the_term_ends() -> None:
    policies = rejecting()
    policies.go.clear()
    term = Term(policies=policies)
    replies = [term.submit(create_topics(), created(name)) for name in "abc"]
    running = asyncio.create_task(term.loop.run())
    while not policies.checks:
        await asyncio.sleep(0)
    running.cancel()
    term.loop.end()
    codes = [reply.result().error_code for reply in replies]
    assert codes == [ErrorCode.NOT_CONTROLLER] * 3
    policies.go.set()
    for _ in range(20):  # turns of the event loop, not time
        await asyncio.sleep(0)
    assert len(policies.checks) == 1
    assert term.store.multis == []


async def test_a_request_that_a_policy_delays_past_its_deadline_is_not_executed() -> None:
    policies = rejecting()
    policies.go.clear()
    term = Term(policies=policies)
    reply = term.submit(create_topics(), created("a", "b"), deadline_s=1001)
    running = asyncio.create_task(term.loop.run())
    while not policies.checks:
        await asyncio.sleep(0)
    term.now_s = 1002
    policies.go.set()
    await asyncio.wait((reply,), timeout=10)
    running.cancel()
    assert reply.result().error_code == ErrorCode.REQUEST_TIMED_OUT
    assert term.store.multis == []


@pytest.mark.parametrize("seeded", [False, True])
async def test_a_resend_is_checked_again(seeded: bool) -> None:
    """The seeded bug skip_policy_on_retry omits this check."""
    term, api = Term(policies=rejecting("b")), create_topics()
    bug = skip_policy_on_retry(api, resent={"r"})
    (errors,) = await term.run_until(term.submit(bug if seeded else api, created("b")))
    assert (errors == {"b": VIOLATION}) is not seeded


async def test_authorization_is_logged_once_although_the_request_is_decided_twice() -> None:
    logged: list[str] = []

    def bind(_asker: Any, _acls: Any) -> Any:
        def authorize(operation: str, kind: str, name: str, **log: Any) -> bool:
            if log.get("log_if_allowed", True):
                logged.append(f"{operation} {kind} {name}")
            return True

        return authorize

    for policies in (None, rejecting()):
        term = Term(policies=policies)
        term.loop._callbacks = replace(term.loop._callbacks, bind_authorize=bind)
        await term.run_until(term.submit(create_topics(), created("a")))
    assert logged == ["CREATE CLUSTER kafka-cluster"] * 2


async def test_a_committed_element_is_not_checked_again() -> None:
    policies, store = rejecting("a", "b"), MemoryStore()
    term = Term(store, before=with_topic("a"), policies=policies)
    done = create_topics().decide(context(7), created("a"), image(), {}).elements[0]
    identity = RequestIdentity(1, "life", 1)
    term.loop.outcomes.add(1, [RequestOutcomes(identity, "r", {"a": done.outcome})])
    (errors,) = await term.run_until(term.submit(create_topics(), created("a", "b"), sequence=1))
    assert errors == {"a": "REQUEST_TIMED_OUT", "b": VIOLATION}
    assert [check.topic for check in policies.checks] == ["b"]


async def test_a_policy_sees_added_partitions_and_the_principal() -> None:
    """The check shows the state after the alteration. ClusterState shows the state before it."""
    before: list[Any] = []

    def judge(check: Any, cluster: ClusterState) -> str | None:
        before.append(cluster.topic_state("t"))
        return "no" if check.requested_state.num_partitions > 2 else None

    policies = RecordingPolicies(judge)
    term = Term(policies=policies)
    await term.run_until(term.submit(create_topics(), creation(topic("t", 1, 2), timeout_ms=0)))
    policies.checks.clear()
    before.clear()
    grow = [
        CreatePartitionsTopic("t", 2, None),
        CreatePartitionsTopic("t", 3, [CreatePartitionsAssignment([2, 3])]),
    ]
    for request, expected in zip(grow, ("REQUEST_TIMED_OUT", VIOLATION), strict=True):
        (errors,) = await term.run_until(
            term.submit(
                CreatePartitions(),
                CreatePartitionsRequest([request], 0, request.assignments is not None),
                principal=Principal("User", "alice"),
            )
        )
        assert errors == {"t": expected}
    generated = [q.requested_state.generated_replica_assignments for q in policies.checks]
    assert generated == [True, False]
    assert {q.principal for q in policies.checks} == {KafkaPrincipal("User", "alice")}
    assert [state.num_partitions for state in before] == [1, 2]


def marked_for_deletion(name: str) -> Any:
    """Return an image with a topic of two partitions that have configs and a deletion marker."""
    cluster = with_topic(name, ((3, 1), (2, 3, 1)))
    records: list[Record] = [
        ConfigRecord(ConfigResource("topics", name), {"flush.ms": "7"}),
        DeletionMarkerRecord(name),
    ]
    return cluster.replay(records)


@pytest.mark.parametrize(("name", "internal"), [("t", False), ("__consumer_offsets", True)])
def test_the_requested_state_has_every_field_of_topic_state(name: str, internal: bool) -> None:
    """KIP-201: RequestedTopicState extends TopicState. The values differ from every default."""
    cluster = marked_for_deletion(name)
    principal = Principal("Group", "ops")
    assignment = ((3, 1), (2, 3, 1), (1,))
    grown = policy_check.alteration(principal, name, cluster, assignment, False)
    replicas = dict(enumerate(assignment))
    assert grown.requested_state == RequestedTopicState(
        3, 2, replicas, {"flush.ms": "7"}, True, internal, False
    )
    altered = policy_check.topic_configs(principal, name, cluster, {"a": "1"}, {"a": "1"})
    assert altered.requested_state == RequestedTopicState(
        2, 2, {0: (3, 1), 1: (2, 3, 1)}, {"a": "1"}, True, internal, True
    )
    for generated in (True, False):
        new = policy_check.creation(principal, name, assignment, {"b": "2"}, generated)
        assert new.requested_state == RequestedTopicState(
            3, 2, replicas, {"b": "2"}, False, internal, generated
        )
    empty = policy_check.creation(principal, name, (), {}, True).requested_state
    assert (empty.num_partitions, empty.replication_factor) == (0, 0)
    state = ImageClusterState(cluster).topic_state(name)
    assert state == TopicState(2, 2, {0: (3, 1), 1: (2, 3, 1)}, {"flush.ms": "7"}, True, internal)


@pytest.mark.parametrize("generated", [True, False])
async def test_a_policy_sees_whether_a_new_topics_replicas_were_generated(generated: bool) -> None:
    policies = rejecting()
    term = Term(policies=policies)
    new = topic("t", 2, 2)
    if not generated:
        placed = [CreatableReplicaAssignment(0, [3, 1]), CreatableReplicaAssignment(1, [2, 3])]
        new = replace(topic("t", -1, -1), assignments=placed)
    await term.run_until(term.submit(create_topics(), creation(new, timeout_ms=0)))
    (seen,) = policies.checks
    assert seen.requested_state.generated_replica_assignments is generated
    assert seen.requested_state.marked_for_deletion is False
    written = term.loop.image.topics["t"].assignment
    assert seen.requested_state.replicas_assignments == dict(enumerate(written))


async def test_a_check_that_changed_is_repeated_although_the_last_one_did_not() -> None:
    """Two brokers join while the policy decides, and get replicas of the first topic only."""
    policies = RecordingPolicies()
    policies.go.clear()
    term = Term(policies=policies)
    placed = replace(topic("b", -1, -1), assignments=[CreatableReplicaAssignment(0, [3, 1])])
    request = creation(topic("a", 8, 2), placed, timeout_ms=0)
    running = asyncio.create_task(term.run_until(term.submit(create_topics(), request)))
    while not policies.checks:
        await asyncio.sleep(0)
    term.loop.image = image(None, None, None, None, None)
    policies.go.set()
    await running
    written = term.loop.image.topics["a"].assignment
    assert {broker for replicas in written for broker in replicas} == {1, 2, 3, 4, 5}
    (*_, last) = [check for check in policies.checks if check.topic == "a"]
    assert last.requested_state.replicas_assignments == dict(enumerate(written))


async def test_each_method_gets_the_topic_and_the_principal() -> None:
    """KIP-201 AbstractRequestMetadata. Each request names two topics."""
    policies = rejecting()
    term = Term(policies=policies)
    principal = Principal("Group", "ops")
    resources = [AlterConfigsResource(2, name, []) for name in "tu"]
    partitions = [ReassignablePartition(0, [3, 1])]
    requests: list[tuple[Any, Any]] = [
        (create_topics(), creation(topic("t", 1, 2), topic("u", 1, 2), timeout_ms=0)),
        (INCREMENTAL, IncrementalAlterConfigsRequest(resources)),
        (
            CreatePartitions(),
            CreatePartitionsRequest([CreatePartitionsTopic(n, 2, None) for n in "tu"]),
        ),
        (
            AlterPartitionReassignments(),
            AlterPartitionReassignmentsRequest(0, [ReassignableTopic(n, partitions) for n in "tu"]),
        ),
        (DeleteTopics(config()), DeleteTopicsRequest([DeleteTopicState(n) for n in "tu"], [], 0)),
    ]
    for api, request in requests:
        policies.checks.clear()
        await term.run_until(term.submit(api, request, version=6, principal=principal))
        seen = [(check.topic, check.principal) for check in policies.checks]
        assert seen == [(name, KafkaPrincipal("Group", "ops")) for name in "tu"], type(api)


async def test_a_reassignment_is_one_check_per_topic() -> None:
    policies = rejecting()
    term = Term(policies=policies)
    both = creation(topic("t", 2, 2), topic("u", 2, 2), timeout_ms=0)
    await term.run_until(term.submit(create_topics(), both))
    policies.checks.clear()
    policies.judge = rejecting("t").judge
    two = term.loop.image
    request = AlterPartitionReassignmentsRequest(
        0,
        [
            ReassignableTopic(name, [ReassignablePartition(p, [3, 1]) for p in (0, 1)])
            for name in "tu"
        ],
    )
    (errors,) = await term.run_until(term.submit(AlterPartitionReassignments(), request))
    assert errors == {"t:0": VIOLATION, "t:1": VIOLATION, "u:0": NONE, "u:1": NONE}
    (request, _) = policies.checks
    assert request.requested_state.replicas_assignments == {0: (3, 1), 1: (3, 1)}
    assert not request.requested_state.generated_replica_assignments
    assert term.loop.image.topics["t"] == two.topics["t"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [*((v, "UNKNOWN_SERVER_ERROR") for v in range(5)), (5, VIOLATION), (6, VIOLATION)],
)
async def test_a_rejected_deletion_has_an_error_code_of_its_version(
    version: int, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Versions before 5 lack POLICY_VIOLATION, so the log says that a policy rejects the topic."""
    caplog.set_level("INFO")
    term = Term(before=with_topic("t"), policies=rejecting("t"))
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t")], topic_names=["t"])
    (errors,) = await term.run_until(term.submit(DeleteTopics(config()), request, version=version))
    assert errors == {"t": expected}
    assert term.loop.image.deletions == frozenset()
    explained = any("a policy rejects t" in record.getMessage() for record in caplog.records)
    assert explained is (expected != VIOLATION)


async def test_a_topic_deleted_by_name_and_by_id_is_rejected_in_both_entries() -> None:
    term = Term(before=with_topic("t"), policies=rejecting("t"))
    request = DeleteTopicsRequest([DeleteTopicState("t"), DeleteTopicState(None, ID)], [], 0)
    api = DeleteTopics(config())
    (errors,) = await term.run_until(term.submit(api, request, version=6))
    assert set(errors.values()) == {VIOLATION}
    decision = api.decide(context(6), request, term.loop.image, {})
    outcomes = {
        d.element: type(d.outcome)(ErrorCode.POLICY_VIOLATION, "no") for d in decision.elements
    }
    reply = api.response(context(6), request, Results(outcomes, term.loop.image))
    assert [(response.name, response.error_message) for response in reply.responses] == [
        ("t", "no")
    ] * 2


def test_cluster_state_shows_the_image() -> None:
    """Callers choose whether to get internal topics and topics marked for deletion."""
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
