"""Statements of the KIPs about one request and its topics (docs/kips.md)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.json_form import decode_body
from bridgehead.kafka_wire.messages.create_topics import CreatableReplicaAssignment
from bridgehead.kafka_wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from bridgehead.kafka_wire.messages.drafted.alter_acls import AlterAclsRequest
from bridgehead.policy import ClusterState, KafkaPrincipal
from bridgehead.raw_client.codec import decode_json, encode_json
from cluster_model.acls.authorization import Authorize
from cluster_model.acls.bindings import AclSet
from cluster_model.image import MetadataImage
from cluster_model.principal import ANONYMOUS
from cluster_model.principal import KafkaPrincipal as Principal
from cluster_model.records import AssignmentRecord, ConfigRecord, PartitionRecord, TopicRecord
from controller.apis.alter_acls import AlterAcls
from controller.apis.base import DONE, Outcome, RequestContext, Results, WaitFor
from controller.apis.delete_topics import DeleteTopics
from controller.apis.policy_check import (
    AlterBrokerConfigs,
    AlterTopicConfigs,
    ImageClusterState,
)
from controller.apis.topic_assignments import PARTITIONS_IN_ONE_MULTI
from controller.requests.responses import ResponseEncoder
from event_log.writer import NullEventLog
from tests.unit.controller import test_drafted_acls
from tests.unit.controller.in_process_cluster import InProcessCluster
from tests.unit.controller.loop_bench import Term
from tests.unit.controller.request_contexts import a_client, a_context, a_pending_request
from tests.unit.controller.topic_decisions import (
    config,
    context,
    create_topics,
    creation,
    image,
    only,
    topic,
    with_topic,
)
from tests.unit.controller.transcripts import check


class Checks:
    """A policy that allows everything and records its checks."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def evaluate(self, check: Any, cluster: ClusterState) -> None:
        self.seen.append(check)


async def test_a_policy_sees_the_principal_or_none_without_authentication() -> None:
    """KIP-201: the principal is null if the session is not authenticated."""
    policies = Checks()
    term = Term(policies=policies)
    for name, principal in (("a", ANONYMOUS), ("b", Principal("User", "alice"))):
        request = creation(topic(name), timeout_ms=0)
        await term.run_until(term.submit(create_topics(), request, principal=principal))
    assert [policy.principal for policy in policies.seen] == [None, KafkaPrincipal("User", "alice")]


def test_a_policy_sees_the_configs_that_the_topic_will_have() -> None:
    """KIP-201: a policy sees the state after the alteration, not only the requested changes."""
    cluster = check("> topic t 1 retention.ms=5")
    for command, configs in (
        ("set 2:t flush.ms=7", {"retention.ms": "5", "flush.ms": "7"}),
        ("replace 2:t flush.ms=7", {"flush.ms": "7"}),
    ):
        (decided,) = cluster.decide(f"{command} dry").elements
        assert decided.policy_check is not None
        requested: Any = decided.policy_check()
        assert requested.requested_state.configs == configs


@pytest.mark.parametrize("verb", ["set", "replace"])
def test_a_policy_checks_the_configs_of_topics_and_not_those_of_brokers(verb: str) -> None:
    """KIP-201: AlterConfigs of topics. The configs of a broker are only seen by KIP-133's policy."""
    cluster = check("> topic t 1 retention.ms=5")
    request = f"{verb} 2:t flush.ms=7 / 4:2 log.cleaner.threads=2"
    checks = {}
    for decided in cluster.decide(request).elements:
        assert decided.policy_check is not None
        assert [type(record) for record in decided.records] == [ConfigRecord]
        checks[decided.element] = decided.policy_check()
    of_topic, of_broker = checks["2:t"], checks["4:2"]
    assert isinstance(of_topic, AlterTopicConfigs)
    assert (of_topic.topic, of_topic.requested) == ("t", {"flush.ms": "7"})
    assert of_broker == AlterBrokerConfigs("2", {"log.cleaner.threads": "2"})


