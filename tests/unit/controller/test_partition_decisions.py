"""CreatePartitions, ElectLeaders, reassignments, UpdateFeatures: cases that no recording covers.

The cases are about dead brokers, limits, resends after a failover and the progress of
reassignments.
"""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.partitions.reassignments import PartitionAssignment
from cluster_model.records import AssignmentRecord
from controller.apis import topic_assignments
from controller.apis.base import DONE
from controller.apis.topic_assignments import PARTITIONS_IN_ONE_MULTI
from tests.unit.comparisons import CountedId
from tests.unit.controller.transcripts import check


def test_create_partitions_adds_partitions_with_leaders() -> None:
    check("""
    > topic t 2,3
    > grow t 3
    t: NONE
      assignment t 2,3 3,2 1,3
      state t-1 leader=3 isr=3,2 epochs=0,0
      state t-2 leader=1 isr=1,3 epochs=0,0
    waits for LEADERS: t
    """)


def test_create_partitions_fails_if_only_some_brokers_have_racks() -> None:
    """Kafka reads the brokers and their racks before it checks any topic."""
    check("""
    > topic t 1
    > brokers 1:a 2
    > grow t 2 2 / missing 2 / twice 2 / twice 2 response
    t: UNKNOWN_SERVER_ERROR
    missing: UNKNOWN_SERVER_ERROR
    twice: UNKNOWN_SERVER_ERROR
    < {"name": "t", "errorCode": -1, "errorMessage": null}
    < {"name": "missing", "errorCode": -1, "errorMessage": null}
    < {"name": "twice", "errorCode": -1, "errorMessage": null}
    < {"name": "twice", "errorCode": -1, "errorMessage": null}
    > brokers 1:a 2:b
    > grow t 2 2
    t: NONE
      assignment t 1 2
      state t-1 leader=2 isr=2 epochs=0,0
    waits for LEADERS: t
    """)


def test_create_partitions_writes_many_states_in_later_multis() -> None:
    many = PARTITIONS_IN_ONE_MULTI + 2
    cluster = check("> topic t 1,2")
    (decided,) = cluster.decide(f"grow t {many}").elements
    assert [type(record) for record in decided.records] == [AssignmentRecord]
    assert len(decided.following) == many - 1


def test_create_partitions_adds_a_limited_number_of_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_assignments, "_PARTITIONS_OF_REQUEST_MAX", 10)
    cluster = check("""
    > topic a 1
    > topic b 1
    > grow a 12
    a: INVALID_PARTITIONS "A request may add at most 10 partitions."
    """)
    both = cluster.decide("grow a 7 / b 6").elements
    assert [element.outcome.error for element in both] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
    ]


def test_create_partitions_rejects_topics_that_cannot_grow() -> None:
    check("""
    > topic marked 1,2
    > mark marked
    > grow marked 2
    marked: INVALID_TOPIC_EXCEPTION "The topic is queued for deletion."
    > topic moving 1
    > reassign moving 0:2
    moving:0: NONE
      assignment moving 2,1 adding 0:2 removing 0:1
      state moving-0 leader=1 isr=1 epochs=1,1
    > grow moving 2
    moving: REASSIGNMENT_IN_PROGRESS "A partition reassignment is in progress for the topic 'moving'."
    > topic no-replicas none
    > grow no-replicas 2
    no-replicas: INVALID_REPLICATION_FACTOR "Replication factor must be larger than 0."
    > topic no-partitions
    > grow no-partitions 2
    no-partitions: INVALID_REPLICATION_FACTOR "Replication factor must be larger than 0."
    > topic t 1,2
    > grow t 2147483647
    t: INVALID_PARTITIONS "A topic of 2147483647 partitions does not fit into its znode."
    > brokers 1
    > grow t 2
    t: INVALID_REPLICATION_FACTOR "Replication factor: 2 larger than available brokers: 1."
    > topic one 1
    > brokers 1:a 2
    > grow one 2
    one: UNKNOWN_SERVER_ERROR
    """)


