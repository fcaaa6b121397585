"""A follower's log is truncated where it differs from the leader's log. KIP-101, KIP-279."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_plane.log.epochs import EpochStart, LeaderEpochs
from data_plane.replication.fetching import truncation


def epochs(*starts: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs([EpochStart(*start) for start in starts])


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ((5, 120), 120),  # the leader lost its records of epoch 5 from 120 on
        ((5, 300), 200),  # the leader's epoch 5 ends later
        ((4, 90), 90),  # the leader has nothing of epoch 5
        ((4, 150), 100),  # epoch 4 ends at 100 in this log, at 150 in the leader's log
        (
            (3, 70),
            60,
        ),  # this log has no epoch 3, so it keeps only the records up to the end of epoch 2
        ((1, 0), 0),  # before the first epoch of this log
    ],
)
def test_log_is_truncated_where_the_leader_differs(
    response: tuple[int, int], expected: int
) -> None:
    own_epochs = epochs((2, 10), (4, 60), (5, 100))
    assert truncation(own_epochs, 200, *response) == expected


# The history of a log, as one pair for each of its leader epochs: the difference from the previous
# epoch, and the number of records.
HISTORIES = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=6)


def log_of(steps: list[tuple[int, int]], first_epoch: int) -> list[int]:
    """Return the epoch of each record."""
    records, epoch = [], first_epoch
    for step, count in steps:
        epoch += step
        records += [epoch] * count
    return records


def epochs_of(records: list[int]) -> LeaderEpochs:
    result = LeaderEpochs()
    for offset, epoch in enumerate(records):
        result.assign(epoch, offset)
    return result


@given(common=HISTORIES, own_terms=HISTORIES, others=HISTORIES)
def test_repeated_truncation_leaves_a_common_prefix(
    common: list[tuple[int, int]],
    own_terms: list[tuple[int, int]],
    others: list[tuple[int, int]],
) -> None:
    """Two leaders never have the same epoch, so records with equal offset and epoch are equal."""
    shared = log_of(common, 0)
    last = shared[-1] if shared else 0
    follower = shared + [epoch * 2 for epoch in log_of(own_terms, last)]
    leader = shared + [epoch * 2 + 1 for epoch in log_of(others, last)]
    leader_epochs = epochs_of(leader)
    leader_epochs.assign(100, len(leader))
    for _ in range(20):
        latest = follower[-1] if follower else -1
        epoch, end = leader_epochs.end_offset(latest, len(leader))
        if latest < 0 or (epoch == latest and end >= len(follower)):
            break
        shorter = truncation(epochs_of(follower), len(follower), epoch, end)
        assert shorter < len(follower)
        follower = follower[:shorter]
    assert follower == leader[: len(follower)]
    assert len(follower) >= len(shared) or follower == shared[: len(follower)]
