"""What a client says about replicas, checked; and how much of it ZooKeeper can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic
from cluster_model.image import MetadataImage
from cluster_model.records import Replicas
from cluster_model.scala_order import mutable_int_order

# Topic znode, config znode and the parents take few; beyond this the states follow on their own.
PARTITIONS_IN_ONE_MULTI: Final = 150
# A multi holds 900,000 bytes (design 5.4): topic znode, config znode, and the states' share.
_ZNODE_BYTES_MAX: Final = 500_000
_CONFIG_BYTES_MAX: Final = 250_000


def partitions_max(replication_factor: int) -> int:
    """Return how many partitions a topic znode holds: some 12 bytes each, 8 per replica."""
    return _ZNODE_BYTES_MAX // (12 + 8 * replication_factor)


def too_many_partitions(partitions: int) -> ApiError:
    """Kafka tries, and its controller hangs on the znode that ZooKeeper does not take."""
    return ApiError(
        ErrorCode.INVALID_PARTITIONS,
        f"A topic of {partitions} partitions does not fit into its znode.",
    )


def check_room(name: str, assignment: tuple[Replicas, ...], configs: Mapping[str, str]) -> None:
    """Refuse a topic that one multi cannot hold; ZooKeeper drops the session of a larger one."""
    if len(assignment) > partitions_max(max(map(len, assignment))):
        raise too_many_partitions(len(assignment))
    # A character takes up to six bytes in JSON, where it is escaped.
    if 6 * sum(len(key) + len(value) + 6 for key, value in configs.items()) > _CONFIG_BYTES_MAX:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"The configs of topic '{name}' do not fit into their znode."
        )


def given_assignment(topic: CreatableTopic) -> dict[int, Replicas]:
    """Return the replicas that a client gave each partition, by its number, once Kafka takes them.

    What Kafka takes may still be unusable: see `usable_assignment`.
    """
    # Where a partition comes twice the last one counts, as in Kafka.
    by_number = {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
    if len({len(replicas) for replicas in by_number.values()}) > 1:
        raise _assignment("All partitions should have the same number of replicas")
    if any(len(set(replicas)) != len(replicas) for replicas in by_number.values()):
        raise _assignment(f"Duplicate replica assignment found: {_scala(by_number)}")
    # Kafka adds numbers up where it could look at them: negative ones count for nothing.
    if sum(number for number in by_number if number > 0) != sum(range(len(by_number))):
        raise _not_consecutive()
    return by_number


def usable_assignment(
    by_number: Mapping[int, Replicas], image: MetadataImage, *, unusable_too: bool
) -> tuple[Replicas, ...]:
    """Return it in the order of the partitions, if a topic can live on it.

    Kafka takes negative ids, no ids at all, and ids of which no broker lives; its controller then
    chokes on the topic (kafka-semantics 9.7). Those are refused here, unless the quirk is asked
    for (`unusable_too`), and negative partitions always: docs/differences.md.
    """
    if min(by_number) < 0:  # Without those, distinct numbers that add up are consecutive.
        raise _not_consecutive()
    for number, replicas in () if unusable_too else sorted(by_number.items()):
        if not replicas:
            raise _assignment(f"Partition {number} has no replicas.")
        if min(replicas) < 0:
            raise _assignment(f"Partition {number} names a negative broker id.")
        if not any(replica in image.brokers for replica in replicas):
            raise _assignment(f"No broker in the replica list of partition {number} is alive.")
    return tuple(by_number[number] for number in range(len(by_number)))


def _not_consecutive() -> ApiError:
    return _assignment("partitions should be a consecutive 0-based integer sequence")


def _assignment(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _scala(assignment: Mapping[int, Replicas]) -> str:
    """Render as Kafka's text does, which is Scala's rendering of its maps."""
    parts = (
        f"{number} -> ArrayBuffer({', '.join(map(str, assignment[number]))})"
        for number in mutable_int_order(assignment)
    )
    return f"HashMap({', '.join(parts)})"