def test_create_partitions_names_unknown_brokers_in_the_order_of_kafkas_set() -> None:
    """Kafka's set keeps the order of up to four brokers, and sorts five or more by hash."""
    check("""
    > topic t 1,2
    > grow t 2 9,-1
    t: INVALID_REPLICA_ASSIGNMENT "Unknown broker(s) in replica assignment: 9, -1."
    > grow t 2 8,1 7,8
    t: INVALID_REPLICA_ASSIGNMENT "Unknown broker(s) in replica assignment: 8, 7."
    > grow t 2 40,9,8,7,6
    t: INVALID_REPLICA_ASSIGNMENT "Unknown broker(s) in replica assignment: 6, 9, 7, 40, 8."
    > grow t 2 1,2,3,9,8
    t: INVALID_REPLICA_ASSIGNMENT "Unknown broker(s) in replica assignment: 9, 8."
    """)


def test_create_partitions_resend_succeeds() -> None:
    check("""
    > topic t 1 2
    > grow t 2 committed=t response
    waits for LEADERS: t
    < {"name": "t", "errorCode": 0, "errorMessage": null}
    """)


@pytest.mark.parametrize("name", ["", ".", "..", "a/", "a//b", "a\0"])
def test_create_partitions_with_an_invalid_path_fails_as_a_whole(name: str) -> None:
    """Kafka reads all topics first, so one invalid path fails all. It does not read duplicates."""
    fault = "UNKNOWN_SERVER_ERROR"
    cluster = check("> topic t 1,2")
    decided = cluster.decide(f"grow t 2 / '{name}' 2").elements
    assert [(element.element, element.outcome.error.name) for element in decided] == [
        ("t", fault),
        (name, fault),
    ]
    decided = cluster.decide(f"grow t 2 / '{name}' 2 / '{name}' 2").elements
    assert [element.outcome.error.name for element in decided] == ["NONE", "INVALID_REQUEST"]


def test_create_partitions_returns_duplicates_once_unless_the_request_fails() -> None:
    check("""
    > topic t 1,2
    > grow t 2 / .. 2 / t 2 response
    t: UNKNOWN_SERVER_ERROR
    ..: UNKNOWN_SERVER_ERROR
    < {"name": "t", "errorCode": -1, "errorMessage": null}
    < {"name": "..", "errorCode": -1, "errorMessage": null}
    < {"name": "t", "errorCode": -1, "errorMessage": null}
    > grow 'bad name' 2 / t 2 response late
    bad name: UNKNOWN_TOPIC_OR_PARTITION "The topic 'bad name' does not exist."
    t: NONE
      assignment t 1,2 2,3
      state t-1 leader=2 isr=2,3 epochs=0,0
    waits for LEADERS: t
    < {"name": "bad name", "errorCode": 7, "errorMessage": null}
    < {"name": "t", "errorCode": 7, "errorMessage": null}
    """)


def test_a_preferred_election_makes_the_first_replica_leader() -> None:
    check("""
    > topic t 1,2,3
    > state t-0 2 1,2
    > elect preferred t:0
    t:0: NONE
      state t-0 leader=1 isr=1,2 epochs=1,2
    waits for ELECTION: t:0
    """)


def test_a_preferred_leader_must_be_live_and_in_sync() -> None:
    check("""
    > topic t 1,2,3
    > state t-0 2 2,3
    > elect preferred t:0
    t:0: PREFERRED_LEADER_NOT_AVAILABLE "Failed to elect leader for partition t-0 under strategy PreferredReplicaPartitionLeaderElectionStrategy"
    > brokers 2 3
    > elect preferred t:0
    t:0: PREFERRED_LEADER_NOT_AVAILABLE "Failed to elect leader for partition t-0 under strategy PreferredReplicaPartitionLeaderElectionStrategy"
    """)


def test_an_unclean_election_takes_any_live_replica() -> None:
    """Such an election needs a partition without a live leader. The new leader is the whole ISR."""
    check("""
    > topic t 1,2,3 1,2,3
    > state t-0 -1 1
    > state t-1 2 2,3
    > brokers 2 3
    > elect unclean t:0,1
    t:0: NONE
      state t-0 leader=2 isr=2 epochs=1,2 recovering
    t:1: ELECTION_NOT_NEEDED "Leader election not needed for topic partition."
    waits for ELECTION: t:0
    > brokers 9
    > elect unclean t:0
    t:0: ELIGIBLE_LEADERS_NOT_AVAILABLE "Failed to elect leader for partition t-0 under strategy OfflinePartitionLeaderElectionStrategy(true)"
    """)


