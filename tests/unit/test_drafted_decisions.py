"""Where KIP-4, KIP-201 and KIP-590 decide otherwise than what shipped."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicState
from bridgehead.kafka_wire.messages.drafted.alter_topics import (
    AlterTopic,
    AlterTopicsRequest,
    PartitionReplicas,
)
from bridgehead.kafka_wire.messages.drafted.create_topics import CreateTopicsRequest
from bridgehead.kafka_wire.messages.drafted.delete_topics import DeleteTopicsRequest
from cluster_model.broker_configs import EffectiveBrokerConfig
from cluster_model.image import MetadataImage
from cluster_model.reassignments import reassignments
from cluster_model.records import AssignmentRecord, PartitionRecord
from controller.apis.alter_topics import AlterTopics
from controller.apis.base import Authorize, Decision, Outcome, RequestContext, WaitFor
from controller.apis.create_topics import CreateTopics
from controller.apis.delete_topics import DeleteTopics
from controller.apis.topic_config_rules import TopicConfigRules
from tests.unit.topic_decisions import (
    config,
    context,
    create_topics,
    creation,
    image,
    only,
    outcomes,
    replayed,
    topic,
    with_topic,
    without,
)

ANYTHING = without()
INVALID_TOPIC = ErrorCode.INVALID_TOPIC_EXCEPTION


def drafted(version: int, authorize: Authorize = ANYTHING, **fields: Any) -> RequestContext:
    return replace(context(version, authorize), dialect="drafted", **fields)


def codes(decision: Decision) -> dict[str, str]:
    return {name: outcome.error.name for name, outcome in outcomes(decision).items()}


# --- KIP-4: CreateTopics ---------------------------------------------------------------------


def test_the_right_to_create_is_that_on_the_cluster_alone() -> None:
    """A right on the topic, which is enough where it shipped, is none."""
    request = creation(topic("t"))
    denied = without("CREATE CLUSTER")
    api = create_topics()
    assert codes(api.decide(drafted(0, denied), request, image(), {})) == {
        "t": "CLUSTER_AUTHORIZATION_FAILED"
    }
    assert codes(api.decide(context(0, denied), request, image(), {})) == {"t": "NONE"}
    on_the_topic = without("CREATE TOPIC")
    assert codes(api.decide(drafted(0, on_the_topic), request, image(), {})) == {"t": "NONE"}


@pytest.mark.parametrize(("dialect", "entries"), [("drafted", 1), ("shipped", 2)])
def test_a_topic_that_comes_twice_is_answered_by_a_single_code(dialect: str, entries: int) -> None:
    """The KIP's topics are a map with the name as key."""
    request, api = creation(topic("t"), topic("t", 2)), create_topics()
    who = replace(context(0), dialect=dialect)
    decided = outcomes(api.decide(who, request, image(), {}))
    answer = api.answer(who, request, decided, image(), frozenset())
    assert [each.error_code for each in answer.topics] == [ErrorCode.INVALID_REQUEST] * entries


@pytest.mark.parametrize(
    ("version", "partitions", "factor", "error"),
    [
        (0, -1, 1, "INVALID_PARTITIONS"),
        (0, 1, -1, "INVALID_REPLICATION_FACTOR"),
        (0, -1, -1, "INVALID_PARTITIONS"),
        (7, -1, 1, "INVALID_PARTITIONS"),
        (7, 1, -1, "INVALID_REPLICATION_FACTOR"),
        (7, -1, -1, "NONE"),  # KIP-464 made it so, and no draft speaks of those versions
    ],
)
def test_the_brokers_defaults_are_not_used(
    version: int, partitions: int, factor: int, error: str
) -> None:
    """One or the other must be defined: numbers or an assignment."""
    request, api = creation(topic("t", partitions, factor)), create_topics()
    assert codes(api.decide(drafted(version), request, image(), {})) == {"t": error}
    assert codes(api.decide(context(version), request, image(), {})) == {"t": "NONE"}


