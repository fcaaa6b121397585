"""Replica placement: Kafka's examples, and invariants for any cluster."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_model.partitions.placement import (
    BrokerOrder,
    MixedRacksError,
    alternate_racks,
    assign_replicas,
    start_index,
)

FIVE = BrokerOrder.of(dict.fromkeys(range(5)))


def test_leaders_rotate_over_brokers_and_followers_shift_after_each_rotation() -> None:
    """The example in Kafka's documentation: five brokers, ten partitions, three replicas."""
    assignment = assign_replicas(FIVE, partitions=10, replication_factor=3, start=0, shift=0)
    assert assignment[:5] == ((0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1))
    assert assignment[5:] == ((0, 2, 3), (1, 3, 4), (2, 4, 0), (3, 0, 1), (4, 1, 2))


def test_brokers_alternate_between_racks() -> None:
    racks = {0: "r1", 1: "r1", 2: "r1", 3: "r2", 4: "r2", 5: "r2", 6: "r3", 7: "r3", 8: "r3"}
    assert alternate_racks(racks) == [0, 3, 6, 1, 4, 7, 2, 5, 8]
    assert alternate_racks({1: "b", 2: "a", 3: "a"}) == [2, 1, 3]


def test_racks_on_only_some_brokers_are_an_error() -> None:
    with pytest.raises(MixedRacksError):
        BrokerOrder.of({1: "a", 2: None})


def test_added_partitions_continue_the_placement() -> None:
    """With the same start and shift, 2 and then 4 partitions are placed like 6 created at once."""
    whole = assign_replicas(FIVE, partitions=6, replication_factor=2, start=3, shift=3)
    first = assign_replicas(FIVE, partitions=2, replication_factor=2, start=3, shift=3)
    more = assign_replicas(
        FIVE, partitions=4, replication_factor=2, start=3, shift=3, first_partition=2
    )
    assert first + more == whole


@pytest.mark.parametrize(("first_replica", "index"), [(1, 0), (3, 1), (4, 2), (9, 0)])
def test_added_partitions_start_at_the_first_replica_of_partition_0_or_the_next_id(
    first_replica: int, index: int
) -> None:
    assert start_index([5, 1, 3], first_replica) == index


@given(
    racks=st.dictionaries(st.integers(0, 40), st.sampled_from("abcd"), min_size=1, max_size=12),
    partitions=st.integers(1, 40),
    data=st.data(),
)
def test_replicas_are_distinct_and_use_as_many_racks_as_possible(
    racks: dict[int, str], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    start, shift = data.draw(st.integers(0, len(racks) - 1)), data.draw(st.integers(0, 50))
    assignment = assign_replicas(
        BrokerOrder.of(racks),
        partitions=partitions,
        replication_factor=factor,
        start=start,
        shift=shift,
    )
    assert len(assignment) == partitions
    for replicas in assignment:
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(racks)
        assert len({racks[r] for r in replicas}) == min(factor, len(set(racks.values())))


@given(count=st.integers(1, 12), rounds=st.integers(1, 4), start=st.integers(0, 11))
def test_leaders_are_spread_evenly(count: int, rounds: int, start: int) -> None:
    assignment = assign_replicas(
        BrokerOrder.of(dict.fromkeys(range(count))),
        partitions=count * rounds,
        replication_factor=1,
        start=start % count,
        shift=0,
    )
    assert set(Counter(replicas[0] for replicas in assignment).values()) == {rounds}