def test_an_election_for_all_partitions_returns_those_that_need_one() -> None:
    check("""
    > topic t 1,2,3 1,2,3 1,2,3
    > state t-1 2 1,2
    > state t-2 2 2
    > elect preferred
    t:1: NONE
      state t-1 leader=1 isr=1,2 epochs=1,2
    t:2: PREFERRED_LEADER_NOT_AVAILABLE "Failed to elect leader for partition t-2 under strategy PreferredReplicaPartitionLeaderElectionStrategy"
    waits for ELECTION: t:1
    > topic u 1
    > mark u
    > elect preferred u:0
    u:0: INVALID_TOPIC_EXCEPTION "The topic is being deleted"
    > elect preferred
    t:2: PREFERRED_LEADER_NOT_AVAILABLE "Failed to elect leader for partition t-2 under strategy PreferredReplicaPartitionLeaderElectionStrategy"
    u:0: INVALID_TOPIC_EXCEPTION "The topic is being deleted"
    """)


def test_an_election_is_not_repeated_by_a_resend() -> None:
    check("""
    > topic t 1,2,3 1,2,3
    > state t-1 2 1,2
    > elect preferred committed=t:0 response
    t:1: NONE
      state t-1 leader=1 isr=1,2 epochs=1,2
    waits for ELECTION: t:0 t:1
    < {"errorCode": 0}
    < {"topic": "t", "partitionResult": [{"partitionId": 0, "errorCode": 0, "errorMessage": null}, {"partitionId": 1, "errorCode": 0, "errorMessage": null}]}
    """)


def test_elect_leaders_times_out_if_the_election_does_not_finish() -> None:
    check("""
    > topic t 1,2,3
    > state t-0 2 1,2
    > elect preferred t:0 late response
    t:0: NONE
      state t-0 leader=1 isr=1,2 epochs=1,2
    waits for ELECTION: t:0
    < {"errorCode": 0}
    < {"topic": "t", "partitionResult": [{"partitionId": 0, "errorCode": 7, "errorMessage": null}]}
    """)


def test_a_reassignment_is_listed_until_the_old_replicas_are_removed() -> None:
    """Old and new replicas are assigned and get in sync. Then only the target replicas are left.

    The leader epoch changes at the beginning and at the end.
    """
    check("""
    > topic t 1,2
    > reassign t 0:3,4
    t:0: INVALID_REPLICA_ASSIGNMENT "Replica assignment has brokers that are not alive. Replica list: ArrayBuffer(3, 4), live broker list: Set(1, 2, 3)"
    > brokers 1 2 3 4
    > reassign t 0:3,4
    t:0: NONE
      assignment t 3,4,1,2 adding 0:3,4 removing 0:1,2
      state t-0 leader=1 isr=1,2 epochs=1,1
    > list response
    < {"errorCode": 0, "errorMessage": ""}
    < {"name": "t", "partitions": [{"partitionIndex": 0, "replicas": [3, 4, 1, 2], "addingReplicas": [3, 4], "removingReplicas": [1, 2]}]}
    > steps
    state t-0 leader=1 isr=1,2,3,4 epochs=1,2
    assignment t 3,4
    state t-0 leader=3 isr=3,4 epochs=2,3
    > list response
    < {"errorCode": 0, "errorMessage": ""}
    > topic u 1
    > reassign u 0:2
    u:0: NONE
      assignment u 2,1 adding 0:2 removing 0:1
      state u-0 leader=1 isr=1 epochs=1,1
    > steps
    state u-0 leader=1 isr=1,2 epochs=1,2
    assignment u 2
    state u-0 leader=2 isr=2 epochs=2,3
    """)


def test_a_reassignment_keeps_a_leader_that_remains_a_replica() -> None:
    check("""
    > topic t 1,2
    > reassign t 0:3,1
    t:0: NONE
      assignment t 3,1,2 adding 0:3 removing 0:2
      state t-0 leader=1 isr=1,2 epochs=1,1
    > steps
    state t-0 leader=1 isr=1,2,3 epochs=1,2
    assignment t 3,1
    state t-0 leader=1 isr=1,3 epochs=2,3
    """)


def test_a_reassignment_without_new_replicas_completes_immediately() -> None:
    check("""
    > topic t 1,2,3
    > reassign t 0:3
    t:0: NONE
      assignment t 3
      state t-0 leader=3 isr=3 epochs=1,1
    > topic u 1,2
    > reassign u 0:2,1
    u:0: NONE
      assignment u 2,1
      state u-0 leader=1 isr=1,2 epochs=1,1
    > list response
    < {"errorCode": 0, "errorMessage": ""}
    > steps
    """)


