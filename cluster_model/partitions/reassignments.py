"""The steps of a partition reassignment (docs/kafka/partitions.md). Pure functions.

During a reassignment, `replicas` has the target replicas, followed by the old replicas that are not
in the target. `adding` has the replicas that are added, `removing` those that will be removed. When
the ISR has all target replicas, the old ones are removed. Without the data plane a live replica
counts as caught up: the controller adds it to the ISR (`join`). With the data plane only the leader
adds it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from cluster_model.image import Topic
from cluster_model.records import NO_LEADER, AssignmentRecord, PartitionState, Replicas


class PartitionAssignment(NamedTuple):
    """The replicas of one partition in the topic znode."""

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()

    @classmethod
    def of(cls, topic: Topic, partition: int) -> PartitionAssignment:
        """Return the assignment of one partition of a topic."""
        return cls(
            topic.assignment[partition],
            topic.adding.get(partition, ()),
            topic.removing.get(partition, ()),
        )

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> Replicas:
        """The replicas after the reassignment."""
        return _without(self.replicas, self.removing)

    @property
    def origin(self) -> Replicas:
        """The replicas before the reassignment, which a cancellation restores."""
        return _without(self.replicas, self.adding)

    def reassign_to(self, target: Replicas) -> PartitionAssignment:
        """Return the assignment that starts a reassignment to `target`.

        If a reassignment is running already, its origin is also the origin of the new one.
        """
        origin = self.origin
        replicas = tuple(dict.fromkeys(target + origin))
        return PartitionAssignment(replicas, _without(replicas, origin), _without(replicas, target))

    def is_complete(self, state: PartitionState, live: Container[int]) -> bool:
        """Return whether every target replica is live and in sync."""
        return all(replica in live and replica in state.isr for replica in self.target)


def _without(replicas: Replicas, others: Replicas) -> Replicas:
    left_out = frozenset(others)  # A request may name a million replicas.
    return tuple(replica for replica in replicas if replica not in left_out)


def reassignments(topic: Topic) -> list[int]:
    """Return the partitions of a topic that are being reassigned, sorted."""
    return sorted(topic.adding.keys() | topic.removing.keys())


def reassigned(topic: Topic, changes: Mapping[int, PartitionAssignment]) -> AssignmentRecord:
    """Return the record that applies `changes` to a topic."""
    assignment = list(topic.assignment)
    adding, removing = dict(topic.adding), dict(topic.removing)
    for partition, change in changes.items():
        assignment[partition] = change.replicas
        for kept, replicas in ((adding, change.adding), (removing, change.removing)):
            if replicas:
                kept[partition] = replicas
            else:
                kept.pop(partition, None)
    return AssignmentRecord(topic.name, tuple(assignment), adding, removing)


def begin(
    state: PartitionState, after: PartitionAssignment, live: Container[int], controller_epoch: int
) -> PartitionState:
    """Return the partition's state at the start of the reassignment `after`.

    If `after` overrides an earlier reassignment, replicas that only the earlier one added leave the
    ISR. The leader epoch always increases; this is how Kafka notifies the replicas.
    """
    return _narrowed(state, after.replicas, after.target, live, controller_epoch)


def join(
    state: PartitionState,
    assignment: PartitionAssignment,
    live: Container[int],
    controller_epoch: int,
) -> PartitionState | None:
    """Return the state with all live replicas in the ISR; None if it does not change.

    Without a live leader it does not change. The leader epoch stays the same.
    """
    new = tuple(r for r in assignment.replicas if r in live and r not in state.isr)
    if not new or state.leader not in assignment.replicas or state.leader not in live:
        return None
    return state._replace(
        isr=state.isr + new,
        controller_epoch=controller_epoch,
        partition_epoch=state.partition_epoch + 1,
    )


def complete(
    state: PartitionState,
    assignment: PartitionAssignment,
    live: Container[int],
    controller_epoch: int,
) -> PartitionState:
    """Return the state without the old replicas, led by a target replica."""
    return _narrowed(state, assignment.target, assignment.target, live, controller_epoch)


def _narrowed(
    state: PartitionState,
    replicas: Replicas,
    candidates: Replicas,
    live: Container[int],
    controller_epoch: int,
) -> PartitionState:
    # If no ISR member is in `replicas`, one member stays: only ISR members have all records.
    isr = tuple(replica for replica in state.isr if replica in replicas) or state.isr[:1]
    leader = state.leader
    if leader not in replicas or leader not in live:
        leader = next((r for r in candidates if r in isr and r in live), NO_LEADER)
    return PartitionState(
        leader,
        state.leader_epoch + 1,
        isr,
        controller_epoch,
        state.partition_epoch + 1,
        state.recovering,
    )
