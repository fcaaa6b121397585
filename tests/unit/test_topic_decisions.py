"""CreateTopics where recorded answers do not reach.

Rights, dry runs, timeouts, a request that comes again after a failover, topics too large for one
multi, and what a hostile client may ask for.
"""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
)
from cluster_model.records import (
    DeletionMarkerRecord,
    PartitionRecord,
    TopicRecord,
)
from controller.apis.base import (
    Outcome,
    WaitFor,
)
from controller.apis.create_topics import new_topic_id
from controller.apis.topic_assignments import PARTITIONS_IN_ONE_MULTI, partitions_max
from tests.unit.topic_decisions import (
    ID,
    context,
    create_topics,
    creation,
    image,
    only,
    outcomes,
    topic,
    with_topic,
    without,
)


def test_a_topic_and_its_first_states_are_one_element() -> None:
    """Topic, configs and elected partitions go into one multi; the outcome carries the id."""
    decided = only(
        create_topics().decide(
            context(7), creation(topic("t", 2, 3, retention_ms="5")), image(), {}
        )
    )
    created, *states = decided.records
    assert isinstance(created, TopicRecord)
    assert created.configs == {"retention.ms": "5"}
    assert created.topic_id == decided.outcome.topic_id
    assert [type(record) for record in states] == [PartitionRecord] * 2
    for number, record in enumerate(states):
        assert isinstance(record, PartitionRecord)
        assert record.state == (
            created.assignment[number][0],
            0,
            created.assignment[number],
            5,
            0,
            False,
        )
    assert decided.following == ()


def test_the_states_of_a_large_topic_follow_its_creation() -> None:
    """The topic itself stays one atomic unit that fits."""
    many = PARTITIONS_IN_ONE_MULTI + 1
    decided = only(create_topics().decide(context(7), creation(topic("t", many)), image(), {}))
    assert [type(record) for record in decided.records] == [TopicRecord]
    assert len(decided.following) == many


@pytest.mark.parametrize("partitions", [2**31 - 1, partitions_max(1) + 1])
def test_more_partitions_than_a_znode_holds_are_refused_at_once(partitions: int) -> None:
    """Nothing is computed for them first: two billion would hang the controller."""
    outcome = only(
        create_topics().decide(context(7), creation(topic("t", partitions)), image(), {})
    ).outcome
    assert outcome.error is ErrorCode.INVALID_PARTITIONS


def test_configs_that_no_znode_holds_are_refused() -> None:
    """ZooKeeper would drop the session of whoever wrote them."""
    large = topic("t", 1, 1, **{"leader.replication.throttled.replicas": "1:1," * 60_000 + "1:1"})
    outcome = only(create_topics().decide(context(7), creation(large), image(), {})).outcome
    assert outcome.error is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("replicas", "retention", "refusal"),
    [
        ({-1: [1]}, "long", (40, "Invalid value long for configuration retention.ms: ")),
        ({-1: [1]}, "1", (39, "partitions should be a consecutive 0-based integer sequence")),
        ({0: [9]}, "long", (40, "Invalid value long for configuration retention.ms: ")),
        ({0: [9]}, "1", (39, "No broker in the replica list of partition 0 is alive.")),
        ({0: [1], 2: [1]}, "long", (39, "partitions should be a consecutive 0-based")),
        (
            {16: [1, 1], 1: [1, 1]},
            "long",
            (
                39,
                "Duplicate replica assignment found: "
                "HashMap(16 -> ArrayBuffer(1, 1), 1 -> ArrayBuffer(1, 1))",
            ),
        ),
    ],
)
def test_what_kafka_takes_of_an_assignment_is_refused_after_what_kafka_refuses(
    replicas: dict[int, list[int]], retention: str, refusal: tuple[int, str]
) -> None:
    """Its own checks of assignments, those of configs, then ours. It counts no negative numbers."""
    given = topic("t", -1, -1, retention_ms=retention)
    given.assignments = [CreatableReplicaAssignment(each, replicas[each]) for each in replicas]
    outcome = only(create_topics().decide(context(7), creation(given), image(), {})).outcome
    assert outcome.error == refusal[0]
    assert outcome.message is not None
    assert outcome.message.startswith(refusal[1])


