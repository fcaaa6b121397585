"""CreateTopics and DeleteTopics: cases that no recording covers."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.policy import CreateTopicRequest
from cluster_model.records import TopicRecord
from controller.apis import topic_assignments
from controller.apis.base import DONE, Outcome
from controller.apis.create_topics import new_topic_id
from controller.apis.delete_topics import DeleteTopics
from controller.apis.topic_assignments import PARTITIONS_IN_ONE_MULTI, partitions_max
from tests.unit.controller.topic_decisions import config, create_topics
from tests.unit.controller.transcripts import Cluster, check


def test_create_topics_writes_a_topic_with_its_states() -> None:
    check("""
    > create t partitions=2 rf=3 retention.ms=5
    t: NONE
      topic t 1,2,3 2,3,1 retention.ms=5
      state t-0 leader=1 isr=1,2,3 epochs=0,0
      state t-1 leader=2 isr=2,3,1 epochs=0,0
    waits for LEADERS: t
    """)


def test_create_topics_writes_the_states_of_a_large_topic_in_later_multis() -> None:
    assert PARTITIONS_IN_ONE_MULTI == 150
    check("""
    > create t partitions=150
    t: NONE
      151 x PartitionRecord
    waits for LEADERS: t
    > create u partitions=151
    u: NONE
      topic u (151 partitions)
      later 151 x PartitionRecord
    waits for LEADERS: u
    """)


def test_create_topics_rejects_topics_too_large_for_a_znode() -> None:
    """The check precedes placement, which would take forever for two billion partitions."""
    cluster = Cluster()
    for partitions in (2**31 - 1, partitions_max(1) + 1):
        (decided,) = cluster.decide(f"create t partitions={partitions}").elements
        assert decided.outcome.error is ErrorCode.INVALID_PARTITIONS
    throttled = "leader.replication.throttled.replicas=" + "1:1," * 60_000 + "1:1"
    (decided,) = cluster.decide(f"create t {throttled}").elements
    assert decided.outcome.error is ErrorCode.INVALID_CONFIG


def test_a_request_may_add_a_limited_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small request for millions of partitions would block one controller after the other."""
    monkeypatch.setattr(topic_assignments, "_PARTITIONS_OF_REQUEST_MAX", 10)
    cluster = Cluster()
    (decided,) = cluster.decide("create t partitions=11").elements
    assert decided.outcome.error is ErrorCode.INVALID_PARTITIONS
    errors = [
        element.outcome.error
        for element in cluster.decide(
            "create a partitions=6 / b partitions=5 / c partitions=4"
        ).elements
    ]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS, ErrorCode.NONE]


def test_create_topics_rejects_unusable_assignments_after_kafkas_checks() -> None:
    """Kafka's checks come first: the assignment, then the configs.

    Then we reject negative partition or broker ids, and partitions without a live replica.
    """
    check("""
    > create t assign=-1:1 retention.ms=long
    t: INVALID_CONFIG "Invalid value long for configuration retention.ms: Not a number of type LONG"
    > create t assign=-1:1 retention.ms=1
    t: INVALID_REPLICA_ASSIGNMENT "partitions should be a consecutive 0-based integer sequence"
    > create t assign=0:9 retention.ms=long
    t: INVALID_CONFIG "Invalid value long for configuration retention.ms: Not a number of type LONG"
    > create t assign=0:1;2:1 retention.ms=long
    t: INVALID_REPLICA_ASSIGNMENT "partitions should be a consecutive 0-based integer sequence"
    > create t assign=16:1,1;1:1,1 retention.ms=long
    t: INVALID_REPLICA_ASSIGNMENT "Duplicate replica assignment found: HashMap(16 -> ArrayBuffer(1, 1), 1 -> ArrayBuffer(1, 1))"
    > create t assign=0:9
    t: INVALID_REPLICA_ASSIGNMENT "No broker in the replica list of partition 0 is alive."
    > create t assign=0:-1
    t: INVALID_REPLICA_ASSIGNMENT "Partition 0 names a negative broker id."
    > create t assign=0:1,-1
    t: INVALID_REPLICA_ASSIGNMENT "Partition 0 names a negative broker id."
    > create t assign=0:8,9
    t: INVALID_REPLICA_ASSIGNMENT "No broker in the replica list of partition 0 is alive."
    > create t assign=0:none
    t: INVALID_REPLICA_ASSIGNMENT "Partition 0 has no replicas."
    > create t assign=0:9,2
    t: NONE
      topic t 9,2
      state t-0 leader=2 isr=2 epochs=0,0
    waits for LEADERS: t
    """)


