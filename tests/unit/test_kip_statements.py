"""Statements of the KIPs about one request and its topics, each for itself (docs/kips.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bridgehead.kafka_wire.headers import RequestHeader
from bridgehead.kafka_wire.json_form import decode_body
from bridgehead.kafka_wire.messages.create_topics import CreatableReplicaAssignment
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.drafted.alter_acls import AlterAclsRequest
from bridgehead.kafka_wire.messages.drafted.alter_topics import AlterTopic
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from bridgehead.policy import ClusterState, KafkaPrincipal
from cluster_model.principal import ANONYMOUS
from cluster_model.principal import KafkaPrincipal as Principal
from controller.apis.alter_acls import AlterAcls
from controller.apis.base import WaitFor
from controller.apis.delete_topics import DeleteTopics
from controller.policy_questions import ImageClusterState
from tests.unit import test_drafted_acls, test_drafted_decisions
from tests.unit.loop_bench import Term
from tests.unit.test_recorded_topics import Cluster
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
)

NONE, MISSING = "NONE", "UNKNOWN_TOPIC_OR_PARTITION"


def codes(decision: Any) -> dict[str, str]:
    return {name: outcome.error.name for name, outcome in outcomes(decision).items()}


def deletion(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name) for name in names], timeout_ms=9)


class Asked:
    """Policies that allow everything, and remember what they were asked."""

    def __init__(self) -> None:
        self.questions: list[Any] = []

    async def ask(self, question: Any, cluster: ClusterState) -> None:
        self.questions.append(question)


async def test_a_policy_is_told_who_asks_and_nobody_where_nobody_is_known() -> None:
    """KIP-201: null if the session is not authenticated. The question came in an Envelope."""
    policies = Asked()
    term = Term(policies=policies)
    for name, principal in (("a", ANONYMOUS), ("b", Principal("User", "alice"))):
        request = creation(topic(name), timeout_ms=0)
        await term.run_until(term.ask(create_topics(), request, principal=principal))
    asked = [question.principal for question in policies.questions]
    assert asked == [None, KafkaPrincipal("User", "alice")]


def test_a_topic_under_reassignment_is_shown_with_the_replicas_that_it_leads_to() -> None:
    """KIP-201's open points: assignment and factor are those of its end."""
    cluster = with_topic("t", ((3, 1, 2), (1, 2)))
    moving = replace(cluster.topics["t"], adding={0: (3,)}, removing={0: (1, 2)})
    shown = ImageClusterState(replace(cluster, topics=cluster.topics.set("t", moving)))
    state = shown.topic_state("t")
    assert state is not None
    assert state.replicas_assignments == {0: (3,), 1: (1, 2)}
    assert state.replication_factor == 1


def test_the_replication_factor_of_a_topic_is_that_of_its_first_partition() -> None:
    """KIP-201, though another partition has more."""
    state = ImageClusterState(with_topic("t", ((1, 2), (1, 2, 3)))).topic_state("t")
    assert state is not None
    assert (state.replication_factor, state.num_partitions) == (2, 2)


def test_what_a_dry_run_allowed_may_still_fail() -> None:
    """KIP-108: validate_only does not guarantee that the creation will succeed."""
    api, before = create_topics(), image()
    dry = api.decide(context(7), creation(topic("t"), validate_only=True), before, {})
    assert codes(dry) == {"t": NONE}
    meanwhile = with_topic("t", before=before)
    wet = api.decide(context(7), creation(topic("t")), meanwhile, {})
    assert codes(wet) == {"t": "TOPIC_ALREADY_EXISTS"}


@pytest.mark.parametrize(
    ("dialect", "version", "missing"),
    [("shipped", 6, MISSING), ("drafted", 0, "INVALID_TOPIC_EXCEPTION")],
)
def test_deletions_are_not_transactional(dialect: str, version: int, missing: str) -> None:
    """KIP-4: what cannot be deleted keeps nobody else, before it or behind it."""
    before = with_topic("a", before=with_topic("b"))
    asks = replace(context(version), dialect=dialect)
    request = deletion("a", "missing", "b")
    request.topic_names = ["a", "missing", "b"]  # where versions before 6 have them
    decision = DeleteTopics(config()).decide(asks, request, before, {})
    assert codes(decision) == {"a": NONE, "missing": missing, "b": NONE}
    assert set(replayed(before, decision).deletions) == {"a", "b"}