def test_a_policy_sees_the_target_replicas_of_a_reassignment() -> None:
    """KIP-201 leaves open which assignment and replication factor the policy sees."""
    cluster = with_topic("t", ((3, 1, 2), (1, 2)))
    moving = replace(cluster.topics["t"], adding={0: (3,)}, removing={0: (1, 2)})
    view = ImageClusterState(replace(cluster, topics=cluster.topics.set("t", moving)))
    state = view.topic_state("t")
    assert state is not None
    assert (state.replicas_assignments, state.replication_factor) == ({0: (3,), 1: (1, 2)}, 1)


def test_a_policy_checks_each_partition_of_a_reassignment_before_it_starts() -> None:
    """Only the first partition writes the topic. The last one never had a leader."""
    cluster = check("> topic t 1 1 9")
    decided = cluster.decide("reassign t 0:2 1:3 2:3,2").elements
    assert [one.element for one in decided] == ["t:0", "t:1", "t:2"]
    kinds = [[type(record) for record in one.records] for one in decided]
    assert kinds == [[AssignmentRecord, PartitionRecord], [PartitionRecord], []]
    for one in decided:
        assert one.policy_check is not None
        requested: Any = one.policy_check()
        assert requested.requested_state.replicas_assignments == {0: (2,), 1: (3,), 2: (3, 2)}


def test_a_policy_sees_the_target_of_a_reassignment_that_only_removes_replicas() -> None:
    cluster = with_topic("t", ((3, 1, 2), (1, 2, 3)))
    changes: list[dict[str, Any]] = [{"removing": {1: (2,)}}, {"adding": {1: (2,)}}]
    for changed in changes:
        moving = replace(cluster.topics["t"], **changed)
        view = ImageClusterState(replace(cluster, topics=cluster.topics.set("t", moving)))
        state = view.topic_state("t")
        assert state is not None
        second = (1, 3) if "removing" in changed else (1, 2, 3)
        assert state.replicas_assignments == {0: (3, 1, 2), 1: second}
        assert state.replication_factor == 3


def test_the_replication_factor_of_a_topic_is_that_of_its_first_partition() -> None:
    """KIP-201: this holds even if another partition has more replicas."""
    state = ImageClusterState(with_topic("t", ((1, 2), (1, 2, 3)))).topic_state("t")
    assert state is not None
    assert (state.replication_factor, state.num_partitions) == (2, 2)
    empty = ImageClusterState(with_topic("t", ())).topic_state("t")
    assert empty is not None
    assert (empty.replication_factor, empty.num_partitions) == (0, 0)
    cluster = check("> topic t 1,2 1,2,3")
    (decided,) = cluster.decide("set 2:t flush.ms=7 dry").elements
    assert decided.policy_check is not None
    requested: Any = decided.policy_check()
    assert requested.requested_state.replication_factor == 2


@pytest.mark.parametrize("version", [0, 1, 7])
def test_a_violation_has_the_policys_text_from_version_1_on(version: int) -> None:
    """KIP-108: the error of a topic that violates the policy, and CreateTopics response v1."""
    violation = Outcome(ErrorCode.POLICY_VIOLATION, "t has too few replicas")
    results = Results({"t": violation, "u": DONE}, with_topic("u"))
    request = creation(topic("t", 2), topic("u", 1, 2), validate_only=True)
    response = create_topics().response(context(version), request, results)
    topics = decode_body(19, "response", version, encode_response(19, version, response))["topics"]
    assert [(result["name"], result["errorCode"]) for result in topics] == [("t", 44), ("u", 0)]
    expected = ["t has too few replicas", None] if version else [None, None]
    assert [result.get("errorMessage") for result in topics] == expected


def test_a_creation_may_fail_after_a_successful_dry_run() -> None:
    """KIP-108: validate_only does not guarantee that the creation will succeed."""
    check("""
    > create t dry
    t: NONE
    > topic t 1
    > create t dry v=7
    t: TOPIC_ALREADY_EXISTS "Topic 't' already exists."
    > create t dry v=0 drafted
    t: TOPIC_ALREADY_EXISTS "Topic 't' already exists."
    """)