def test_create_topics_returns_the_topic_id_even_with_a_timeout() -> None:
    check("""
    > create t timeout=0 late response
    t: NONE
      topic t 1
      state t-0 leader=1 isr=1 epochs=0,0
    waits for LEADERS: t
    < {"name": "t", "topicId": "SptSi2ljQyGkYbVe9Vt76g", "errorCode": 7, "errorMessage": null, "numPartitions": -1, "replicationFactor": -1, "configs": []}
    """)


def test_create_topics_resend_creates_only_missing_topics() -> None:
    """The response also waits for the topics that were committed earlier."""
    check("""
    > topic a 1,2
    > create a / b committed=a response
    b: NONE
      topic b 1
      state b-0 leader=1 isr=1 epochs=0,0
    waits for LEADERS: a b
    < {"name": "a", "topicId": "YS0tLS0tLS0tLS0tLS0tLQ", "errorCode": 0, "errorMessage": null, "numPartitions": 1, "replicationFactor": 1, "configs": "36 configs"}
    < {"name": "b", "topicId": "SptSi2ljQyGkYbVe9Vt76g", "errorCode": 0, "errorMessage": null, "numPartitions": 1, "replicationFactor": 1, "configs": "36 configs"}
    """)


def test_the_order_of_a_hash_table_decides_which_of_two_colliding_topics_is_created() -> None:
    """As in Kafka, the order of the request does not matter."""
    check("""
    > create x / a_b / a.b
    a.b: NONE
      topic a.b 1
      state a.b-0 leader=1 isr=1 epochs=0,0
    a_b: INVALID_TOPIC_EXCEPTION "Topic 'a_b' collides with existing topics: a.b"
    x: NONE
      topic x 3
      state x-0 leader=3 isr=3 epochs=0,0
    waits for LEADERS: x a.b
    """)


def test_create_topics_detects_collisions_within_a_request() -> None:
    """A rejected topic does not collide with a later one."""
    check("""
    > create a.b / a_b
    a.b: NONE
      topic a.b 1
      state a.b-0 leader=1 isr=1 epochs=0,0
    a_b: INVALID_TOPIC_EXCEPTION "Topic 'a_b' collides with existing topics: a.b"
    waits for LEADERS: a.b
    > create c.d partitions=0 / c_d
    c.d: INVALID_PARTITIONS "Number of partitions must be larger than 0."
    c_d: NONE
      topic c_d 3
      state c_d-0 leader=3 isr=3 epochs=0,0
    waits for LEADERS: c_d
    """)


def test_topics_of_a_dry_run_do_not_collide_with_each_other() -> None:
    """As in Kafka: the first topic is not created, so the second topic could be created."""
    check("""
    > create a.b / a_b dry
    a.b: NONE
    a_b: NONE
    > topic a.b 1
    > create a_b dry
    a_b: INVALID_TOPIC_EXCEPTION "Topic 'a_b' collides with existing topics: a.b"
    """)


def test_the_last_assignment_of_a_partition_is_the_one_in_the_response() -> None:
    check("""
    > create t assign=0:1,2;0:3 response
    t: NONE
      topic t 3
      state t-0 leader=3 isr=3 epochs=0,0
    waits for LEADERS: t
    < {"name": "t", "topicId": "_T_rPJJQR5eKm1KLaWNjIQ", "errorCode": 0, "errorMessage": null, "numPartitions": 1, "replicationFactor": 1, "configs": "36 configs"}
    """)