# --- KIP-4 and KIP-201: DeleteTopics ----------------------------------------------------------


def deletion(*names: str, **fields: Any) -> DeleteTopicsRequest:
    topics = [DeleteTopicState(name) for name in names]
    return DeleteTopicsRequest(topics=topics, topic_names=list(names), timeout_ms=10, **fields)


@pytest.mark.parametrize("version", range(7))
def test_a_missing_topic_is_an_invalid_one(version: int) -> None:
    """By its name, in every version of a drafted listener."""
    api = DeleteTopics(config())
    assert codes(api.decide(drafted(version), deletion("t"), image(), {})) == {
        "t": "INVALID_TOPIC_EXCEPTION"
    }
    assert codes(api.decide(context(version), deletion("t"), image(), {})) == {
        "t": "UNKNOWN_TOPIC_OR_PARTITION"
    }


@pytest.mark.parametrize(
    ("denied", "error"),
    [
        (("DELETE TOPIC",), "TOPIC_AUTHORIZATION_FAILED"),
        (("DELETE TOPIC", "DESCRIBE TOPIC"), "INVALID_TOPIC_EXCEPTION"),
    ],
)
def test_who_may_not_describe_a_topic_does_not_learn_that_it_is_there(
    denied: tuple[str, ...], error: str
) -> None:
    """A missing topic gets the same answer."""
    api = DeleteTopics(config())
    for cluster in (image(), with_topic("t")):
        decision = api.decide(drafted(0, without(*denied)), deletion("t"), cluster, {})
        assert codes(decision) == {"t": error}


@pytest.mark.parametrize(("dialect", "entries"), [("drafted", 1), ("shipped", 2)])
def test_extra_requests_for_a_deletion_are_ignored(dialect: str, entries: int) -> None:
    """The KIP's topics are a set."""
    api, who = DeleteTopics(config()), replace(context(0), dialect=dialect)
    request, cluster = deletion("t", "t"), with_topic("t")
    decided = outcomes(api.decide(who, request, cluster, {}))
    answer = api.answer(who, request, decided, cluster, frozenset())
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE] * entries


def test_a_validated_deletion_deletes_nothing_and_waits_for_nothing() -> None:
    """KIP-201's v2: correctness and policy, no more."""
    api, request = DeleteTopics(config()), deletion("t", "u", validate_only=True)
    decision = api.decide(drafted(2), request, with_topic("t"), {})
    assert codes(decision) == {"t": "NONE", "u": "INVALID_TOPIC_EXCEPTION"}
    assert [each.records for each in decision.elements] == [(), ()]
    assert decision.wait.what is WaitFor.NOTHING
    assert decision.elements[0].question is not None


def test_only_kip_201s_version_explains_its_errors() -> None:
    """v1 has no room, v3 and v4 are as shipped."""
    api, cluster = DeleteTopics(config()), image()
    for version, message in ((1, None), (2, INVALID_TOPIC.default_text), (3, None), (5, None)):
        who, request = drafted(version), deletion("t")
        decided = outcomes(api.decide(who, request, cluster, {}))
        (row,) = api.answer(who, request, decided, cluster, frozenset()).responses
        assert row.error_message == message


@pytest.mark.parametrize(
    ("version", "told"), [(0, -1), (1, -1), (2, 44), (3, -1), (4, -1), (5, 44), (6, 44)]
)
def test_a_version_before_the_policy_is_not_told_of_it(version: int, told: int) -> None:
    """KIP-201: only the new version knows the code; v3 and v4 are as shipped."""
    decision = DeleteTopics(config()).decide(drafted(version), deletion("t"), with_topic("t"), {})
    assert decision.violation == told


# --- KIP-590: the policy's bypass -------------------------------------------------------------


def creating(honours_client_bypass: bool = False) -> CreateTopics:
    effective = EffectiveBrokerConfig.of(config())
    rules = TopicConfigRules(lambda: effective)
    return CreateTopics(
        config(),
        check_configs=rules.check,
        show_configs=rules.show,
        honours_client_bypass=honours_client_bypass,
    )


