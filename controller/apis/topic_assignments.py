"""Checks or places the replicas of a topic, and computes the states of new partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic
from cluster_model.image import MetadataImage, Topic
from cluster_model.partitions.elections import elect_new
from cluster_model.partitions.placement import (
    BrokerOrder,
    MixedRacksError,
    assign_replicas,
    start_index,
)
from cluster_model.partitions.reassignments import PartitionAssignment, begin, complete
from cluster_model.records import PartitionRecord, Replicas
from cluster_model.scala_order import mutable_int_order

# If a request writes more partition states of a topic than this, the states of new partitions are
# committed in later multis.
PARTITIONS_IN_ONE_MULTI: Final = 150
# A decision of this many partitions takes one to two seconds. Meanwhile the node handles nothing
# else, and after five seconds it would lose its ZooKeeper session.
_PARTITIONS_OF_REQUEST_MAX: Final = 200_000
# The topic znode, the config znode and the states share a multi of at most 900,000 bytes.
_ZNODE_BYTES_MAX: Final = 500_000
_CONFIG_BYTES_MAX: Final = 250_000


def partitions_max(replication_factor: int) -> int:
    """Return how many partitions fit into a topic znode: each takes 12 bytes, and 8 per replica."""
    return _ZNODE_BYTES_MAX // (12 + 8 * replication_factor)


def too_many_partitions(partitions: int) -> ApiError:
    """Return the error of a topic that is too large for its znode.

    Kafka has no such check: its controller hangs when ZooKeeper rejects the znode.
    """
    return ApiError(
        ErrorCode.INVALID_PARTITIONS,
        f"A topic of {partitions} partitions does not fit into its znode.",
    )


def check_partitions_of_request(partitions: int) -> None:
    """Reject a topic with which the request would add too many partitions. Kafka has no limit."""
    if partitions > _PARTITIONS_OF_REQUEST_MAX:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"A request may add at most {_PARTITIONS_OF_REQUEST_MAX} partitions.",
        )


def check_room(name: str, assignment: tuple[Replicas, ...], configs: Mapping[str, str]) -> None:
    """Reject a topic too large for one multi: ZooKeeper would close the connection."""
    if len(assignment) > partitions_max(max(map(len, assignment))):
        raise too_many_partitions(len(assignment))
    # An escaped character takes up to six bytes in JSON.
    if 6 * sum(len(key) + len(value) + 6 for key, value in configs.items()) > _CONFIG_BYTES_MAX:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"The configs of topic '{name}' do not fit into their znode."
        )


def given_assignment(topic: CreatableTopic) -> dict[int, Replicas]:
    """Return the client's replicas of each partition, after Kafka's checks.

    Kafka's checks accept some assignments that no topic can use; see `usable_assignment`.
    """
    # The last entry of a partition wins, as in Kafka.
    by_number = {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
    if len({len(replicas) for replicas in by_number.values()}) > 1:
        raise invalid_assignment("All partitions should have the same number of replicas")
    if any(len(set(replicas)) != len(replicas) for replicas in by_number.values()):
        raise invalid_assignment(f"Duplicate replica assignment found: {_scala(by_number)}")
    # Kafka only compares the sum of the positive partition numbers with the sum of 0 to n-1.
    if sum(number for number in by_number if number > 0) != sum(range(len(by_number))):
        raise _not_consecutive()
    return by_number


def usable_assignment(
    by_number: Mapping[int, Replicas], image: MetadataImage, *, unusable_too: bool
) -> tuple[Replicas, ...]:
    """Return the replicas in the order of the partitions; raises ApiError if they are unusable.

    Kafka accepts partitions that have a negative broker id, no replicas or no live broker; its
    controller then fails on the topic (docs/kafka/misbehaviour.md). Such partitions are rejected
    here, unless a quirk sets `unusable_too`. Negative partition numbers are always rejected:
    docs/differences.md.
    """
    # The positive numbers have the same sum as 0 to n-1. So the numbers are 0 to n-1 unless one of
    # them is negative.
    if min(by_number) < 0:
        raise _not_consecutive()
    for number, replicas in () if unusable_too else sorted(by_number.items()):
        if not replicas:
            raise invalid_assignment(f"Partition {number} has no replicas.")
        if min(replicas) < 0:
            raise invalid_assignment(f"Partition {number} names a negative broker id.")
        if not any(replica in image.brokers for replica in replicas):
            raise invalid_assignment(
                f"No broker in the replica list of partition {number} is alive."
            )
    return tuple(by_number[number] for number in range(len(by_number)))


def _not_consecutive() -> ApiError:
    return invalid_assignment("partitions should be a consecutive 0-based integer sequence")


def invalid_assignment(text: str) -> ApiError:
    """Return INVALID_REPLICA_ASSIGNMENT with a message."""
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _scala(assignment: Mapping[int, Replicas]) -> str:
    """Return the text of a Scala map, as in Kafka's message."""
    parts = (
        f"{number} -> ArrayBuffer({', '.join(map(str, assignment[number]))})"
        for number in mutable_int_order(assignment)
    )
    return f"HashMap({', '.join(parts)})"


def place_partitions(
    topic: Topic, first: int, count: int, factor: int, image: MetadataImage
) -> tuple[Replicas, ...]:
    """Place `count` partitions from number `first` on.

    As in Kafka, they are placed as if the placement of the whole topic had started at partition 0's
    first replica.
    """
    racks = {broker_id: broker.rack for broker_id, broker in image.brokers.items()}
    leaders = [replicas[0] for replicas in topic.assignment[:1] if replicas]
    start = start_index(list(racks), leaders[0]) if leaders else 0
    try:
        return assign_replicas(
            BrokerOrder.of(racks),
            partitions=count,
            replication_factor=factor,
            start=start,
            shift=start,
            first_partition=first,
        )
    except MixedRacksError:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def new_states(
    name: str, assignment: Iterable[tuple[int, Replicas]], image: MetadataImage
) -> list[PartitionRecord]:
    """Return the states of new partitions. A partition without a live replica gets no state."""
    states = []
    for partition, replicas in assignment:
        state = elect_new(replicas, image.brokers, image.controller_epoch)
        if state is not None:
            states.append(PartitionRecord(name, partition, state))
    return states


def start_reassignment(
    topic: Topic, partition: int, change: PartitionAssignment, image: MetadataImage
) -> tuple[PartitionAssignment, PartitionRecord | None]:
    """Return the partition's assignment to write, and its state if the state changes."""
    state, live, epoch = topic.states[partition], image.brokers, image.controller_epoch
    if state.partition_epoch < 0:
        # The partition never had a leader. One of the new replicas will be elected.
        return change, None
    after = begin(state, change, live, epoch)
    if change.is_complete(after, live):  # No replica has to catch up.
        after = complete(state, change, live, epoch)
        change = PartitionAssignment(change.target)
    return change, PartitionRecord(topic.name, partition, after)
