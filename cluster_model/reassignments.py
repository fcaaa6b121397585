"""What a reassignment makes of a partition, step by step (kafka-semantics 3.12, 5.5). Pure.

A partition under reassignment has all its old and new replicas in `replicas`, the new ones in
`adding`, the old ones that go in `removing`. Without a data plane a live replica counts as caught
up (design 5.10): new replicas join the ISR as soon as they live, and once every target replica is
in it the old ones go. Kafka names the target first in `replicas`, then what is left of the old.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from cluster_model.image import Topic
from cluster_model.records import NO_LEADER, AssignmentRecord, PartitionState, Replicas


class PartitionAssignment(NamedTuple):
    """The replicas of one partition, as its topic's znode has them."""

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()

    @classmethod
    def of(cls, topic: Topic, partition: int) -> PartitionAssignment:
        """Return what a topic says of one of its partitions."""
        return cls(
            topic.assignment[partition],
            topic.adding.get(partition, ()),
            topic.removing.get(partition, ()),
        )

    @property
    def is_reassigning(self) -> bool:
        """True while replicas are to come or to go."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> Replicas:
        """The replicas once it is over."""
        return _without(self.replicas, self.removing)

    @property
    def origin(self) -> Replicas:
        """The replicas as they were before it began; a cancellation goes back to them."""
        return _without(self.replicas, self.adding)

    def reassign_to(self, target: Replicas) -> PartitionAssignment:
        """Return what the znode says when the way to `target` begins.

        On top of a running reassignment the origin stays what it was.
        """
        origin = self.origin
        replicas = tuple(dict.fromkeys(target + origin))
        return PartitionAssignment(replicas, _without(replicas, origin), _without(replicas, target))

    def is_complete(self, state: PartitionState, live: Container[int]) -> bool:
        """True when every target replica lives and is in sync."""
        return all(replica in live and replica in state.isr for replica in self.target)


def _without(replicas: Replicas, others: Replicas) -> Replicas:
    return tuple(replica for replica in replicas if replica not in others)


def reassignments(topic: Topic) -> list[int]:
    """Return the partitions of a topic that are under reassignment, in order."""
    return sorted(topic.adding.keys() | topic.removing.keys())


def reassigned(topic: Topic, changes: Mapping[int, PartitionAssignment]) -> AssignmentRecord:
    """Return the record that rewrites a topic's znode with `changes` in it."""
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
    """Return the state when `after` begins: replicas in neither of its sets leave at once.

    Those are what an overridden reassignment had added. Leader and ISR stay otherwise; the leader
    epoch steps in any case, as Kafka tells the replicas of the change that way.
    """
    return _narrowed(state, after.replicas, after.target, live, controller_epoch)


def join(
    state: PartitionState,
    assignment: PartitionAssignment,
    live: Container[int],
    controller_epoch: int,
) -> PartitionState | None:
    """Return the state with the live replicas in the ISR; None when there is nothing to write.

    Only a leader can let them in. It does so without a new leader epoch.
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
    """Return the state when the old replicas are gone; the target leads from now on."""
    return _narrowed(state, assignment.target, assignment.target, live, controller_epoch)


def _narrowed(
    state: PartitionState,
    replicas: Replicas,
    candidates: Replicas,
    live: Container[int],
    controller_epoch: int,
) -> PartitionState:
    # The last member of an ISR is remembered even when it goes: only it has everything.
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
