"""Decisions of KIP-4, KIP-201 and KIP-590 that differ from Kafka's releases."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages import alter_configs as replacing
from bridgehead.kafka_wire.messages import incremental_alter_configs as changing
from bridgehead.kafka_wire.messages.drafted.alter_topics import AlterTopic, AlterTopicsRequest
from bridgehead.kafka_wire.messages.drafted.create_topics import CreateTopicsRequest
from chaos.bugs.decisions import honour_client_bypass
from cluster_model.configs.broker_configs import BrokerConfig
from controller.apis.alter_configs import AlterConfigs
from controller.apis.alter_topics import AlterTopics
from controller.apis.base import AdminApi, Outcome
from controller.apis.incremental_alter_configs import IncrementalAlterConfigs
from tests.unit.controller.topic_decisions import (
    context,
    create_topics,
    creation,
    image,
    only,
    topic,
    with_topic,
)
from tests.unit.controller.transcripts import check


def test_create_topics_uses_defaults_only_from_v4_on_and_only_for_both_counts() -> None:
    """From v4 on, -1 is allowed (KIP-464), but only for both counts together.

    Kafka's releases always allow -1.
    """
    check("""
    > create t partitions=-1 v=0 dry drafted
    t: INVALID_PARTITIONS "Number of partitions must be larger than 0."
    > create t rf=-1 v=0 dry drafted
    t: INVALID_REPLICATION_FACTOR "Replication factor must be larger than 0."
    > create t partitions=-1 rf=-1 v=0 dry drafted
    t: INVALID_PARTITIONS "Number of partitions must be larger than 0."
    > create t partitions=-1 dry drafted
    t: INVALID_PARTITIONS "Number of partitions must be larger than 0."
    > create t rf=-1 dry drafted
    t: INVALID_REPLICATION_FACTOR "Replication factor must be larger than 0."
    > create t partitions=-1 rf=-1 dry drafted
    t: NONE
    > create t partitions=-1 rf=-1 v=4 dry drafted
    t: NONE
    > create t partitions=-1 rf=-1 v=3 dry drafted
    t: INVALID_PARTITIONS "Number of partitions must be larger than 0."
    > create t partitions=-1 v=0 dry
    t: NONE
    > create t rf=-1 v=0 dry
    t: NONE
    """)


@pytest.mark.parametrize("dialect", ["", " drafted"])
def test_an_assignment_excludes_each_of_the_two_counts(dialect: str) -> None:
    """KIP-4 §Create Topics Request 4."""
    text = (
        "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be "
        "used at the same time."
    )
    for counts in ("partitions=1 rf=-1", "partitions=-1 rf=2", "partitions=1 rf=2"):
        check(f"""
        > create t {counts} assign=0:3,1 dry{dialect}
        t: INVALID_REQUEST "{text}"
        """)
    check(f"""
    > create t partitions=-1 rf=-1 assign=0:3,1 dry{dialect}
    t: NONE
    """)


def test_drafted_topics_need_create_on_the_cluster_and_get_one_response() -> None:
    """In releases CREATE on the topic is enough, and each entry of a topic has a response."""
    check("""
    > create t dry drafted deny=CREATE:CLUSTER
    t: CLUSTER_AUTHORIZATION_FAILED "Cluster authorization failed."
    > create t dry drafted deny=CREATE:TOPIC
    t: NONE
    > create t dry deny=CREATE:CLUSTER
    t: NONE
    > create t / t v=0 dry drafted response
    t: INVALID_REQUEST "Found multiple entries for this topic."
    t: INVALID_REQUEST "Found multiple entries for this topic."
    < {"name": "t", "errorCode": 42}
    > create t / t v=0 dry response
    t: INVALID_REQUEST "Found multiple entries for this topic."
    t: INVALID_REQUEST "Found multiple entries for this topic."
    < {"name": "t", "errorCode": 42}
    < {"name": "t", "errorCode": 42}
    > topic u 1
    > delete u u v=0 drafted response
    u: NONE
      mark u
    waits for DELETION: u (u)
    < {"name": "u", "errorCode": 0}
    > topic u 1
    > delete u u v=0 response
    u: NONE
      mark u
    waits for DELETION: u (u)
    < {"name": "u", "errorCode": 0}
    < {"name": "u", "errorCode": 0}
    """)


def test_delete_topics_hides_topics_without_describe() -> None:
    """Such topics get the error of a missing topic. Releases return TOPIC_AUTHORIZATION_FAILED."""
    check("""
    > topic t 1
    > delete t missing v=0 drafted deny=DELETE:TOPIC
    t: TOPIC_AUTHORIZATION_FAILED
    missing: TOPIC_AUTHORIZATION_FAILED
    > delete t missing v=0 drafted deny=DELETE:TOPIC,DESCRIBE:TOPIC
    t: INVALID_TOPIC_EXCEPTION
    missing: INVALID_TOPIC_EXCEPTION
    > delete t missing v=0 deny=DELETE:TOPIC,DESCRIBE:TOPIC
    t: TOPIC_AUTHORIZATION_FAILED
    missing: TOPIC_AUTHORIZATION_FAILED
    > delete missing drafted
    missing: INVALID_TOPIC_EXCEPTION
    """)


def test_a_validated_deletion_deletes_nothing_and_explains_its_errors() -> None:
    """KIP-201 adds error messages in v2. Older versions have none."""
    shown = '"errorMessage": "The request attempted to perform an operation on an invalid topic."'
    for version in (2, 3):
        check(f"""
        > topic t 1
        > delete t u v={version} dry drafted response
        t: NONE
        u: INVALID_TOPIC_EXCEPTION
        < {{"name": "t", "errorCode": 0, "errorMessage": null}}
        < {{"name": "u", "errorCode": 17, {shown}}}
        """)
    check(f"""
    > topic t 1
    > delete u v=4 dry drafted response
    u: INVALID_TOPIC_EXCEPTION
    < {{"name": "u", "errorCode": 17, {shown}}}
    > delete t v=6 dry drafted
    t: NONE
    > delete u v=1 drafted response
    u: INVALID_TOPIC_EXCEPTION
    < {{"name": "u", "errorCode": 17}}
    > delete u v=5 drafted response
    u: INVALID_TOPIC_EXCEPTION
    < {{"name": "u", "errorCode": 17, {shown}}}
    > delete u v=5 response
    u: UNKNOWN_TOPIC_OR_PARTITION
    < {{"name": "u", "errorCode": 3, "errorMessage": null}}
    """)


@pytest.mark.parametrize(
    ("version", "error"), [(0, -1), (1, -1), (2, 44), (3, 44), (4, 44), (5, 44), (6, 44)]
)
def test_a_rejected_deletion_gets_policy_violation_only_in_versions_that_have_it(
    version: int, error: int
) -> None:
    """KIP-201's v2 and later versions have POLICY_VIOLATION."""
    cluster = check("> topic t 1")
    decision = cluster.decide(f"delete t v={version} dry drafted")
    assert decision.violation == error
    assert decision.elements[0].policy_check is not None