def test_a_reassignment_waits_for_a_dead_target() -> None:
    """The reassignment is accepted, because the dead broker was a replica before."""
    check("""
    > topic t 1,3
    > brokers 1 2
    > reassign t 0:2,3
    t:0: NONE
      assignment t 2,3,1 adding 0:2 removing 0:1
      state t-0 leader=1 isr=1 epochs=2,2
    > steps
    state t-0 leader=1 isr=1,2 epochs=2,3
    > list response
    < {"errorCode": 0, "errorMessage": ""}
    < {"name": "t", "partitions": [{"partitionIndex": 0, "replicas": [2, 3, 1], "addingReplicas": [2], "removingReplicas": [1]}]}
    > brokers 1 2 3
    > steps
    assignment t 2,3
    state t-0 leader=2 isr=2,3 epochs=4,5
    """)


def test_a_dead_target_delays_only_its_partition() -> None:
    check("""
    > brokers 1 2 3 4
    > topic t 1 1
    > reassign t 0:4 1:2
    t:0: NONE
      assignment t 4,1 2,1 adding 0:4 adding 1:2 removing 0:1 removing 1:1
      state t-0 leader=1 isr=1 epochs=1,1
    t:1: NONE
      state t-1 leader=1 isr=1 epochs=1,1
    > brokers 1 2 3
    > steps
    assignment t 4,1 2 adding 0:4 removing 0:1
    state t-1 leader=2 isr=2 epochs=3,3
    > list response
    < {"errorCode": 0, "errorMessage": ""}
    < {"name": "t", "partitions": [{"partitionIndex": 0, "replicas": [4, 1], "addingReplicas": [4], "removingReplicas": [1]}]}
    """)


def test_a_cancelled_reassignment_restores_the_old_replicas() -> None:
    """If a new replica has become the leader, an old replica becomes the leader again."""
    check("""
    > topic t 1,3
    > brokers 1 2
    > reassign t 0:2,3
    t:0: NONE
      assignment t 2,3,1 adding 0:2 removing 0:1
      state t-0 leader=1 isr=1 epochs=2,2
    > steps
    state t-0 leader=1 isr=1,2 epochs=2,3
    > reassign t 0:cancel
    t:0: NONE
      assignment t 3,1
      state t-0 leader=1 isr=1 epochs=3,4
    > reassign t 0:2,3
    t:0: NONE
      assignment t 2,3,1 adding 0:2 removing 0:1
      state t-0 leader=1 isr=1 epochs=4,5
    > state t-0 2 1,2
    > reassign t 0:cancel
    t:0: NONE
      assignment t 3,1
      state t-0 leader=1 isr=1 epochs=5,7
    > reassign t 0:cancel
    t:0: NO_REASSIGNMENT_IN_PROGRESS "No partition reassignment is in progress."
    """)


def test_a_reassignment_replaces_a_running_one() -> None:
    """The original replicas stay. Those added only by the replaced reassignment are removed."""
    check("""
    > topic t 1,9
    > brokers 1 2 3
    > reassign t 0:2,9
    t:0: NONE
      assignment t 2,9,1 adding 0:2 removing 0:1
      state t-0 leader=1 isr=1 epochs=1,1
    > steps
    state t-0 leader=1 isr=1,2 epochs=1,2
    > reassign t 0:3,9
    t:0: NONE
      assignment t 3,9,1 adding 0:3 removing 0:1
      state t-0 leader=1 isr=1 epochs=2,3
    > list response
    < {"errorCode": 0, "errorMessage": ""}
    < {"name": "t", "partitions": [{"partitionIndex": 0, "replicas": [3, 9, 1], "addingReplicas": [3], "removingReplicas": [1]}]}
    """)


def test_only_the_last_entry_of_a_partition_applies() -> None:
    check("""
    > topic t 1
    > reassign t 0:2 0:cancel response
    t:0: NO_REASSIGNMENT_IN_PROGRESS "No partition reassignment is in progress."
    < {"errorCode": 0, "errorMessage": ""}
    < {"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 85, "errorMessage": "No partition reassignment is in progress."}]}
    """)


