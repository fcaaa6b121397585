"""The leader's ISR: who delays the high watermark, who joins the ISR and who leaves it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bridgehead.kafka_wire.errors import ErrorCode
from data_plane.replication.isr import LeaderIsr

LAG_MS = 10_000


def leader(isr: tuple[int, ...] = (1, 2, 3), end_offset: int = 0, now_ms: int = 0) -> LeaderIsr:
    return LeaderIsr.elected(
        1,
        (1, 2, 3),
        isr,
        leader_epoch=5,
        partition_epoch=8,
        end_offset=end_offset,
        now_ms=now_ms,
    )


def mark(state: LeaderIsr, end: int, now_ms: int = 0, dead: tuple[int, ...] = ()) -> int:
    return state.high_watermark(end, now_ms, LAG_MS, lambda replica: replica not in dead)


def test_high_watermark_waits_for_every_replica_in_sync() -> None:
    state = leader()
    assert mark(state, 10) == -1  # no follower has fetched in this leader epoch
    state.fetched(2, 10, 10, 1)
    assert mark(state, 10) == -1
    state.fetched(3, 7, 10, 1)
    assert mark(state, 10) == 7


def test_follower_outside_the_isr_delays_the_high_watermark_while_caught_up_and_alive() -> None:
    state = leader((1, 2))
    state.fetched(2, 10, 10, 0)
    state.fetched(3, 4, 10, 0)
    assert mark(state, 10) == 10
    state.fetched(3, 10, 10, 5)
    state.fetched(2, 12, 12, 6)
    assert mark(state, 12, 6) == 10
    assert mark(state, 12, 6, dead=(3,)) == 12
    assert mark(state, 12, LAG_MS + 6) == 12


def test_follower_joins_when_it_reaches_the_high_watermark_and_the_epoch_start() -> None:
    state = leader((1, 2), end_offset=8)
    state.fetched(3, 7, 12, 0)
    assert state.expanded(3, 7) is None  # its log ends before the leader epoch's start
    state.fetched(3, 8, 12, 0)
    assert state.expanded(3, 9) is None
    assert state.expanded(3, 8) == (1, 2, 3)
    assert state.expanded(2, 0) is None
    assert state.expanded(4, 0) is None


def test_follower_that_never_fetched_does_not_join_an_empty_log() -> None:
    assert leader((1, 2)).expanded(3, 0) is None


def test_follower_leaves_after_the_maximum_lag() -> None:
    state = leader()
    state.fetched(2, 0, 10, 1_000)
    state.fetched(3, 0, 10, 1_000)
    state.fetched(2, 10, 20, 6_000)  # it has all records that the leader had at 1,000 ms
    assert state.shrunk(20, LAG_MS, LAG_MS) is None
    assert state.shrunk(20, LAG_MS + 1, LAG_MS) == (1, 2)
    assert state.shrunk(20, LAG_MS + 1_001, LAG_MS) == (1,)


def test_idle_follower_at_the_end_of_the_log_stays_in_the_isr() -> None:
    state = leader()
    for replica in (2, 3):
        state.fetched(replica, 20, 20, 0)
    assert state.shrunk(20, 100 * LAG_MS, LAG_MS) is None


def test_high_watermark_waits_for_current_and_proposed_isr_until_the_controller_decides() -> None:
    state = leader((1, 2))
    state.fetched(2, 10, 10, 0)
    state.fetched(3, 5, 10, 0)
    growing = state.propose((1, 2, 3))
    assert (mark(state, 10), state.isr) == (5, (1, 2))
    assert state.expanded(3, 0) is state.shrunk(10, 10**9, LAG_MS) is None
    assert state.accepted(growing, (1, 2, 3), 5, 9)
    assert (state.isr, state.partition_epoch, state.proposal) == ((1, 2, 3), 9, None)
    shrinking = state.propose((1, 2))
    assert mark(state, 10) == 5
    assert state.accepted(shrinking, (1, 2), 5, 10)
    assert mark(state, 10) == 10


def test_response_to_an_outdated_proposal_changes_nothing() -> None:
    state = leader((1, 2))
    old = state.propose((1, 2, 3))
    state.metadata_changed((1, 2, 3), (1,), 9)
    assert (state.isr, state.proposal) == ((1,), None)
    assert not state.accepted(old, (1, 2, 3), 5, 9)
    assert not state.rejected(old, ErrorCode.NOT_CONTROLLER)
    assert state.isr == (1,)


def test_older_metadata_does_not_end_a_proposal() -> None:
    state = leader((1, 2))
    proposal = state.propose((1, 2, 3))
    state.metadata_changed((1, 2, 3), (1,), 8)
    assert (state.isr, state.proposal) == ((1, 2), proposal)


def test_the_controllers_error_decides_whether_a_proposal_is_resent_kept_or_ended() -> None:
    state = leader((1, 2))
    proposal = state.propose((1, 2, 3))
    assert state.rejected(proposal, ErrorCode.NOT_CONTROLLER)
    assert not state.rejected(proposal, ErrorCode.INVALID_UPDATE_VERSION)
    assert state.proposal is proposal
    assert not state.rejected(proposal, ErrorCode.INELIGIBLE_REPLICA)
    assert state.proposal is None


def test_in_a_reassignment_the_leader_tracks_added_replicas_and_forgets_removed_ones() -> None:
    state = leader()
    state.metadata_changed((1, 4), (1,), 9)
    assert state.fetched(4, 3, 3, 0)
    assert not state.fetched(2, 3, 3, 0)


@given(
    ends=st.lists(st.tuples(st.integers(2, 3), st.integers(0, 30)), max_size=20),
    isr=st.sampled_from([(1,), (1, 2), (1, 3), (1, 2, 3)]),
)
def test_committed_records_are_on_every_replica_in_sync(
    ends: list[tuple[int, int]], isr: tuple[int, ...]
) -> None:
    """Whatever followers fetch, the high watermark is never above the log end of an ISR member."""
    state, reached = leader(isr), {2: -1, 3: -1}
    for now_ms, (replica, end) in enumerate(ends):
        state.fetched(replica, end, 30, now_ms)
        reached[replica] = end
        for member in state.maximal_isr - {1}:
            assert mark(state, 30, now_ms) <= reached[member]