def test_the_prohibited_topic_has_no_error_code_for_its_configs() -> None:
    """Other topics have such a code if the client may not describe their configs."""
    check("""
    > create __cluster_metadata / t deny=CREATE:CLUSTER,CREATE:TOPIC,DESCRIBE_CONFIGS:TOPIC response
    __cluster_metadata: INVALID_REQUEST "Creation of internal topic __cluster_metadata is prohibited."
    t: TOPIC_AUTHORIZATION_FAILED "Authorization failed."
    < {"name": "__cluster_metadata", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 42, "errorMessage": "Creation of internal topic __cluster_metadata is prohibited.", "numPartitions": -1, "replicationFactor": -1, "configs": []}
    < {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 29, "errorMessage": "Authorization failed.", "numPartitions": -1, "replicationFactor": -1, "configs": [], "topicConfigErrorCode": 29}
    """)


def test_create_topics_rejects_a_topic_marked_for_deletion() -> None:
    check("""
    > topic t 1,2
    > mark t
    > create t
    t: TOPIC_ALREADY_EXISTS "Topic 't' is marked for deletion."
    """)


def test_create_topics_takes_defaults_from_the_broker() -> None:
    check("""
    > properties num.partitions=4 default.replication.factor=2
    > create t partitions=-1 rf=-1 response
    t: NONE
      topic t 1,2 2,3 3,1 1,3
      state t-0 leader=1 isr=1,2 epochs=0,0
      state t-1 leader=2 isr=2,3 epochs=0,0
      state t-2 leader=3 isr=3,1 epochs=0,0
      state t-3 leader=1 isr=1,3 epochs=0,0
    waits for LEADERS: t
    < {"name": "t", "topicId": "SptSi2ljQyGkYbVe9Vt76g", "errorCode": 0, "errorMessage": null, "numPartitions": 4, "replicationFactor": 2, "configs": "36 configs"}
    """)


def test_create_topics_cannot_place_replicas_if_only_some_brokers_have_racks() -> None:
    check("""
    > brokers 1:a 2
    > create t / m assign=0:2
    t: UNKNOWN_SERVER_ERROR
    m: NONE
      topic m 2
      state m-0 leader=2 isr=2 epochs=0,0
    waits for LEADERS: m
    """)


def test_create_topics_calls_the_policy_with_the_final_assignment() -> None:
    decided, rejected = Cluster().decide("create t partitions=2 rf=2 / 'bad name'").elements
    assert rejected.policy_check is None
    assert decided.policy_check is not None
    check_of_t = decided.policy_check()
    assert isinstance(check_of_t, CreateTopicRequest)
    assert (check_of_t.topic, check_of_t.principal) == ("t", None)
    state = check_of_t.requested_state
    assert (state.num_partitions, state.replication_factor) == (2, 2)
    created = decided.records[0]
    assert isinstance(created, TopicRecord)
    assert state.replicas_assignments == dict(enumerate(created.assignment))
    assert state.generated_replica_assignments


def test_create_topics_decides_the_same_for_the_same_arguments() -> None:
    """A decision can be repeated: its randomness is an argument."""
    first, second = (Cluster().decide("create t partitions=5 rf=2") for _ in range(2))
    assert first == second


def test_new_topic_ids_are_version_4_uuids_without_a_leading_dash() -> None:
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