def test_a_dry_run_judges_and_writes_nothing() -> None:
    """No records, no wait, and no topic id in the answer."""
    api, request = create_topics(), creation(topic("t"), topic("bad name"), validate_only=True)
    decision = api.decide(context(7), request, image(), {})
    assert all(not decided.records and not decided.following for decided in decision.elements)
    assert decision.wait.what is WaitFor.NOTHING
    good, bad = api.answer(context(7), request, outcomes(decision), image(), frozenset()).topics
    assert (good.error_code, good.topic_id, good.num_partitions) == (0, bytes(16), 1)
    assert len(good.configs) == 36
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_topic_whose_wait_ran_out_says_its_id_beside_the_timeout() -> None:
    """It exists, although its creator is told REQUEST_TIMED_OUT."""
    api, request = create_topics(), creation(topic("t"), timeout_ms=0)
    decision = api.decide(context(7), request, image(), {})
    assert decision.wait.what is WaitFor.LEADERS
    assert decision.wait.timeout_ms == 0
    results = api.answer(context(7), request, outcomes(decision), image(), frozenset({"t"}))
    (late,) = results.topics
    assert (late.error_code, late.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert late.topic_id == outcomes(decision)["t"].topic_id
    assert (late.num_partitions, late.replication_factor, late.configs) == (-1, -1, [])


def test_a_request_that_comes_again_creates_only_what_is_missing() -> None:
    """What is settled is neither judged nor created again, and counts for the wait."""
    api, request = create_topics(), creation(topic("a"), topic("b"))
    settled = {"a": Outcome(ErrorCode.NONE, topic_id=ID)}
    decision = api.decide(context(7), request, with_topic("a"), settled)
    assert [decided.element for decided in decision.elements] == ["b"]
    assert set(decision.wait.topics) == {"a", "b"}
    answer = api.answer(
        context(7), request, settled | outcomes(decision), with_topic("a"), frozenset()
    )
    assert [(t.error_code, t.topic_id == ID) for t in answer.topics] == [(0, True), (0, False)]


def test_topics_of_one_request_collide_with_each_other() -> None:
    """They are created one by one: the later one sees the earlier one."""
    request = creation(topic("a.b"), topic("a_b"))
    decided = outcomes(create_topics().decide(context(7), request, image(), {}))
    assert decided["a.b"].succeeded
    assert decided["a_b"].message == "Topic 'a_b' collides with existing topics: a.b"


def test_a_refused_topic_is_in_nobodys_way() -> None:
    """A name that was refused itself does not collide."""
    request = creation(topic("a.b", 0), topic("a_b"))
    assert outcomes(create_topics().decide(context(7), request, image(), {}))["a_b"].succeeded


def test_a_topic_that_is_being_deleted_is_not_yet_free() -> None:
    """The text says so; the code is that of a topic that exists."""
    marked = with_topic("t").replay([DeletionMarkerRecord("t")])
    outcome = only(create_topics().decide(context(7), creation(topic("t")), marked, {})).outcome
    assert outcome == Outcome(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' is marked for deletion.")


def test_who_may_create_neither_cluster_wide_nor_that_topic_learns_nothing() -> None:
    """29, whether the topic exists or not, and none of its configs are described."""
    asks = context(7, without("CREATE CLUSTER", "CREATE TOPIC", "DESCRIBE_CONFIGS TOPIC"))
    api, request = create_topics(), creation(topic("there"), topic("new"))
    decision = api.decide(asks, request, with_topic("there"), {})
    assert all(not decided.records for decided in decision.elements)
    answer = api.answer(asks, request, outcomes(decision), with_topic("there"), frozenset())
    assert [(t.error_code, t.error_message, t.topic_config_error_code) for t in answer.topics] == [
        (29, "Authorization failed.", 29)
    ] * 2


def test_one_right_of_the_two_suffices_to_create() -> None:
    """CREATE on the cluster, or on the topic."""
    for denied in ("CREATE CLUSTER", "CREATE TOPIC"):
        decision = create_topics().decide(
            context(7, without(denied)), creation(topic("t")), image(), {}
        )
        assert only(decision).outcome.succeeded


def test_a_creator_who_may_not_describe_configs_sees_neither_configs_nor_id() -> None:
    """The topic is created; the answer hides what DESCRIBE_CONFIGS protects."""
    asks = context(7, without("DESCRIBE_CONFIGS TOPIC"))
    api, request = create_topics(), creation(topic("t"))
    decision = api.decide(asks, request, image(), {})
    (result,) = api.answer(asks, request, outcomes(decision), image(), frozenset()).topics
    assert (result.error_code, result.topic_config_error_code) == (0, 29)
    assert (result.topic_id, result.configs, result.num_partitions) == (bytes(16), [], -1)


def test_a_topic_named_twice_is_refused_in_every_copy() -> None:
    """The metadata topic's own refusal comes first."""
    request = creation(topic("t"), topic("t"), topic("__cluster_metadata"))
    decided = outcomes(create_topics().decide(context(7), request, image(), {}))
    assert decided["t"].message == "Found multiple entries for this topic."
    prohibited = "Creation of internal topic __cluster_metadata is prohibited."
    assert decided["__cluster_metadata"].message == prohibited


def test_defaults_come_from_the_broker() -> None:
    """-1 takes num.partitions and default.replication.factor, in the decision and the answer."""
    api = create_topics(num_partitions="4", default_replication_factor="2")
    request = creation(topic("t", -1, -1))
    decision = api.decide(context(7), request, image(), {})
    (created, *_) = only(decision).records
    assert isinstance(created, TopicRecord)
    assert [len(replicas) for replicas in created.assignment] == [2] * 4
    (result,) = api.answer(context(7), request, outcomes(decision), image(), frozenset()).topics
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_a_cluster_of_which_only_some_brokers_have_racks_cannot_place() -> None:
    """-1 without a text, as an exception that is no API exception; others go on."""
    mixed = image("a", None)
    given = CreatableTopic("m", -1, -1, [CreatableReplicaAssignment(0, [2])], [])
    decided = outcomes(create_topics().decide(context(7), creation(topic("t"), given), mixed, {}))
    assert decided["t"] == Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert decided["m"].succeeded


@pytest.mark.parametrize(
    "brokers",
    [[-1], [9], [], [8, 9], [1, -1]],
    ids=["negative", "dead", "none", "two dead", "mixed"],
)
def test_replicas_that_would_break_the_controller_are_refused(brokers: list[int]) -> None:
    """Kafka accepts these and its controller chokes; 39 here."""
    given = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, brokers)], [])
    outcome = only(create_topics().decide(context(7), creation(given), image(), {})).outcome
    assert outcome.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert outcome.message


