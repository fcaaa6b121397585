"""CreatePartitions where recorded answers do not reach: what is refused, resends, dry runs."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from cluster_model.records import (
    AssignmentRecord,
    DeletionMarkerRecord,
    PartitionRecord,
)
from controller.apis.base import (
    DONE,
    Decided,
    Outcome,
    WaitFor,
)
from controller.apis.create_partitions import CreatePartitions
from controller.apis.topic_assignments import PARTITIONS_IN_ONE_MULTI
from tests.unit.topic_decisions import (
    context,
    image,
    only,
    outcomes,
    replayed,
    with_topic,
    without,
)


def growth(name: str, count: int, **fields: Any) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name, count, None)], timeout_ms=9, **fields
    )


def test_new_partitions_are_added_behind_the_old_ones() -> None:
    """The old assignment stays; each new partition has a leader of its own."""
    before = with_topic("t", ((2, 3),))
    decision = CreatePartitions().decide(context(3), growth("t", 3), before, {})
    grown, *states = only(decision).records
    assert isinstance(grown, AssignmentRecord)
    assert grown.assignment[0] == (2, 3)
    assert [len(set(replicas)) for replicas in grown.assignment] == [2, 2, 2]
    assert [s.partition for s in states if isinstance(s, PartitionRecord)] == [1, 2]
    assert decision.wait.what is WaitFor.LEADERS
    assert replayed(before, decision).topics["t"].states[2].leader in (1, 2, 3)


def test_the_states_of_many_new_partitions_follow() -> None:
    """As at creation."""
    many = PARTITIONS_IN_ONE_MULTI + 2
    decided = only(CreatePartitions().decide(context(3), growth("t", many), with_topic("t"), {}))
    assert [type(record) for record in decided.records] == [AssignmentRecord]
    assert len(decided.following) == many - 1


REFUSED = {
    "being deleted": (
        with_topic("t").replay([DeletionMarkerRecord("t")]),
        2,
        (17, "The topic is queued for deletion."),
    ),
    "being reassigned": (
        with_topic("t").replay([AssignmentRecord("t", ((1, 2),), {0: (2,)}, {})]),
        2,
        (60, "A partition reassignment is in progress for the topic 't'."),
    ),
    "more replicas than brokers": (
        with_topic("t", ((1, 2),), image(None)),
        2,
        (38, "Replication factor: 2 larger than available brokers: 1."),
    ),
    "a topic without replicas": (
        with_topic("t", ((),)),
        2,
        (38, "Replication factor must be larger than 0."),
    ),
    "a topic without partitions": (
        with_topic("t", ()),
        2,
        (38, "Replication factor must be larger than 0."),
    ),
    "mixed racks": (with_topic("t", ((1,),), image("a", None)), 2, (-1, None)),
    "two billion": (
        with_topic("t"),
        2**31 - 1,
        (37, "A topic of 2147483647 partitions does not fit into its znode."),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_growth_is_refused(case: str) -> None:
    """With Kafka's code and text; nothing is written and nothing fails."""
    before, count, expected = REFUSED[case]
    decided = only(CreatePartitions().decide(context(3), growth("t", count), before, {}))
    assert (decided.outcome.error, decided.outcome.message) == expected
    assert not decided.records


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([[9, -1]], "9, -1"),
        ([[8, 1], [7, 8]], "8, 7"),
        ([[40, 9, 8, 7, 6]], "6, 9, 7, 40, 8"),
        ([[1, 2, 3, 9, 8]], "9, 8"),
    ],
)
def test_unknown_brokers_are_named_in_the_order_of_kafkas_set(
    given: list[list[int]], named: str
) -> None:
    """Up to four as they came, more by their hashes, also once the known ones are taken out."""
    asked = growth("t", 2)
    asked.topics[0].assignments = [CreatePartitionsAssignment(each) for each in given]
    outcome = only(CreatePartitions().decide(context(3), asked, with_topic("t"), {})).outcome
    assert outcome == Outcome(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"Unknown broker(s) in replica assignment: {named}.",
    )


def test_growth_without_the_right_does_not_say_whether_the_topic_exists() -> None:
    """29 comes before everything else that could be wrong with a topic."""
    asks = context(3, without("ALTER TOPIC"))
    for before in (with_topic("t"), image()):
        outcome = only(CreatePartitions().decide(asks, growth("t", 2), before, {})).outcome
        assert outcome == Outcome(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed."
        )


def test_growth_that_was_committed_before_is_not_refused_as_unnecessary() -> None:
    """A request that comes again finds its partitions there and succeeds."""
    api, before = CreatePartitions(), with_topic("t", ((1,), (2,)))
    decision = api.decide(context(3), growth("t", 2), before, {"t": DONE})
    assert not decision.elements
    assert set(decision.wait.topics) == {"t"}
    (result,) = api.answer(context(3), growth("t", 2), {"t": DONE}, before, frozenset()).results
    assert result.error_code == 0


def test_a_dry_growth_writes_nothing_and_does_not_wait() -> None:
    """Every check runs all the same."""
    decision = CreatePartitions().decide(
        context(3), growth("t", 2, validate_only=True), with_topic("t"), {}
    )
    assert only(decision) == Decided("t", DONE)
    assert decision.wait.what is WaitFor.NOTHING


@pytest.mark.parametrize("name", ["", ".", "..", "a/", "a//b", "a\0"])
def test_a_name_that_has_no_path_in_zookeeper_fails_the_whole_request(name: str) -> None:
    """As Kafka, which looks for all of them first; a name that comes twice is not looked for."""
    asked = [CreatePartitionsTopic("t", 2, None), CreatePartitionsTopic(name, 2, None)]
    request = CreatePartitionsRequest(topics=asked, timeout_ms=9)
    fault = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
    decided = outcomes(CreatePartitions().decide(context(3), request, with_topic("t"), {}))
    assert decided == {"t": fault, name: fault}
    twice = CreatePartitionsRequest(topics=[*asked, asked[0]], timeout_ms=9)
    answer = CreatePartitions().answer(context(3), twice, decided, with_topic("t"), frozenset())
    assert [(r.name, r.error_code) for r in answer.results] == [("t", -1), (name, -1), ("t", -1)]
    request.topics.append(CreatePartitionsTopic(name, 2, None))
    decided = outcomes(CreatePartitions().decide(context(3), request, with_topic("t"), {}))
    assert decided["t"].succeeded
    illegal = CreatePartitionsRequest(topics=[CreatePartitionsTopic("bad name", 2, None)])
    (outcome,) = outcomes(
        CreatePartitions().decide(context(3), illegal, with_topic("t"), {})
    ).values()
    assert outcome.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
