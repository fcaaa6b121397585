"""Leader election and ISR changes of a partition (docs/kafka/partitions.md#leader-elections).

Without the data plane a live replica counts as caught up: the replicas of a broker join the ISR
when the broker starts. With the data plane (`stores_records`) only the leader extends the ISR, with
AlterPartition. In both cases the replicas of a broker leave the ISR when the broker stops, but the
last member of an ISR stays.
"""

from __future__ import annotations

from collections.abc import Container

from cluster_model.records import NO_LEADER, PartitionState, Replicas


def elect_new(
    assignment: Replicas, live: Container[int], controller_epoch: int
) -> PartitionState | None:
    """Return the first state of a new partition; None if no replica is live."""
    isr = tuple(replica for replica in assignment if replica in live)
    if not isr:
        return None
    return PartitionState(isr[0], 0, isr, controller_epoch, 0)


def react_to_live_brokers(
    state: PartitionState,
    assignment: Replicas,
    live: Container[int],
    *,
    controller_epoch: int,
    unclean: bool,
    stores_records: bool = False,
) -> PartitionState | None:
    """Return the state for these live brokers; None if it does not change."""
    if state.partition_epoch < 0:
        return elect_new(assignment, live, controller_epoch)
    alive = tuple(replica for replica in assignment if replica in live)
    if not alive:
        return _without_replicas(state, controller_epoch)
    leader, recovering = state.leader, state.recovering
    if leader not in alive:
        clean = next((replica for replica in alive if replica in state.isr), NO_LEADER)
        if clean == NO_LEADER and unclean:
            # The new leader is the only member of the ISR, and is marked as recovering.
            return _next(state, alive[0], (alive[0],), controller_epoch, recovering=True)
        leader, recovering = clean, False
    if leader == NO_LEADER:
        return _without_replicas(state, controller_epoch)
    if stores_records:
        isr = tuple(replica for replica in state.isr if replica in alive)
        if (leader, isr) == (state.leader, state.isr):
            return None
        return _next(state, leader, isr, controller_epoch, recovering=state.recovering)
    if leader == state.leader and alive == state.isr and not recovering:
        return None
    return _next(state, leader, alive, controller_epoch, recovering=False)


def elect_preferred(
    state: PartitionState, assignment: Replicas, live: Container[int], controller_epoch: int
) -> PartitionState | None:
    """Return the state led by the first replica; None unless that replica is live and in sync."""
    preferred = assignment[0] if assignment else NO_LEADER
    if state.partition_epoch < 0 or preferred not in live or preferred not in state.isr:
        return None
    return _next(state, preferred, state.isr, controller_epoch, recovering=state.recovering)


def elect_unclean(
    state: PartitionState,
    assignment: Replicas,
    live: Container[int],
    controller_epoch: int,
    *,
    stores_records: bool = False,
) -> PartitionState | None:
    """Return the state with a live leader, preferably one in sync.

    Return None if no replica is live, or if the state does not change.
    """
    after = react_to_live_brokers(
        state,
        assignment,
        live,
        controller_epoch=controller_epoch,
        unclean=True,
        stores_records=stores_records,
    )
    return after if after is not None and after.leader != NO_LEADER else None


def _without_replicas(state: PartitionState, controller_epoch: int) -> PartitionState | None:
    """Return the state without a leader, with one ISR member; None if it had no leader before."""
    if state.leader == NO_LEADER:
        return None
    kept = state.isr if len(state.isr) <= 1 else (state.leader,)
    return _next(state, NO_LEADER, kept, controller_epoch, recovering=state.recovering)


def _next(
    state: PartitionState,
    leader: int,
    isr: Replicas,
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionState:
    return PartitionState(
        leader,
        state.leader_epoch + 1,
        isr,
        controller_epoch,
        state.partition_epoch + 1,
        recovering,
    )