def test_one_request_is_a_batch() -> None:
    """KIP-4: many topics are made, and deleted, by one request each, and each has its own code."""
    names = [f"t{number}" for number in range(10)]
    made = create_topics().decide(context(7), creation(*map(topic, names)), image(), {})
    assert codes(made) == dict.fromkeys(names, NONE)
    after = replayed(image(), made)
    gone = DeleteTopics(config()).decide(context(6), deletion(*names), after, {})
    assert codes(gone) == dict.fromkeys(names, NONE)


def test_of_numbers_the_server_makes_an_assignment_over_its_brokers() -> None:
    """KIP-4: as many partitions and replicas as were asked for, none twice on a broker."""
    decision = create_topics().decide(context(7), creation(topic("t", 6, 2)), image(), {})
    assignment = replayed(image(), decision).topics["t"].assignment
    assert [len(set(replicas)) for replicas in assignment] == [2] * 6
    assert {broker for replicas in assignment for broker in replicas} == {1, 2, 3}


@pytest.mark.parametrize("configs", [{"retention_ms": "soon"}, {"no_such_config": "1"}])
def test_a_config_that_is_none_is_invalid_config(configs: dict[str, str]) -> None:
    """KIP-4: for that topic alone."""
    request = creation(topic("bad", 1, 1, **configs), topic("good"))
    decision = create_topics().decide(context(7), request, image(), {})
    assert codes(decision) == {"bad": "INVALID_CONFIG", "good": NONE}


def test_an_assignment_that_names_a_broker_twice_is_refused() -> None:
    """KIP-4's INVALID_REPLICA_ASSIGNMENT, in a creation."""
    twice = topic("t", -1, -1)
    twice.assignments = [CreatableReplicaAssignment(0, [1, 1])]
    decision = create_topics().decide(context(7), creation(twice), image(), {})
    assert only(decision).outcome.error.name == "INVALID_REPLICA_ASSIGNMENT"


@pytest.mark.parametrize(("dialect", "version"), [("shipped", 7), ("drafted", 0)])
def test_a_topic_that_is_there_already_exists(dialect: str, version: int) -> None:
    """KIP-4's TOPIC_ALREADY_EXISTS."""
    asks = replace(context(version), dialect=dialect)
    decision = create_topics().decide(asks, creation(topic("t")), with_topic("t"), {})
    assert codes(decision) == {"t": "TOPIC_ALREADY_EXISTS"}


async def test_metadata_tells_internal_topics_from_others() -> None:
    """KIP-4 §Metadata Schema, from v1 on."""
    cluster = Cluster()
    names = ("__consumer_offsets", "__transaction_state", "orders", "__mine")
    cluster.write(19, 7, creation(*map(topic, names)))
    body = await cluster.ask(RequestHeader(3, 1, 1, "test"), MetadataRequest(topics=None))
    told = decode_body(3, "response", 1, body)["topics"]
    internal = {each["name"] for each in told if each["isInternal"]}
    assert {each["name"] for each in told} == set(names)
    assert internal == {"__consumer_offsets", "__transaction_state"}


def test_alterations_of_topics_and_acls_wait_for_nobody() -> None:
    """KIP-4: AlterTopics is asynchronous, and AlterAcls has no timeout to block for."""
    grown = test_drafted_decisions.alter(with_topic("t"), AlterTopic("t", 3))
    assert codes(grown) == {"t": NONE}
    assert grown.wait.what is WaitFor.NOTHING
    before = image()
    ruled = AlterAcls(True).decide(
        replace(context(0), dialect="drafted"),
        AlterAclsRequest([test_drafted_acls.on("orders", test_drafted_acls.action(1))]),
        before,
        {},
    )
    assert replayed(before, ruled).acls != before.acls
    assert ruled.wait.what is WaitFor.NOTHING
