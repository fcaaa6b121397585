"""Replica placement (docs/kafka/partitions.md#replica-placement). Random numbers are arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from cluster_model.records import Replicas


class MixedRacksError(Exception):
    """Only some brokers have a rack; Kafka answers UNKNOWN_SERVER_ERROR."""


def _replica_index(first: int, shift: int, step: int, count: int) -> int:
    return (first + 1 + (shift + step) % (count - 1)) % count


@dataclass(frozen=True, slots=True)
class BrokerOrder:
    """The brokers in placement order."""

    brokers: tuple[int, ...]
    racks: Mapping[int, str] | None  # None: no broker has a rack

    @classmethod
    def of(cls, racks: Mapping[int, str | None]) -> BrokerOrder:
        """Order the brokers in `racks` (broker id to rack) by id.

        If the brokers have racks, take one broker of each rack in turn.

        Raises:
            MixedRacksError: some but not all brokers have a rack.
        """
        named = {broker: rack for broker, rack in racks.items() if rack is not None}
        if not named:
            return cls(tuple(sorted(racks)), None)
        if len(named) != len(racks):
            raise MixedRacksError("Not all brokers have rack information")
        return cls(tuple(alternate_racks(named)), named)


def assign_replicas(
    order: BrokerOrder,
    *,
    partitions: int,
    replication_factor: int,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> tuple[Replicas, ...]:
    """Return the replicas of each partition, spread over the brokers.

    For a new topic, `start` and `shift` are random numbers below the number of brokers. For added
    partitions both are the result of `start_index`. `replication_factor` must not be above the
    number of brokers.
    """
    if order.racks is None:
        return _unaware(
            order.brokers, partitions, replication_factor, start, shift, first_partition
        )
    return _aware(
        order.brokers, order.racks, partitions, replication_factor, start, shift, first_partition
    )


def _unaware(
    brokers: Sequence[int], partitions: int, factor: int, start: int, shift: int, at: int
) -> tuple[Replicas, ...]:
    count = len(brokers)
    assignment = []
    for partition in range(at, at + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        others = (_replica_index(first, shift, step, count) for step in range(factor - 1))
        assignment.append((brokers[first], *(brokers[index] for index in others)))
    return tuple(assignment)


def alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """Return the brokers, one from each rack in turn."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]


def _aware(
    brokers: Sequence[int],
    racks: Mapping[int, str],
    partitions: int,
    factor: int,
    start: int,
    shift: int,
    at: int,
) -> tuple[Replicas, ...]:
    rack_count, count = len(set(racks.values())), len(brokers)
    assignment = []
    for partition in range(at, at + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        replicas = [brokers[first]]
        racks_used, step = {racks[brokers[first]]}, 0
        while len(replicas) < factor:
            broker = brokers[_replica_index(first, shift * rack_count, step, count)]
            step += 1
            fresh_rack = racks[broker] not in racks_used or len(racks_used) == rack_count
            if fresh_rack and (broker not in replicas or len(replicas) == count):
                replicas.append(broker)
                racks_used.add(racks[broker])
        assignment.append(tuple(replicas))
    return tuple(assignment)


def start_index(brokers: Sequence[int], first_replica: int) -> int:
    """Return the index of the first broker whose id is at least `first_replica`; 0 if none is."""
    for index, broker in enumerate(sorted(brokers)):
        if broker >= first_replica:
            return index
    return 0
