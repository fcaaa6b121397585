"""CreateTopics, DeleteTopics and CreatePartitions where recorded answers do not reach.

Rights, dry runs, timeouts, a request that comes again after a failover, topics too large for one
multi, and what a hostile client may ask for.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from immutables import Map

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from cluster_model.broker_configs import BrokerConfig, EffectiveBrokerConfig
from cluster_model.image import BrokerRegistration, MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.records import (
    AssignmentRecord,
    DeletionMarkerRecord,
    PartitionRecord,
    TopicRecord,
    TopicRemovalRecord,
)
from controller.apis.base import (
    DONE,
    Authorize,
    Decided,
    Decision,
    Outcome,
    RequestContext,
    WaitFor,
)
from controller.apis.create_partitions import CreatePartitions
from controller.apis.create_topics import CreateTopics, new_topic_id
from controller.apis.delete_topics import DeleteTopics
from controller.apis.topic_assignments import PARTITIONS_IN_ONE_MULTI, partitions_max
from controller.apis.topic_config_rules import TopicConfigRules

ID = bytes([7]) * 16


def config(**properties: str) -> BrokerConfig:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig.from_properties(
        {"broker.id": "1", "zookeeper.connect": "localhost:1", **named}
    )


def create_topics(policy: Any = None, **properties: str) -> CreateTopics:
    effective = EffectiveBrokerConfig.of(config(**properties))
    rules = TopicConfigRules(lambda: effective)
    return CreateTopics(
        config(**properties), check_configs=rules.check, show_configs=rules.show, policy=policy
    )


def context(
    version: int, authorize: Authorize = lambda *asked: True, seed: int = 3
) -> RequestContext:
    return RequestContext(
        request_id="r",
        api_key=0,
        api_version=version,
        dialect="shipped",
        principal=ANONYMOUS,
        client_host="127.0.0.1",
        client_id=None,
        listener_name="L",
        security_protocol="PLAINTEXT",
        authorize=authorize,
        random=random.Random(seed),
        now_ms=0,
    )


def without(*denied: str) -> Authorize:
    """Everything is allowed but `OPERATION TYPE`."""
    return lambda operation, kind, name: f"{operation} {kind}" not in denied


def image(*racks: str | None) -> MetadataImage:
    """A cluster of brokers 1, 2, ... with these racks; three without racks unless said."""
    brokers = enumerate(racks or (None, None, None), start=1)
    return MetadataImage(
        controller_epoch=5, brokers=Map({i: BrokerRegistration(i, i, (), r) for i, r in brokers})
    )


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(k.replace("_", "."), v) for k, v in configs.items()],
    )


def creation(*topics: CreatableTopic, **fields: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), **fields)


def outcomes(decision: Decision) -> dict[str, Outcome]:
    return {decided.element: decided.outcome for decided in decision.elements}


def only(decision: Decision) -> Decided:
    (decided,) = decision.elements
    return decided


def replayed(before: MetadataImage, decision: Decision) -> MetadataImage:
    return before.replay(
        [r for decided in decision.elements for r in (*decided.records, *decided.following)]
    )


def with_topic(
    name: str, assignment: Any = ((1, 2),), before: MetadataImage | None = None
) -> MetadataImage:
    return (before or image()).replay([TopicRecord(name, ID, assignment, {})])


# --- CreateTopics -------------------------------------------------------------------------


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
    """It is asked after every other check, with the assignment it is about."""
    asked: list[tuple[str, Any]] = []
    api = create_topics(policy=lambda name, topic, assignment: asked.append((name, assignment)))
    api.decide(context(7), creation(topic("t"), topic("bad name")), image(), {})
    assert [name for name, _ in asked] == ["t"]


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


# --- DeleteTopics -------------------------------------------------------------------------


def by_name(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name) for name in names], timeout_ms=9)


def by_id(*ids: bytes) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(None, i) for i in ids], timeout_ms=9)


def deleted(
    request: DeleteTopicsRequest,
    before: MetadataImage,
    asks: RequestContext | None = None,
    settled: Mapping[str, Outcome] = Map(),
    api: DeleteTopics | None = None,
) -> tuple[Decision, list[tuple[int, str | None]]]:
    """Decide and answer; return the decision and (code, name) of each entry."""
    api, asks = api or DeleteTopics(config()), asks or context(6)
    decision = api.decide(asks, request, before, settled)
    after = replayed(before, decision)
    after = after.replay([TopicRemovalRecord(name) for name in after.deletions])
    answer = api.answer(asks, request, {**settled, **outcomes(decision)}, after, frozenset())
    return decision, [(r.error_code, r.name) for r in answer.responses]


def test_a_deletion_is_marked_and_waits_for_its_id_to_go() -> None:
    """By name and by id; the id is answered with the name, though the topic is gone by then."""
    for request in (by_name("t"), by_id(ID)):
        decision, results = deleted(request, with_topic("t"))
        assert only(decision).records == (DeletionMarkerRecord("t"),)
        assert decision.wait.what is WaitFor.DELETION
        assert list(decision.wait.topics.values()) == [ID]
        assert results == [(0, "t")]


def test_a_topic_asked_for_by_name_and_id_is_deleted_once() -> None:
    """Both entries succeed, and one marker is written."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t"), DeleteTopicState(None, ID)])
    decision, results = deleted(request, with_topic("t"))
    assert results == [(0, "t"), (0, "t")]
    assert sum(len(decided.records) for decided in decision.elements) == 1