def test_conflicts_of_topics_are_reported_as_in_kafka() -> None:
    """The conflicts are an existing topic znode and an existing deletion marker."""
    exists = Outcome(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")
    assert create_topics().conflict("t") == exists
    assert DeleteTopics(config()).conflict("t") == DONE


def test_delete_topics_marks_a_topic_and_waits_until_its_id_is_gone() -> None:
    """A deletion by id is answered with the name, although the image no longer has the topic."""
    check("""
    > topic t 1,2
    > delete t response
    t: NONE
      mark t
    waits for DELETION: t (t)
    < {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": null}
    > topic t 1,2
    > delete id:t response
    id:dC0tLS0tLS0tLS0tLS0tLQ: NONE "t"
      mark t
    waits for DELETION: id:dC0tLS0tLS0tLS0tLS0tLQ (t)
    < {"name": "t", "topicId": "dC0tLS0tLS0tLS0tLS0tLQ", "errorCode": 0, "errorMessage": null}
    """)


def test_delete_topics_deletes_a_topic_once_if_it_is_named_twice() -> None:
    check("""
    > topic t 1,2
    > delete t id:t response
    t: NONE
      mark t
    id:dC0tLS0tLS0tLS0tLS0tLQ: NONE "t"
    waits for DELETION: t (t) id:dC0tLS0tLS0tLS0tLS0tLQ (t)
    < {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": null}
    < {"name": "t", "topicId": "dC0tLS0tLS0tLS0tLS0tLQ", "errorCode": 0, "errorMessage": null}
    """)


def test_delete_topics_reports_a_timeout_in_the_first_entry_of_a_topic_only() -> None:
    """As in Kafka, further entries of the topic have the error NONE."""
    check("""
    > topic t 1,2
    > delete t none t id:t timeout=0 late response
    t: NONE
      mark t
    none: UNKNOWN_TOPIC_OR_PARTITION
    id:dC0tLS0tLS0tLS0tLS0tLQ: NONE "t"
    waits for DELETION: t (t) id:dC0tLS0tLS0tLS0tLS0tLQ (t)
    < {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 7, "errorMessage": null}
    < {"name": "none", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 3, "errorMessage": null}
    < {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": null}
    < {"name": "t", "topicId": "dC0tLS0tLS0tLS0tLS0tLQ", "errorCode": 0, "errorMessage": null}
    """)


def test_delete_topics_accepts_a_marked_topic_and_waits() -> None:
    check("""
    > topic t 1,2
    > mark t
    > delete t response
    t: NONE
    waits for DELETION: t (t)
    < {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": null}
    """)


def test_delete_topics_resend_reports_success_for_every_entry_of_a_deleted_topic() -> None:
    check("""
    > delete t id:t committed=t response
    id:dC0tLS0tLS0tLS0tLS0tLQ: NONE "t"
    waits for DELETION: t (t) id:dC0tLS0tLS0tLS0tLS0tLQ (t)
    < {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": null}
    < {"name": "t", "topicId": "dC0tLS0tLS0tLS0tLS0tLQ", "errorCode": 0, "errorMessage": null}
    """)


def test_delete_topics_by_id_hides_topics_without_describe() -> None:
    check("""
    > topic t 1,2
    > delete id:t deny=DESCRIBE:TOPIC late response
    id:dC0tLS0tLS0tLS0tLS0tLQ: UNKNOWN_TOPIC_ID
    < {"name": null, "topicId": "dC0tLS0tLS0tLS0tLS0tLQ", "errorCode": 100, "errorMessage": null}
    > delete id:unknown deny=DESCRIBE:TOPIC late response
    id:dW5rbm93bi0tLS0tLS0tLQ: UNKNOWN_TOPIC_ID
    < {"name": null, "topicId": "dW5rbm93bi0tLS0tLS0tLQ", "errorCode": 100, "errorMessage": null}
    > delete id:t deny=DELETE:TOPIC late response
    id:dC0tLS0tLS0tLS0tLS0tLQ: TOPIC_AUTHORIZATION_FAILED "t"
    < {"name": "t", "topicId": "dC0tLS0tLS0tLS0tLS0tLQ", "errorCode": 29, "errorMessage": null}
    """)


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, "INVALID_REQUEST"), (3, "TOPIC_DELETION_DISABLED"), (6, "TOPIC_DELETION_DISABLED")],
)
def test_delete_topics_rejects_every_topic_if_deletion_is_disabled(
    version: int, error: str
) -> None:
    cluster = check("> properties delete.topic.enable=false\n> topic t 1,2")
    (decided,) = cluster.decide(f"delete t v={version}").elements
    assert (decided.outcome.error.name, decided.records) == (error, ())


def test_delete_topics_deletes_a_topic_without_leaders() -> None:
    """Kafka would never delete it."""
    check("""
    > topic t 8,9
    > delete t response
    t: NONE
      mark t
    waits for DELETION: t (t)
    < {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAA", "errorCode": 0, "errorMessage": null}
    """)
