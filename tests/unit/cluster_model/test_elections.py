"""Leaders and ISRs as brokers start and stop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_model.partitions.elections import elect_new, react_to_live_brokers
from cluster_model.records import NO_LEADER, NO_STATE, PartitionState, Replicas


def state(leader: int, isr: Replicas, *, recovering: bool = False) -> PartitionState:
    return PartitionState(leader, 5, isr, 1, 7, recovering)


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    """The ISR has all live replicas in the order of the assignment; epochs start at 0."""
    assert elect_new((3, 1, 2), {1, 2}, 4) == PartitionState(1, 0, (1, 2), 4, 0)


def test_a_new_partition_without_a_live_replica_has_no_state() -> None:
    assert elect_new((3, 1), {2}, 4) is None
    assert react_to_live_brokers(NO_STATE, (3, 1), {2}, controller_epoch=4, unclean=True) is None
    came = react_to_live_brokers(NO_STATE, (3, 1), {1}, controller_epoch=4, unclean=False)
    assert came == PartitionState(1, 0, (1,), 4, 0)


def test_an_election_does_not_depend_on_the_epoch_of_the_last_controller() -> None:
    """KRaft's epoch may be higher. Kafka aborts the election; our fence is the znode's version."""
    of_kraft = state(1, (1, 2, 3))._replace(controller_epoch=900)
    elected = react_to_live_brokers(
        of_kraft, (1, 2, 3), {2, 3}, controller_epoch=6, unclean=False, stores_records=True
    )
    assert elected is not None
    assert (elected.leader, elected.leader_epoch, elected.controller_epoch) == (2, 6, 6)


REACTIONS = {
    "nothing changed": (state(1, (1, 2, 3)), {1, 2, 3}, False, None),
    "leader stopped": (state(1, (1, 2, 3)), {2, 3}, False, (2, (2, 3), False)),
    "follower stopped": (state(1, (1, 2, 3)), {1, 3}, False, (1, (1, 3), False)),
    "follower came back": (state(2, (2,)), {1, 2}, False, (2, (1, 2), False)),
    "all stopped": (state(1, (1, 2)), set(), False, (NO_LEADER, (1,), False)),
    "last replica stopped": (state(3, (3,)), {9}, False, (NO_LEADER, (3,), False)),
    "still offline": (state(NO_LEADER, (3,)), {1, 2}, False, None),
    "offline, its last replica came back": (state(NO_LEADER, (3,)), {3}, False, (3, (3,), False)),
    "only replicas outside the ISR are live": (
        state(1, (1,)),
        {2, 3},
        False,
        (NO_LEADER, (1,), False),
    ),
    "only replicas outside the ISR are live, unclean enabled": (
        state(1, (1,)),
        {2, 3},
        True,
        (2, (2,), True),
    ),
    "offline, unclean enabled": (state(NO_LEADER, (1,)), {3}, True, (3, (3,), True)),
    "recovered from unclean": (state(3, (3,), recovering=True), {3}, True, (3, (3,), False)),
}


@pytest.mark.parametrize("name", REACTIONS)
def test_leader_and_isr_change_with_the_live_brokers(name: str) -> None:
    """Each change increments the leader epoch and the partition epoch."""
    before, live, unclean, expected = REACTIONS[name]
    after = react_to_live_brokers(before, (1, 2, 3), live, controller_epoch=9, unclean=unclean)
    if expected is None:
        assert after is None
    else:
        leader, isr, recovering = expected
        assert after == PartitionState(leader, 6, isr, 9, 8, recovering)


@given(
    isr=st.sets(st.integers(1, 4), min_size=1),
    live=st.sets(st.integers(1, 5)),
    led=st.booleans(),
    unclean=st.booleans(),
)
def test_reactions_keep_the_invariants_and_converge(
    isr: set[int], live: set[int], led: bool, unclean: bool
) -> None:
    """A leader is live and in the ISR. Only unclean elections choose a leader outside the ISR."""
    assignment = (4, 2, 1, 3)
    members = tuple(replica for replica in assignment if replica in isr)
    before = state(members[0] if led else NO_LEADER, members)
    settled = before
    for _ in range(3):  # An unclean leader recovers, then the others join the ISR.
        after = react_to_live_brokers(
            settled, assignment, live, controller_epoch=2, unclean=unclean
        )
        if after is None:
            break
        assert after.isr
        assert after.leader == NO_LEADER or (after.leader in live and after.leader in after.isr)
        assert after.leader in isr | {NO_LEADER} or unclean
        settled = after
    else:
        pytest.fail("no stable state")


WITH_RECORDS = {
    "a live replica may lack records": (state(1, (1,)), {1, 2, 3}, False, None),
    "a stopped follower leaves": (state(1, (1, 2, 3)), {1, 3}, False, (1, (1, 3), False)),
    "a stopped leader is replaced by one in sync": (
        state(1, (1, 3)),
        {2, 3},
        False,
        (3, (3,), False),
    ),
    "no replica in sync is alive": (state(1, (1,)), {2, 3}, False, (NO_LEADER, (1,), False)),
    "the last replica in sync returns": (state(NO_LEADER, (1,)), {1, 2}, False, (1, (1,), False)),
    "unclean": (state(1, (1,)), {2, 3}, True, (2, (2,), True)),
    "the leader ends its recovery itself": (state(2, (2,), recovering=True), {2}, True, None),
}


@pytest.mark.parametrize("name", WITH_RECORDS)
def test_only_the_leader_extends_the_isr_if_records_are_stored(name: str) -> None:
    before, live, unclean, expected = WITH_RECORDS[name]
    after = react_to_live_brokers(
        before, (1, 2, 3), live, controller_epoch=9, unclean=unclean, stores_records=True
    )
    if expected is None:
        assert after is None
    else:
        leader, isr, recovering = expected
        assert after == PartitionState(leader, 6, isr, 9, 8, recovering)
