"""Requests that policies check during a commit share the next commit, and limits still hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from bridgehead.policy import ClusterState, PolicyViolationException
from bridgehead.policy.limits import TopicLimits
from cluster_model.image import MetadataImage
from cluster_model.records import ConfigRecord, ConfigResource
from controller.apis.base import Decision
from controller.apis.create_acls import CreateAcls
from controller.apis.create_partitions import CreatePartitions
from controller.loop import policy_evaluation
from controller.loop.policy_evaluation import PolicyEvaluation
from controller.requests.pending_request import PendingRequest
from controller.store.port import Committed, ContentConflictError, Fence
from envelope.messages import EnvelopeReply
from node.assembly.policy_runner import SERIES_S
from tests.unit.controller.loop_bench import MemoryStore, Term
from tests.unit.controller.topic_decisions import (
    create_topics,
    creation,
    image,
    topic,
    with_topic,
)

# With a timeout of 0 ms, a topic that is created gets REQUEST_TIMED_OUT.
CREATED, VIOLATION = "REQUEST_TIMED_OUT", "POLICY_VIOLATION"


class BlockedStore(MemoryStore):
    """A store whose commits wait for `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.is_committing = asyncio.Event()

    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        if effects:
            self.is_committing.set()
            await self.go.wait()
        return await super().commit_pipelined(fence, effects)


class Limits:
    """TopicLimits with a maximum number of topics. `checked` lists the checks and their results."""

    def __init__(self, topics_max: int) -> None:
        self.policy = TopicLimits()
        self.policy.configure({"bridgehead.policy.limits.topics.max": str(topics_max)})
        self.checked: list[tuple[str, int, bool]] = []  # topic, number of topics before, accepted
        self.on_check: Callable[[str], None] = lambda name: None

    async def evaluate(self, check: Any, cluster: ClusterState) -> ApiError | None:
        self.on_check(check.topic)
        text = None
        try:
            self.policy.validate_create_topic(check, cluster)
        except PolicyViolationException as violation:
            text = str(violation)
        before = len(cluster.topics(True, True))
        self.checked.append((check.topic, before, text is None))
        return None if text is None else ApiError(ErrorCode.POLICY_VIOLATION, text)


def submit(term: Term, *names: str, **fields: Any) -> list[asyncio.Future[EnvelopeReply]]:
    return [
        term.submit(create_topics(), creation(topic(name), timeout_ms=0), **fields)
        for name in names
    ]


async def until(is_met: Callable[[], bool]) -> None:
    """Wait for a condition for some turns of the event loop."""
    for _ in range(2_000):
        if is_met():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition was not met")


async def run_blocked(
    term: Term, store: BlockedStore, limits: Limits, count: int
) -> list[dict[str, str]]:
    """Create `count` topics. During the commit of t0, the policy checks all others."""
    replies: list[asyncio.Future[EnvelopeReply]] = []

    def submit_the_rest(name: str) -> None:
        if name == "t0":
            replies.extend(submit(term, *(f"t{n}" for n in range(1, count))))

    limits.on_check = submit_the_rest
    replies.extend(submit(term, "t0"))
    running = asyncio.create_task(term.loop.run())
    await store.is_committing.wait()
    await until(lambda: len(limits.checked) == count and not len(term.loop._policies))
    store.go.set()
    await asyncio.wait(replies, timeout=10)
    running.cancel()
    return [json.loads(reply.result().response_data or b"{}") for reply in replies]


async def test_requests_that_are_checked_during_a_commit_share_the_next_one() -> None:
    """Each check shows the topics of the requests before it, committed or not."""
    store, limits = BlockedStore(), Limits(100)
    term = Term(store, policies=limits)
    await run_blocked(term, store, limits, 10)
    assert limits.checked == [(f"t{n}", n, True) for n in range(10)]
    assert len(store.multis) == 2
    assert len(term.loop.image.topics) == 10


@pytest.mark.parametrize("sees_uncommitted", [True, False])
async def test_a_limit_holds_for_requests_that_share_a_commit(
    sees_uncommitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seeded bug shows only committed topics to the policy, which then accepts too many."""
    store, limits = BlockedStore(), Limits(3)
    term = Term(store, policies=limits)
    if not sees_uncommitted:
        monkeypatch.setattr(PolicyEvaluation, "_after_expected", lambda _: term.loop.image)
    errors = [error for (error,) in map(dict.values, await run_blocked(term, store, limits, 10))]
    if sees_uncommitted:
        assert errors == [CREATED] * 3 + [VIOLATION] * 7
    assert (len(term.loop.image.topics) == 3) is sees_uncommitted


@pytest.mark.parametrize("checks_again", [True, False])
async def test_requests_after_a_failed_commit_are_checked_again(
    checks_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy rejected t3 because of t0, which cannot be created.

    The seeded bug keeps this rejection.
    """
    if not checks_again:
        monkeypatch.setattr(PolicyEvaluation, "check_again", lambda *_: None)
    store, limits = BlockedStore(), Limits(3)
    store.znodes["/brokers/topics/t0"] = b"created outside"
    term = Term(store, policies=limits)
    errors = await run_blocked(term, store, limits, 4)
    assert errors[0] == {"t0": "TOPIC_ALREADY_EXISTS"}
    assert errors[1:3] == [{"t1": CREATED}, {"t2": CREATED}]
    assert (errors[3] == {"t3": CREATED}) is checks_again


@pytest.mark.parametrize("compares", [True, False])
async def test_requests_after_one_that_is_decided_differently_are_checked_again(
    compares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy accepts t1, but the deadline of t1 has passed when the loop decides it."""
    if not compares:
        monkeypatch.setattr(PolicyEvaluation, "decided", lambda *_: None)
    store, limits = BlockedStore(), Limits(2)
    term = Term(store, policies=limits)

    def pass_time(name: str) -> None:
        term.now_s = 1002.0 if name == "t2" else term.now_s

    limits.on_check = pass_time
    (first,), (late,) = submit(term, "t0"), submit(term, "t1", deadline_s=1001.0)
    (last,) = submit(term, "t2")
    running = asyncio.create_task(term.run_until(first, late, last))
    await store.is_committing.wait()
    await until(lambda: len(limits.checked) == 3)
    store.go.set()
    errors = await running
    assert late.result().error_code == ErrorCode.REQUEST_TIMED_OUT
    assert limits.checked[:3] == [("t0", 0, True), ("t1", 1, True), ("t2", 2, False)]
    assert (errors[2] == {"t2": CREATED}) is compares
    assert limits.checked[3:] == ([("t2", 1, True)] if compares else [])


class SlowStore(MemoryStore):
    """A store whose commits take so long that policies check all waiting requests meanwhile."""

    async def commit_pipelined(
        self, fence: Fence, effects: Sequence[Sequence[bytes]]
    ) -> tuple[list[Committed], ContentConflictError | None]:
        for _ in range(500 if effects else 0):
            await asyncio.sleep(0)
        return await super().commit_pipelined(fence, effects)


async def test_unexpected_decisions_do_not_multiply_checks() -> None:
    """A quota rejects 19 of 40 requests, each after its check. At most 120 checks are made.

    If all later requests were checked again after each rejection, there would be over 400.
    """
    limits = Limits(100)
    quota = ConfigRecord(ConfigResource("clients", "c"), {"controller_mutation_rate": "0.001"})
    term = Term(SlowStore(), before=image().replay([quota]), policies=limits)
    replies = [
        reply
        for n in range(20)
        for client_id in ("c", "other")
        for reply in submit(term, f"{client_id}{n}", client_id=client_id)
    ]
    errors = await term.run_until(*replies)
    assert sum("THROTTLING_QUOTA_EXCEEDED" in error.values() for error in errors) == 19
    assert len(limits.checked) <= 120


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> Callable[[Term], list[str]]:
    """Return a function that records a term's decisions in a list, and returns the list."""

    def of(term: Term) -> list[str]:
        decided: list[str] = []
        propose = term.loop._propose

        async def record(pending: PendingRequest, before: MetadataImage) -> Decision:
            decided.append(pending.request_id)
            return await propose(pending, before)

        monkeypatch.setattr(term.loop._policies, "_decide", record)
        return decided

    return of


async def test_rejections_do_not_multiply_decisions(
    decisions: Callable[[Term], list[str]],
) -> None:
    """A rejection ends a series of checks. Later requests of the series were decided in vain.

    100 requests need 100 decisions, and at most 200 more are in vain. If each series had 64 checks,
    over 4,000 would be in vain.
    """
    limits = Limits(0)
    term = Term(policies=limits)
    decided = decisions(term)
    errors = await term.run_until(*submit(term, *(f"t{n}" for n in range(100))))
    assert all(VIOLATION in error.values() for error in errors)
    assert len(limits.checked) == 100
    assert len(decided) <= 300


async def test_a_request_is_not_decided_again_for_each_of_its_checks(
    decisions: Callable[[Term], list[str]],
) -> None:
    """Each rejection ends a series. A new decision for every series would take quadratic time."""
    limits = Limits(0)
    term = Term(policies=limits)
    decided = decisions(term)
    many = creation(*(topic(f"t{n}") for n in range(100)), timeout_ms=0)
    (errors,) = await term.run_until(term.submit(create_topics(), many))
    assert list(errors.values()) == [VIOLATION] * 100
    assert len(limits.checked) == 100
    assert len(decided) == 1


async def test_a_check_that_ends_during_a_commit_does_not_end_its_request() -> None:
    """The commit belongs to another request, which no policy checks."""
    store, limits = BlockedStore(), Limits(10)
    term = Term(store, policies=limits)
    acl = AclCreation(2, "orders", 3, "User:alice", "*", 3, 3)
    other = term.submit(CreateAcls(has_authorizer=True), CreateAclsRequest([acl]), version=3)
    (reply,) = submit(term, "t0")
    running = asyncio.create_task(term.run_until(other, reply))
    await store.is_committing.wait()
    await until(lambda: len(limits.checked) == 1)
    for _ in range(20):
        await asyncio.sleep(0)
    store.go.set()
    assert (await running)[1] == {"t0": CREATED}


async def test_the_results_of_a_slow_request_are_not_mixed_up_when_checks_are_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The creation of t0 fails while the policy slowly rejects a topic of the next request."""
    monkeypatch.setattr(policy_evaluation, "TURN_S", 0.05)
    store, limits = BlockedStore(), Limits(10)
    store.znodes["/brokers/topics/t0"] = b"created outside"
    term = Term(store, policies=limits)
    replies: list[asyncio.Future[EnvelopeReply]] = []
    check_quickly = limits.evaluate

    async def evaluate(check: Any, cluster: ClusterState) -> ApiError | None:
        if check.topic == "t0":
            both = creation(topic("good"), topic("bad"), timeout_ms=0)
            replies.append(term.submit(create_topics(), both))
        if check.topic != "bad":
            return await check_quickly(check, cluster)
        store.go.set()
        await replies[0]  # t0 has failed, so the checks are repeated.
        await asyncio.sleep(2 * policy_evaluation.TURN_S)
        return ApiError(ErrorCode.POLICY_VIOLATION, "bad")

    monkeypatch.setattr(limits, "evaluate", evaluate)
    replies.extend(submit(term, "t0"))
    running = asyncio.create_task(term.loop.run())
    await store.is_committing.wait()
    await until(lambda: len(replies) == 2)
    await asyncio.wait(replies, timeout=10)
    running.cancel()
    errors = json.loads(replies[1].result().response_data or b"{}")
    assert errors == {"good": CREATED, "bad": VIOLATION}


async def test_a_slow_result_belongs_to_its_element_if_an_earlier_series_checked_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first topic takes so long that the series ends; the second takes longer than TURN_S."""
    monkeypatch.setattr(policy_evaluation, "TURN_S", 0.05)
    limits = Limits(10)
    term = Term(policies=limits)
    checked: list[str] = []

    async def evaluate(check: Any, _: ClusterState) -> ApiError | None:
        checked.append(check.topic)
        if check.topic == "good":
            await asyncio.sleep(2 * SERIES_S)
            return None
        while term.loop._policies._line:  # until the request has lost its turn
            await asyncio.sleep(0)
        return ApiError(ErrorCode.POLICY_VIOLATION, "bad")

    monkeypatch.setattr(limits, "evaluate", evaluate)
    both = creation(topic("good"), topic("bad"), timeout_ms=0)
    (errors,) = await term.run_until(term.submit(create_topics(), both))
    assert errors == {"good": CREATED, "bad": VIOLATION}
    assert checked == ["good", "bad"]


async def test_a_slow_request_is_not_checked_further_after_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_evaluation, "TURN_S", 0.01)
    limits = Limits(10)
    term = Term(policies=limits)
    checked: list[str] = []

    async def evaluate(check: Any, _: ClusterState) -> ApiError | None:
        checked.append(check.topic)
        while term.loop._policies._line:  # until the request has lost its turn
            await asyncio.sleep(0)
        term.now_s = 1002.0
        return ApiError(ErrorCode.POLICY_VIOLATION, "ends the series")

    monkeypatch.setattr(limits, "evaluate", evaluate)
    three = creation(topic("a"), topic("b"), topic("c"), timeout_ms=0)
    reply = term.submit(create_topics(), three, deadline_s=1001.0)
    await term.run_until(reply)
    assert reply.result().error_code == ErrorCode.REQUEST_TIMED_OUT
    assert checked == ["a"]


async def test_checks_continue_after_a_checked_topic_has_disappeared() -> None:
    """Somebody deletes the znodes of a topic while a policy checks its new partitions."""
    limits = Limits(10)
    term = Term(before=with_topic("t"), policies=limits)

    async def evaluate(check: Any, _: ClusterState) -> None:
        if check.topic == "t":
            term.loop.image = image()  # reloaded

    limits.evaluate = evaluate  # type: ignore[assignment]
    grow = CreatePartitionsRequest([CreatePartitionsTopic("t", 2, None)], 0, False)
    replies = [term.submit(CreatePartitions(), grow), *submit(term, "other")]
    errors = await asyncio.wait_for(term.run_until(*replies), 10)
    assert errors == [{"t": "UNKNOWN_TOPIC_OR_PARTITION"}, {"other": CREATED}]


async def test_checks_continue_after_an_expected_topic_has_disappeared() -> None:
    """The policy has accepted new partitions of t. The topic vanishes before the loop decides."""
    store, limits = BlockedStore(), Limits(10)
    term = Term(store, before=with_topic("t"), policies=limits)
    grow = CreatePartitionsRequest([CreatePartitionsTopic("t", 2, None)], 0, False)
    replies: list[asyncio.Future[EnvelopeReply]] = []
    is_gone = asyncio.Event()

    async def reload() -> None:
        term.loop.image = image()
        is_gone.set()
        for _ in range(100):  # turns of the event loop, not time
            await asyncio.sleep(0)

    async def evaluate(check: Any, _: ClusterState) -> None:
        if check.topic == "first":
            replies.extend((term.submit(CreatePartitions(), grow), *submit(term, "other")))
        elif check.topic == "t":
            await asyncio.sleep(2 * SERIES_S)  # The next check is in another series.
        elif not is_gone.is_set():
            term.loop.schedule(reload)
            store.go.set()
            await is_gone.wait()

    limits.evaluate = evaluate  # type: ignore[assignment]
    (first,) = submit(term, "first")
    await asyncio.wait_for(term.run_until(first), 10)
    errors = await asyncio.wait_for(term.run_until(*replies), 10)
    assert errors == [{"t": "UNKNOWN_TOPIC_OR_PARTITION"}, {"other": CREATED}]