@pytest.mark.parametrize("dialect", ["", " drafted"])
def test_the_policy_checks_only_a_topic_that_would_be_deleted(dialect: str) -> None:
    cluster = check("> topic t 1")
    for command, is_checked in (
        ("delete t", True),
        ("delete t dry" if dialect else "delete t", True),
        ("delete missing", False),
        ("delete t deny=DELETE:TOPIC", False),
    ):
        (decided,) = cluster.decide(f"{command}{dialect}").elements
        assert (decided.policy_check is not None) is is_checked, command


@pytest.mark.parametrize("verb", ["set", "replace"])
@pytest.mark.parametrize("dry", ["", " dry"])
def test_the_controller_alters_the_configs_of_any_registered_broker(verb: str, dry: str) -> None:
    """KIP-590: the request arrives unchecked. In releases the receiving broker has checked it."""
    written = "" if dry else "\n      configs brokers/{} log.cleaner.threads=2"
    check(f"""
    > {verb} 4:1 log.cleaner.threads=2 / 4:2 log.cleaner.threads=2{dry} drafted
    4:1: NONE{written.format(1)}
    4:2: NONE{written.format(2)}
    > {verb} 4:9 log.cleaner.threads=2{dry} drafted
    4:9: INVALID_REQUEST "Broker 9 is not registered."
    > {verb} 4:x log.cleaner.threads=2{dry} drafted
    4:x: INVALID_REQUEST "Node id must be an integer, but it is: x"
    > {verb} 4:2 broker.id=7{dry} drafted
    4:2: INVALID_REQUEST "Cannot update these configs dynamically: Set(broker.id)"
    > {verb} 4:2 log.cleaner.threads=many{dry} drafted deny=ALTER_CONFIGS:CLUSTER
    4:2: CLUSTER_AUTHORIZATION_FAILED
    > {verb} 4:9 log.cleaner.threads=2{dry}
    4:9: NONE{written.format(9)}
    """)


def test_the_controller_validates_its_own_brokers_configs_and_the_defaults() -> None:
    """In releases the error is the same, but the receiving broker validates and then forwards."""
    text = (
        "Invalid value org.apache.kafka.common.config.ConfigException: Log cleaner threads cannot "
        "be increased to more than double the current value 1 for configuration Invalid dynamic "
        "configuration"
    )
    check(f"""
    > set 4:1 log.cleaner.threads=3 drafted
    4:1: INVALID_REQUEST "{text}"
    > replace 4: log.cleaner.threads=3 drafted
    4:: INVALID_REQUEST "{text}"
    """)