def test_many_reassigned_partitions_write_the_topic_once() -> None:
    """For 1,000 partitions, one write of the znode per partition would send at least 30 MB."""
    cluster = check("> topic t " + "1 " * 200)
    targets = " ".join(f"{p}:2" for p in range(200))
    first, *others = cluster.decide(f"reassign t {targets}").elements
    assert isinstance(first.records[0], AssignmentRecord)
    assert len(others) == 199
    assert not [
        r for decision in others for r in decision.records if isinstance(r, AssignmentRecord)
    ]


def test_a_reassignment_continues_after_a_failover() -> None:
    """Before the failover, only the assignment and the first partition are committed.

    A resend, or the new controller alone, completes the second partition.
    """
    for resend in (True, False):
        cluster = check("> topic t 1 1")
        first, _ = cluster.decide("reassign t 0:2 1:3").elements
        cluster.replay(*first.records)
        if resend:
            (second,) = cluster.decide("reassign t 0:2 1:3 committed=t:0").elements
            assert (second.element, second.outcome) == ("t:1", DONE)
            cluster.replay(*second.records)
        list(cluster.run("steps"))
        assert cluster.image.topics["t"].assignment == ((2,), (3,))
        assert [state.leader for state in cluster.image.topics["t"].states] == [2, 3]


def test_a_topic_marked_for_deletion_is_removed_after_its_reassignment() -> None:
    check("""
    > topic t 1
    > reassign t 0:2
    t:0: NONE
      assignment t 2,1 adding 0:2 removing 0:1
      state t-0 leader=1 isr=1 epochs=1,1
    > mark t
    > reassign t 0:3
    t:0: UNKNOWN_TOPIC_OR_PARTITION "The partition does not exist."
    > steps
    state t-0 leader=1 isr=1,2 epochs=1,2
    assignment t 2
    state t-0 leader=2 isr=2 epochs=2,3
    remove t
    > show t
    no topic t
    """)


def test_list_omits_unknown_partitions_and_those_without_a_reassignment() -> None:
    check("""
    > topic t 1 1 1
    > reassign t 0:2 1:2
    t:0: NONE
      assignment t 2,1 2,1 1 adding 0:2 adding 1:2 removing 0:1 removing 1:1
      state t-0 leader=1 isr=1 epochs=1,1
    t:1: NONE
      state t-1 leader=1 isr=1 epochs=1,1
    > list t:1,1,2,9,-1 missing:0 response
    < {"errorCode": 0, "errorMessage": ""}
    < {"name": "t", "partitions": [{"partitionIndex": 1, "replicas": [2, 1], "addingReplicas": [2], "removingReplicas": [1]}]}
    """)


def test_a_reassignment_that_does_not_fit_a_znode_is_rejected() -> None:
    cluster = check("> topic t " + "9 " * 40_000)
    targets = " ".join(f"{p}:1,2,3" for p in range(40_000))
    decided = cluster.decide(f"reassign t {targets}").elements
    assert {element.outcome.error.name for element in decided} == {"UNKNOWN_SERVER_ERROR"}
    assert not any(element.records for element in decided)


def test_update_features_gives_a_duplicate_the_result_of_its_first_entry() -> None:
    check("""
    > features f 0 3 / f 1 1 / g 1 9 / '' 1 1 / h 0 1 response
    feature:f: INVALID_REQUEST "Can not delete non-existing finalized feature."
    feature:g: INVALID_REQUEST "Received unknown upgrade type."
    feature:: INVALID_REQUEST "Feature name can not be empty."
    feature:h: INVALID_REQUEST "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the request."
    < {"errorCode": 0, "errorMessage": null}
    < {"feature": "f", "errorCode": 42, "errorMessage": "Can not delete non-existing finalized feature."}
    < {"feature": "g", "errorCode": 42, "errorMessage": "Received unknown upgrade type."}
    < {"feature": "", "errorCode": 42, "errorMessage": "Feature name can not be empty."}
    < {"feature": "h", "errorCode": 42, "errorMessage": "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the request."}
    """)


def test_the_time_to_start_a_reassignment_grows_linearly() -> None:
    """With quadratic time, a request of a few MB would block the controller for minutes."""
    target = tuple(CountedId(number) for number in range(1000))
    before = CountedId.comparisons
    change = PartitionAssignment((2000, 1)).reassign_to(target)
    assert CountedId.comparisons - before < 10_000
    assert change.replicas == (*target, 2000)
    assert change.adding == (target[0], *target[2:])
    assert change.removing == (2000,)