async def test_a_creation_gets_its_response_when_every_partition_has_a_leader() -> None:
    """KIP-4, timeout > 0: the response waits even if several multis write the states."""
    term = Term()
    partitions = PARTITIONS_IN_ONE_MULTI * 2
    request = creation(topic("t", partitions), timeout_ms=60_000)
    replies = await term.run_until(term.submit(create_topics(), request))
    assert replies == [{"t": "NONE"}]
    assert all(state.leader > 0 for state in term.loop.image.topics["t"].states)
    assert term.happened.count("published ['t']") > 1
    assert term.happened[-1] == "answered 1"


async def test_a_deletion_gets_its_response_when_the_topic_is_gone() -> None:
    """KIP-4, timeout > 0: the removal is published before the response.

    The marker is not: brokers do not have it. They only get its zxid.
    """
    term = Term()
    await term.run_until(term.submit(create_topics(), creation(topic("t"), timeout_ms=60_000)))
    term.happened.clear()
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t")], timeout_ms=1000)
    replies = await term.run_until(term.submit(DeleteTopics(config()), request, version=6))
    assert replies == [{"t": "NONE"}]
    assert term.happened == ["published []", "published ['t']", "answered 2"]
    assert "t" not in term.loop.image.topics


async def test_a_deletion_that_times_out_is_completed_later() -> None:
    """KIP-4: it is up to the client to query for the state."""
    term = Term()
    await term.run_until(term.submit(create_topics(), creation(topic("t"), timeout_ms=60_000)))
    term.happened.clear()
    request = DeleteTopicsRequest(topics=[DeleteTopicState("t")], timeout_ms=0)
    replies = await term.run_until(term.submit(DeleteTopics(config()), request, version=6))
    assert replies == [{"t": "REQUEST_TIMED_OUT"}]
    await term.run_until_idle()
    assert term.happened == ["published []", "answered 2", "published ['t']"]
    assert "t" not in term.loop.image.topics
    assert "/brokers/topics/t" not in term.store.znodes


def test_deletions_are_not_transactional() -> None:
    """KIP-4: a topic that cannot be deleted affects no other topic of the request."""
    check("""
    > topic a 1
    > topic b 1
    > delete a missing b
    a: NONE
      mark a
    missing: UNKNOWN_TOPIC_OR_PARTITION
    b: NONE
      mark b
    waits for DELETION: a (a) b (b)
    > topic a 1
    > topic b 1
    > delete a missing b v=0 drafted
    a: NONE
      mark a
    missing: INVALID_TOPIC_EXCEPTION
    b: NONE
      mark b
    waits for DELETION: a (a) b (b)
    """)


def test_one_request_is_a_batch_with_an_outcome_for_each_topic() -> None:
    """KIP-4: errors of a config or an assignment concern their topic alone."""
    check("""
    > create soon retention.ms=soon / none no.such.config=1 / twice assign=0:1,1 / good / fine dry
    soon: INVALID_CONFIG "Invalid value soon for configuration retention.ms: Not a number of type LONG"
    none: INVALID_CONFIG "Unknown topic config name: no.such.config"
    twice: INVALID_REPLICA_ASSIGNMENT "Duplicate replica assignment found: HashMap(0 -> ArrayBuffer(1, 1))"
    good: NONE
    fine: NONE
    """)


def test_partitions_and_replicas_are_placed_over_all_brokers() -> None:
    """KIP-4: the request sets both counts. No broker has two replicas of one partition."""
    cluster = check("> create t partitions=6 rf=2 dry\nt: NONE")
    (decided,) = cluster.decide("create t partitions=6 rf=2").elements
    record = decided.records[0]
    assert isinstance(record, TopicRecord)
    assert [len(set(replicas)) for replicas in record.assignment] == [2] * 6
    assert {broker for replicas in record.assignment for broker in replicas} == {1, 2, 3}
    placed = set()
    for seed in range(60):
        decision = create_topics().decide(
            context(7, seed=seed), creation(topic("t", 1, 3)), image(), {}
        )
        placed |= {r.assignment for r in only(decision).records if isinstance(r, TopicRecord)}
    assert len(placed) == 6, "every broker can be the leader, and any other the second replica"


