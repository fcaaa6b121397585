"""Where KIP-4, KIP-201 and KIP-590 decide differently from what shipped."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bridgehead.kafka_wire.messages.drafted.create_topics import CreateTopicsRequest
from controller.apis.base import AdminApi
from node.seeded_bugs import honour_client_bypass
from tests.unit.controller.topic_decisions import context, create_topics, image, only, topic
from tests.unit.controller.transcripts import check


def test_create_topics_does_not_use_the_brokers_defaults() -> None:
    """Except for both numbers from v4 on, which KIP-464 allows; v0 to v3 shipped with defaults."""
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
    > create t partitions=-1 v=0 dry
    t: NONE
    > create t rf=-1 v=0 dry
    t: NONE
    """)


def test_drafted_topics_need_create_on_the_cluster_and_are_answered_once() -> None:
    """As shipped CREATE on the topic is enough, and each copy is answered."""
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
    """The same error for a missing topic; as shipped, it is always TOPIC_AUTHORIZATION_FAILED."""
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
    """KIP-201's v2. Other versions have no message."""
    check("""
    > topic t 1
    > delete t u v=2 dry drafted response
    t: NONE
    u: INVALID_TOPIC_EXCEPTION
    < {"name": "t", "errorCode": 0, "errorMessage": null}
    < {"name": "u", "errorCode": 17, "errorMessage": "The request attempted to perform an operation on an invalid topic."}
    > delete u v=1 drafted response
    u: INVALID_TOPIC_EXCEPTION
    < {"name": "u", "errorCode": 17}
    > delete u v=5 drafted response
    u: INVALID_TOPIC_EXCEPTION
    < {"name": "u", "errorCode": 17, "errorMessage": null}
    """)


@pytest.mark.parametrize(
    ("version", "error"), [(0, -1), (1, -1), (2, 44), (3, -1), (4, -1), (5, 44), (6, 44)]
)
def test_a_policys_rejection_is_a_violation_only_where_the_version_has_the_code(
    version: int, error: int
) -> None:
    """KIP-201's v2; v3 and v4 are as shipped."""
    cluster = check("> topic t 1")
    decision = cluster.decide(f"delete t v={version} dry drafted")
    assert decision.violation == error
    assert decision.elements[0].policy_check is not None


def is_checked(name: str, *, flag: bool, broker: bool, api: AdminApi | None = None) -> bool:
    request = CreateTopicsRequest(topics=[topic(name)], bypass_policy=flag)
    client = context(7, dialect="drafted", made_by_broker=broker)
    decision = (api or create_topics()).decide(client, request, image(), {})
    return only(decision).policy_check is not None


def test_only_a_broker_bypasses_the_policy_and_only_for_internal_topics() -> None:
    """KIP-590: the flag, the broker and the topic, all three."""
    names = ("__consumer_offsets", "__transaction_state", "t")
    bypassed = {
        (name, flag, broker)
        for name, flag, broker in itertools.product(names, (False, True), (False, True))
        if not is_checked(name, flag=flag, broker=broker)
    }
    assert bypassed == {("__consumer_offsets", True, True), ("__transaction_state", True, True)}


def test_the_seeded_bug_lets_a_client_bypass_the_policy() -> None:
    bug = honour_client_bypass(create_topics())
    assert is_checked("t", flag=True, broker=False)
    assert not is_checked("t", flag=True, broker=False, api=bug)


def test_alter_topics_case_1_reassigns_and_adds_partitions_and_ignores_the_numbers() -> None:
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


def test_alter_topics_case_2_places_all_partitions_again() -> None:
    """2.1 with the added ones; 2.2 with fewer replicas, which is a reassignment too."""
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
    """)


def test_alter_topics_rejects_only_the_invalid_topic() -> None:
    check("""
    > topic t 1,2 2,3
    > topic u 1
    > alter t / u partitions=2 drafted
    t: INVALID_REQUEST "The request changes nothing of the topic."
    u: NONE
      assignment u 1 2
      state u-1 leader=2 isr=2 epochs=0,0
    > alter t rf=0 drafted
    t: INVALID_REPLICATION_FACTOR "Replication factor 0 is not between 1 and 3 brokers."
    > alter t rf=4 drafted
    t: INVALID_REPLICATION_FACTOR "Replication factor 4 is not between 1 and 3 brokers."
    > alter t partitions=2000000000 drafted
    t: INVALID_PARTITIONS "A topic of 2000000000 partitions does not fit into its znode."
    > alter t assign=3:1 drafted
    t: INVALID_REPLICA_ASSIGNMENT "Partitions [3] do not follow partition 1."
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


def test_alter_topics_executes_and_answers_the_last_entry_of_a_topic() -> None:
    check("""
    > topic t 1 2
    > alter t partitions=1 / t partitions=3 drafted response
    t: NONE
      assignment t 1 2 3
      state t-2 leader=3 isr=3 epochs=0,0
    < {"topic": "t", "errorCode": 0}
    """)


def test_alter_topics_calls_the_policy_with_the_altered_topic() -> None:
    """All partitions, and whether the client placed them."""
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