def is_asked(name: str, *, flag: bool, broker: bool, api: CreateTopics | None = None) -> bool:
    request = CreateTopicsRequest(topics=[topic(name)], bypass_policy=flag)
    who = drafted(7, made_by_broker=broker)
    return only((api or creating()).decide(who, request, image(), {})).question is not None


def test_only_a_broker_has_only_an_internal_topic_created_past_the_policy() -> None:
    """The flag, the broker and the topic: all three."""
    passed_by = {
        (name, flag, broker)
        for name, flag, broker in itertools.product(
            ("__consumer_offsets", "__transaction_state", "t"), (False, True), (False, True)
        )
        if not is_asked(name, flag=flag, broker=broker)
    }
    assert passed_by == {("__consumer_offsets", True, True), ("__transaction_state", True, True)}


def test_a_client_that_sets_the_flag_is_caught_by_this() -> None:
    """The seeded bug honours it, for any topic."""
    bug = creating(honours_client_bypass=True)
    assert is_asked("t", flag=True, broker=False)
    assert not is_asked("t", flag=True, broker=False, api=bug)


# --- KIP-4: AlterTopics -----------------------------------------------------------------------


def alter(
    cluster: MetadataImage, *asked: AlterTopic, who: RequestContext | None = None
) -> Decision:
    return AlterTopics().decide(who or drafted(0), AlterTopicsRequest(list(asked)), cluster, {})


def assignment(**replicas: tuple[int, ...]) -> list[PartitionReplicas]:
    return [PartitionReplicas(int(p[1:]), list(brokers)) for p, brokers in replicas.items()]


def after(cluster: MetadataImage, *asked: AlterTopic) -> Mapping[int, tuple[int, ...]]:
    """The replicas that topic `t` will have, by partition."""
    decision = alter(cluster, *asked)
    assert codes(decision) == {"t": "NONE"}
    done = replayed(cluster, decision).topics["t"]
    removing = done.removing
    return {
        p: tuple(b for b in replicas if b not in removing.get(p, ()))
        for p, replicas in enumerate(done.assignment)
    }


TWO = ((1, 2), (2, 3))


def test_case_1_reassigns_partitions_that_are_there_and_adds_those_that_are_not() -> None:
    """In one instruction; the other two numbers are ignored."""
    cluster = with_topic("t", TWO)
    given = AlterTopic("t", 1, 77, assignment(p0=(3, 1), p1=(2, 3), p2=(1, 3)))
    decision = alter(cluster, given)
    record = only(decision).records[0]
    assert isinstance(record, AssignmentRecord)
    assert set(record.adding) == {0}
    assert after(cluster, given) == {0: (3, 1), 1: (2, 3), 2: (1, 3)}
    state = only(decision).records[-1]
    assert isinstance(state, PartitionRecord)
    assert (state.partition, state.state.leader) == (2, 1)


def test_case_2_1_places_all_partitions_anew_those_added_included() -> None:
    """A replication factor and a number of partitions."""
    made = after(with_topic("t", TWO), AlterTopic("t", 4, 3))
    assert [len(set(replicas)) for replicas in made.values()] == [3, 3, 3, 3]


def test_case_2_2_places_the_partitions_that_exist_anew() -> None:
    """A replication factor alone; fewer replicas are a reassignment as well."""
    made = after(with_topic("t", TWO), AlterTopic("t", -1, 1))
    assert [len(replicas) for replicas in made.values()] == [1, 1]


def test_case_3_1_refuses_fewer_partitions() -> None:
    """Also none, and less than none."""
    for count in (1, 0, -2):
        decision = alter(with_topic("t", TWO), AlterTopic("t", count))
        assert codes(decision) == {"t": "INVALID_PARTITIONS"}