def test_metadata_distinguishes_internal_topics() -> None:
    """KIP-4 §Metadata Schema: from v1 on, responses say whether a topic is internal."""
    cluster = InProcessCluster("listeners=PLAINTEXT://127.0.0.1:0")
    names = ("__consumer_offsets", "__transaction_state", "orders", "__mine")
    sizes = {"numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    created = {"topics": [{"name": name, **sizes} for name in names], "timeoutMs": 9}
    assert isinstance(
        cluster.call(1, None, encode_json(19, 7, {**created, "validateOnly": False})), bytes
    )
    response = cluster.call(1, None, encode_json(3, 1, {"topics": None}))
    assert isinstance(response, bytes)
    topics = decode_json(3, 1, response)["topics"]
    assert {t["name"] for t in topics if t["isInternal"]} == {*names[:2]}
    assert {t["name"] for t in topics} == {*names}


def test_alterations_of_topics_and_acls_do_not_wait() -> None:
    """KIP-4: AlterTopics is asynchronous, and AlterAcls has no timeout."""
    check("""
    > topic t 1
    > alter t partitions=2 drafted
    t: NONE
      assignment t 1 2
      state t-1 leader=2 isr=2 epochs=0,0
    """)
    request = AlterAclsRequest([test_drafted_acls.on("orders", test_drafted_acls.action(1))])
    context = a_context(10003, 0, dialect="drafted")
    decision = AlterAcls(True).decide(context, request, MetadataImage(), {})
    assert decision.elements[0].records
    assert decision.wait.condition is WaitFor.NOTHING


async def test_the_controller_logs_topics_with_invalid_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """KIP-4: a response of version 0 has no message."""
    term = Term()
    encoder = ResponseEncoder(NullEventLog(), lambda: 0)
    term.loop._responses._encoder = encoder
    both = [CreatableReplicaAssignment(0, [3, 1])]
    topics = (replace(topic(f"t{number}", 1, 1), assignments=both) for number in range(12))
    request = creation(*topics, topic("fine"))
    with caplog.at_level(logging.INFO, "controller.requests.responses"):
        reply = term.submit(create_topics(), request, version=0)
        running = asyncio.create_task(term.loop.run())
        await reply
        running.cancel()
    assert list(term.loop.image.topics) == ["fine"]
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "controller.requests.responses"
    ]
    assert [line.partition("INVALID_REQUEST for ")[2][:4] for line in lines] == [
        *(f"'t{number}'" for number in range(10)),
        "2 mo",
    ]


def test_a_decision_sees_the_request_of_the_envelope_and_its_clients_rights() -> None:
    """KIP-590: the inner request is handled as usual, with the rights of its principal."""
    client = a_client(principal=Principal("User", "alice"), host="127.0.0.9", client_id="tool")
    random, acls, asked = Random(5), AclSet(), []

    def bind_authorize(*arguments: Any) -> Authorize:
        asked.append(arguments)
        return deny

    def deny(*_question: Any, **_log: Any) -> bool:
        return False

    pending = a_pending_request(
        reply=None,
        key=37,
        version=3,
        client=client,
        request_id="2.x.5",
        random=random,
        resolvable=frozenset({"localhost"}),
        made_by_broker=True,
    )
    context = pending.new_context(bind_authorize, acls, 12)
    assert asked == [(client.requester(37, 3), acls)]
    assert context == RequestContext(
        request_id="2.x.5",
        api_key=37,
        api_version=3,
        client=client,
        authorize=deny,
        random=random,
        now_ms=12,
        resolvable=frozenset({"localhost"}),
        made_by_broker=True,
    )
    assert pending.context is context