def test_the_controller_checks_the_entries_of_a_drafted_request() -> None:
    """It rejects duplicate and null entries. In releases the receiving broker rejects them."""
    api = IncrementalAlterConfigs(BrokerConfig.from_properties({"broker.id": "1"}))
    old = AlterConfigs(BrokerConfig.from_properties({"broker.id": "1"}))
    for configs, text in (
        ([("flush.ms", "1"), ("flush.ms", "2")], "Error due to duplicate config keys"),
        ([("flush.ms", None)], "Null value not supported for : flush.ms"),
    ):
        changes = [changing.AlterableConfig(name, 0, value) for name, value in configs]
        change = changing.IncrementalAlterConfigsRequest(
            [changing.AlterConfigsResource(2, "t", changes)], True
        )
        values = [replacing.AlterableConfig(name, value) for name, value in configs]
        replacement = replacing.AlterConfigsRequest(
            [replacing.AlterConfigsResource(2, "t", values)], True
        )
        wrapped = context(1, dialect="drafted")
        for handler, request in ((api, change), (old, replacement)):
            outcome = only(handler.decide(wrapped, request, with_topic("t"), {})).outcome
            assert (outcome.error, outcome.message) == (ErrorCode.INVALID_REQUEST, text)


def is_checked(name: str, *, flag: bool, broker: bool, api: AdminApi | None = None) -> bool:
    request = CreateTopicsRequest(topics=[topic(name)], bypass_policy=flag)
    client = context(7, dialect="drafted", made_by_broker=broker)
    decision = (api or create_topics()).decide(client, request, image(), {})
    return only(decision).policy_check is not None


def test_only_a_broker_bypasses_the_policy_and_only_for_internal_topics() -> None:
    """KIP-590's conditions: the flag is set, a broker made the request, and the topic is internal."""
    names = ("__consumer_offsets", "__transaction_state", "t")
    bypassed = {
        (name, flag, broker)
        for name, flag, broker in itertools.product(names, (False, True), (False, True))
        if not is_checked(name, flag=flag, broker=broker)
    }
    assert bypassed == {("__consumer_offsets", True, True), ("__transaction_state", True, True)}


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_on_a_shipped_listener_a_brokers_internal_topics_are_checked(name: str) -> None:
    broker = context(7, made_by_broker=True)
    decision = create_topics().decide(broker, creation(topic(name)), image(), {})
    assert only(decision).policy_check is not None


def test_the_seeded_bug_lets_a_client_bypass_the_policy() -> None:
    bug = honour_client_bypass(create_topics())
    assert is_checked("t", flag=True, broker=False)
    assert not is_checked("t", flag=True, broker=False, api=bug)


def test_alter_topics_case_1_reassigns_and_adds_partitions_and_ignores_the_numbers() -> None:
    """KIP-4: an assignment overrides the request's numbers of partitions and replicas."""
    check("""
    > topic t 1,2 2,3
    > alter t partitions=1 rf=77 assign=0:3,1;1:2,3;2:1,3 drafted
    t: NONE
      assignment t 3,1,2 2,3 1,3 adding 0:3 removing 0:2
      state t-0 leader=1 isr=1,2 epochs=1,1
      state t-2 leader=1 isr=1,3 epochs=0,0
    > alter t partitions=4 drafted
    t: REASSIGNMENT_IN_PROGRESS "A partition reassignment is in progress for the topic 't'."
    """)


@pytest.mark.parametrize("changed", [{"adding": {1: (1,)}}, {"removing": {1: (3,)}}])
def test_a_topic_with_any_reassignment_cannot_be_altered(changed: dict[str, Any]) -> None:
    """KIP-4's error ReassignPartitionsInProgress. One partition only gains or loses a replica."""
    cluster = check("> topic t 1,2 2,3")
    moving = dataclasses.replace(cluster.image.topics["t"], **changed)
    cluster.image = dataclasses.replace(cluster.image, topics=cluster.image.topics.set("t", moving))
    for change in ("partitions=4", "rf=3", "assign=0:3,1"):
        (decided,) = cluster.decide(f"alter t {change} drafted").elements
        assert decided.outcome.error is ErrorCode.REASSIGNMENT_IN_PROGRESS, change


def test_alter_topics_case_2_places_all_partitions_again() -> None:
    """Case 2.1 of KIP-4 also adds partitions. Case 2.2 removes replicas, which is a reassignment."""
    check("""
    > topic t 1,2 2,3
    > alter t partitions=4 rf=3 drafted
    t: NONE
      assignment t 1,2,3 2,3,1 3,1,2 1,3,2 adding 0:3 adding 1:1
      state t-0 leader=1 isr=1,2 epochs=1,1
      state t-1 leader=2 isr=2,3 epochs=1,1
      state t-2 leader=3 isr=3,1,2 epochs=0,0
      state t-3 leader=1 isr=1,3,2 epochs=0,0
    > topic u 1,2 2,3
    > alter u rf=1 drafted
    u: NONE
      assignment u 1 2
      state u-0 leader=1 isr=1 epochs=1,1
      state u-1 leader=2 isr=2 epochs=1,1
    """)