def test_case_3_2_places_only_the_partitions_that_are_added() -> None:
    """Those that exist stay where they are."""
    made = after(with_topic("t", TWO), AlterTopic("t", 4))
    assert (made[0], made[1]) == TWO
    assert [len(made[p]) for p in (2, 3)] == [2, 2]


def test_what_is_as_it_should_be_is_not_written() -> None:
    """The same number, the same assignment."""
    for asked in (AlterTopic("t", 2), AlterTopic("t", -1, -1, assignment(p0=(1, 2)))):
        (decided,) = alter(with_topic("t", TWO), asked).elements
        assert (decided.outcome.succeeded, decided.records) == (True, ())


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (AlterTopic("t"), "INVALID_REQUEST"),
        (AlterTopic("t", -1, 0), "INVALID_REPLICATION_FACTOR"),
        (AlterTopic("t", -1, 4), "INVALID_REPLICATION_FACTOR"),
        (AlterTopic("t", 2_000_000_000), "INVALID_PARTITIONS"),
        (AlterTopic("t", -1, -1, assignment(p3=(1,))), "INVALID_REPLICA_ASSIGNMENT"),
        (AlterTopic("t", -1, -1, assignment(p0=(1, 1))), "INVALID_REPLICA_ASSIGNMENT"),
        (AlterTopic("t", -1, -1, assignment(p0=())), "INVALID_REPLICA_ASSIGNMENT"),
        (AlterTopic("t", -1, -1, assignment(p0=(9,))), "INVALID_REPLICA_ASSIGNMENT"),
        (AlterTopic("missing", 2), "INVALID_TOPIC_EXCEPTION"),
    ],
)
def test_what_cannot_be_altered_so_is_refused(asked: AlterTopic, error: str) -> None:
    """Each in its own code; the other topic of the request is altered."""
    cluster = with_topic("u", before=with_topic("t", TWO))
    assert codes(alter(cluster, asked, AlterTopic("u", 3))) == {asked.topic: error, "u": "NONE"}


def test_a_topic_under_reassignment_is_not_altered() -> None:
    """ReassignPartitionsInProgress, in today's word."""
    cluster = with_topic("t", TWO)
    moving = replayed(cluster, alter(cluster, AlterTopic("t", -1, -1, assignment(p0=(3, 1)))))
    assert reassignments(moving.topics["t"]) == [0]
    assert codes(alter(moving, AlterTopic("t", 4))) == {"t": "REASSIGNMENT_IN_PROGRESS"}


def test_altering_needs_alter_on_the_cluster() -> None:
    """Which no right on the topic replaces."""
    denied = drafted(0, without("ALTER CLUSTER"))
    assert codes(alter(with_topic("t"), AlterTopic("t", 2), who=denied)) == {
        "t": "CLUSTER_AUTHORIZATION_FAILED"
    }


def test_the_last_instruction_for_a_topic_counts_and_is_answered_once() -> None:
    """The others are silently ignored."""
    cluster = with_topic("t", TWO)
    request = AlterTopicsRequest([AlterTopic("t", 1), AlterTopic("t", 3)])
    decided = outcomes(AlterTopics().decide(drafted(0), request, cluster, {}))
    answer = AlterTopics().answer(drafted(0), request, decided, cluster, frozenset())
    assert [(row.topic, row.error_code) for row in answer.topics] == [("t", 0)]


def test_a_policy_is_asked_about_the_topic_as_it_would_be() -> None:
    """All its partitions, and whether the client placed them."""
    cluster = with_topic("t", TWO)
    for asked, generated in (
        (AlterTopic("t", 4), True),
        (AlterTopic("t", -1, -1, assignment(p0=(3, 1))), False),
    ):
        make = only(alter(cluster, asked)).question
        assert make is not None
        state: Any = make()
        assert state.requested_state.generated_replica_assignments is generated
        assert state.requested_state.replicas_assignments == after(cluster, asked)


def test_a_foreign_write_is_a_failure_of_that_topic() -> None:
    """Somebody wrote its znodes by hand."""
    assert AlterTopics().conflict("t") == Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