def test_a_dead_broker_beside_a_live_one_is_accepted() -> None:
    """As in Kafka: the partition starts with its live replicas in sync."""
    given = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [9, 2])], [])
    _, state = only(create_topics().decide(context(7), creation(given), image(), {})).records
    assert isinstance(state, PartitionRecord)
    assert (state.state.leader, state.state.isr) == (2, (2,))


def test_a_policy_has_the_last_word() -> None:
    """It is asked after every other check, about the assignment that was made."""
    decided, refused = (
        create_topics().decide(
            context(7), creation(topic("t", 2, 2), topic("bad name")), image(), {}
        )
    ).elements
    assert refused.question is None
    assert decided.question is not None
    question = decided.question()
    assert (question.topic, question.principal) == ("t", None)
    state = question.requested_state
    assert (state.num_partitions, state.replication_factor) == (2, 2)
    assert state.replicas_assignments == dict(enumerate(decided.records[0].assignment))
    assert state.generated_replica_assignments


def test_the_same_arguments_make_the_same_decision() -> None:
    """Randomness comes in as a value, so a decision can be replayed."""
    request = creation(topic("t", 5, 2))
    first, second = (create_topics().decide(context(7), request, image(), {}) for _ in "ab")
    assert first == second


def test_topic_ids_are_never_reserved_and_never_begin_with_a_dash() -> None:
    """Ids that Kafka would not draw are drawn again."""

    class Drawn:
        def __init__(self, *draws: bytes) -> None:
            self.draws = list(draws)

        def randrange(self, stop: int) -> int:
            return 0

        def randbytes(self, n: int) -> bytes:
            return self.draws.pop(0)

    good = new_topic_id(Drawn(b"\xf8" + bytes(15), bytes([1]) * 16))
    assert good[0] == 1
    assert (good[6] >> 4, good[8] >> 6) == (4, 2)


def test_a_name_that_zookeeper_knew_first_exists() -> None:
    """A foreign write between image and commit is answered as Kafka answers the race."""
    assert create_topics().conflict("t") == Outcome(
        ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists."
    )