def test_a_topic_that_is_already_marked_succeeds_and_waits() -> None:
    """Nothing is written a second time."""
    marked = with_topic("t").replay([DeletionMarkerRecord("t")])
    decision, results = deleted(by_name("t"), marked)
    assert only(decision).records == ()
    assert list(decision.wait.topics.values()) == [ID]
    assert results == [(0, "t")]


def test_a_deletion_that_comes_again_is_not_told_that_the_topic_is_missing() -> None:
    """Settled entries keep their outcome; other entries of the same topic share it."""
    settled = {"t": Outcome(ErrorCode.NONE, None, ID)}
    both = DeleteTopicsRequest(topics=[DeleteTopicState("t"), DeleteTopicState(None, ID)])
    decision, results = deleted(both, image(), settled=settled)
    assert results == [(0, "t"), (0, "t")]
    assert all(not decided.records for decided in decision.elements)


@pytest.mark.parametrize(
    ("denied", "exists", "code", "name"),
    [
        ("DESCRIBE TOPIC", True, 29, None),
        ("DELETE TOPIC", True, 29, "t"),
        ("DESCRIBE TOPIC", False, 100, None),
    ],
)
def test_an_id_without_the_rights_hides_the_name(
    denied: str, exists: bool, code: int, name: str | None
) -> None:
    """Ids are no secret, names are."""
    before = with_topic("t") if exists else image()
    _, results = deleted(by_id(ID), before, context(6, without(denied)))
    assert results == [(code, name)]


def test_a_name_without_the_right_is_answered_alike_whether_it_exists_or_not() -> None:
    """29 for both, and no marker."""
    decision, results = deleted(
        by_name("t", "missing"), with_topic("t"), context(6, without("DELETE TOPIC"))
    )
    assert results == [(29, "t"), (29, "missing")]
    assert all(not decided.records for decided in decision.elements)


@pytest.mark.parametrize(("version", "code"), [(1, 42), (3, 73), (6, 73)])
def test_a_broker_that_forbids_deletion_refuses_every_entry(version: int, code: int) -> None:
    """With the code of the version."""
    request = by_name("t") if version >= 6 else DeleteTopicsRequest(topic_names=["t"])
    api = DeleteTopics(config(delete_topic_enable="false"))
    decision, results = deleted(request, with_topic("t"), context(version), api=api)
    assert results == [(code, "t")]
    assert not only(decision).records


def test_one_entry_with_name_and_id_spoils_the_whole_request() -> None:
    """Kafka refuses all of it, and nothing is deleted."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t", ID), DeleteTopicState("u")])
    decision, results = deleted(request, with_topic("t"))
    assert results == [(42, "t"), (42, "u")]
    assert all(not decided.records for decided in decision.elements)


def test_a_topic_without_any_leader_can_be_deleted() -> None:
    """Kafka does not find it in its cache and leaves it for ever; we do."""
    decision, results = deleted(by_name("t"), with_topic("t", ((8, 9),)))
    assert results == [(0, "t")]
    assert only(decision).records


def test_a_marker_that_somebody_else_wrote_is_as_good() -> None:
    """The deletion is under way: the asker waits for it."""
    assert DeleteTopics(config()).conflict("t") == DONE


# --- CreatePartitions ---------------------------------------------------------------------


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