def test_alter_topics_case_3_places_added_partitions_and_rejects_fewer() -> None:
    check("""
    > topic t 1,2 2,3
    > alter t partitions=1 drafted
    t: INVALID_PARTITIONS "Topic currently has 2 partitions, and cannot have 1."
    > alter t partitions=0 drafted
    t: INVALID_PARTITIONS "Topic currently has 2 partitions, and cannot have 0."
    > alter t partitions=-2 drafted
    t: INVALID_PARTITIONS "Topic currently has 2 partitions, and cannot have -2."
    > alter t partitions=4 drafted
    t: NONE
      assignment t 1,2 2,3 3,1 1,3
      state t-2 leader=3 isr=3,1 epochs=0,0
      state t-3 leader=1 isr=1,3 epochs=0,0
    """)


def test_alter_topics_without_effect_writes_nothing() -> None:
    check("""
    > topic t 1,2 2,3
    > alter t partitions=2 drafted
    t: NONE
    > alter t assign=0:1,2 drafted
    t: NONE
    > topic u 1
    > alter u partitions=1 drafted
    u: NONE
    """)


def test_alter_topics_rejects_only_the_invalid_topic() -> None:
    check("""
    > topic t 1,2 2,3
    > topic u 1
    > alter t / u partitions=2 drafted
    t: INVALID_REQUEST "The request changes nothing about the topic."
    u: NONE
      assignment u 1 2
      state u-1 leader=2 isr=2 epochs=0,0
    > alter t rf=0 drafted
    t: INVALID_REPLICATION_FACTOR "Replication factor 0 is not between 1 and 3 live brokers."
    > alter t rf=4 drafted
    t: INVALID_REPLICATION_FACTOR "Replication factor 4 is not between 1 and 3 live brokers."
    > alter t partitions=2000000000 drafted
    t: INVALID_PARTITIONS "A topic of 2000000000 partitions does not fit into its znode."
    > alter t assign=3:1 drafted
    t: INVALID_REPLICA_ASSIGNMENT "Added partitions [3] must be numbered from 2 on."
    > alter t assign=0:1,1 drafted
    t: INVALID_REPLICA_ASSIGNMENT "Partition 0 has a duplicate replica."
    > alter t assign=0:none drafted
    t: INVALID_REPLICA_ASSIGNMENT "Partition 0 has no replicas."
    > alter t assign=0:9 drafted
    t: INVALID_REPLICA_ASSIGNMENT "Broker 9 of partition 0 is not alive."
    > alter missing partitions=2 drafted
    missing: INVALID_TOPIC_EXCEPTION "The topic 'missing' does not exist."
    > alter u partitions=4 deny=ALTER:CLUSTER drafted
    u: CLUSTER_AUTHORIZATION_FAILED
    """)


def test_alter_topics_executes_and_returns_the_last_entry_of_a_topic() -> None:
    check("""
    > topic t 1 2
    > alter t partitions=1 / t partitions=3 drafted response
    t: NONE
      assignment t 1 2 3
      state t-2 leader=3 isr=3 epochs=0,0
    < {"topic": "t", "errorCode": 0}
    """)


def test_alter_topics_does_not_alter_a_committed_topic_again() -> None:
    """A resend of a request alters only the topics that have no outcome yet."""
    request = AlterTopicsRequest([AlterTopic(name, 2) for name in "tu"])
    cluster = with_topic("u", ((1,),), with_topic("t", ((1,),)))
    done = {"t": Outcome(ErrorCode.NONE)}
    decision = AlterTopics().decide(context(0, dialect="drafted"), request, cluster, done)
    assert [decided.element for decided in decision.elements] == ["u"]


def test_alter_topics_calls_the_policy_with_the_altered_topic() -> None:
    """The policy gets the replicas of all partitions, and whether the client chose them."""
    for command, generated in (("partitions=4", True), ("assign=0:3,1", False)):
        cluster = check("> topic t 1,2 2,3")
        (decided,) = cluster.decide(f"alter t {command} drafted").elements
        assert decided.policy_check is not None
        requested: Any = decided.policy_check()
        cluster.replay(*decided.records)
        list(cluster.run("steps"))
        after = dict(enumerate(cluster.image.topics["t"].assignment))
        assert requested.requested_state.replicas_assignments == after
        assert requested.requested_state.generated_replica_assignments is generated
