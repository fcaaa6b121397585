"""The in-sync replicas of a partition, as its leader sees them. Pure: times are arguments.

Source: `Partition` and `Replica` of Kafka 3.9. A follower is caught up if it had all records of the
leader at some time in the last replica.lag.time.max.ms. The leader proposes changes of the ISR to
the controller, one at a time (KIP-497). Until the controller has decided, a replica counts as in
sync for the high watermark if it is in the ISR before or after the change: the larger set is safe
whatever the controller decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bridgehead.kafka_wire.errors import ErrorCode
from cluster_model.records import Replicas

UNKNOWN_OFFSET: Final = -1
_NEVER_MS: Final = -(2**62)
# These errors show that the proposal changed nothing. The leader may propose the same ISR again.
_ROLLED_BACK: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
# After these errors, the leader waits for a newer state in its metadata.
_OUTDATED: Final = frozenset(
    {
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
    }
)


@dataclass(slots=True)
class Follower:
    """What the leader knows about one follower. Times are monotonic, in milliseconds."""

    end_offset: int = UNKNOWN_OFFSET  # the follower has all records before this offset
    caught_up_ms: int = _NEVER_MS  # when it last had all records
    fetched_ms: int = _NEVER_MS
    leader_end_offset: int = UNKNOWN_OFFSET  # the leader's log end at the last fetch
    log_start_offset: int = UNKNOWN_OFFSET  # as the follower reports it

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        """Record a fetch from `offset`, and the last time when the follower had all records."""
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.leader_end_offset = max(self.leader_end_offset, leader_end_offset)
        self.fetched_ms = now_ms

    def had_all_records(self, at_ms: int) -> None:
        """Record that the follower had all records at `at_ms`; its fetch omitted this partition."""
        self.caught_up_ms = max(self.caught_up_ms, at_ms)

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """Return whether the follower's lag permits it to be in the ISR."""
        return self.end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_max_ms


class Proposal(NamedTuple):
    """A change of the ISR that the controller has not decided yet."""

    isr: Replicas
    leader_epoch: int
    partition_epoch: int


@dataclass(slots=True)
class LeaderIsr:
    """The ISR of one partition during one leader epoch.

    `isr` is the ISR that the controller has committed. `epoch_start_offset` is the log end offset
    when this leader was elected. A follower whose log ends before that offset may have records of
    an earlier leader that this leader lacks.
    """

    broker_id: int
    replicas: Replicas
    isr: Replicas
    leader_epoch: int
    partition_epoch: int
    epoch_start_offset: int
    proposal: Proposal | None = None
    followers: dict[int, Follower] = field(default_factory=dict)

    @classmethod
    def elected(
        cls,
        broker_id: int,
        replicas: Replicas,
        isr: Replicas,
        *,
        leader_epoch: int,
        partition_epoch: int,
        end_offset: int,
        now_ms: int,
    ) -> LeaderIsr:
        """Begin a leader epoch. The followers in the ISR count as caught up at its start."""
        state = cls(broker_id, replicas, isr, leader_epoch, partition_epoch, end_offset)
        for replica in replicas:
            if replica != broker_id:
                since_ms = now_ms if replica in isr else _NEVER_MS
                state.followers[replica] = Follower(caught_up_ms=since_ms)
        return state

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The replicas that may be in the ISR, whatever the controller decides."""
        proposed = self.proposal.isr if self.proposal is not None else ()
        return frozenset(self.isr) | frozenset(proposed)

    def metadata_changed(self, replicas: Replicas, isr: Replicas, partition_epoch: int) -> None:
        """Take the state of the same leader epoch. A newer partition epoch ends a proposal."""
        if partition_epoch > self.partition_epoch:
            self.isr, self.partition_epoch, self.proposal = isr, partition_epoch, None
        self.replicas = replicas
        for replica in self.followers.keys() - set(replicas):
            del self.followers[replica]
        for replica in replicas:
            if replica != self.broker_id:
                self.followers.setdefault(replica, Follower())

    def fetched(self, replica: int, offset: int, leader_end_offset: int, now_ms: int) -> bool:
        """Record that a follower has all records before `offset`; False if it is not a replica."""
        follower = self.followers.get(replica)
        if follower is None:
            return False
        follower.fetched(offset, leader_end_offset, now_ms)
        return True

    def high_watermark(
        self,
        leader_end_offset: int,
        now_ms: int,
        lag_max_ms: int,
        is_live: Callable[[int], bool],
    ) -> int:
        """Return the smallest log end offset of the replicas that the high watermark waits for.

        These are the replicas of `maximal_isr`, and live followers that are caught up. Such a
        follower may soon join the ISR. If the high watermark did not wait for it, the follower
        might never reach the high watermark.
        """
        isr, lowest = self.maximal_isr, leader_end_offset
        for replica, follower in self.followers.items():
            if follower.end_offset < lowest and (
                replica in isr
                or (
                    follower.is_caught_up(leader_end_offset, now_ms, lag_max_ms)
                    and is_live(replica)
                )
            ):
                lowest = follower.end_offset
        return lowest

    # --- Changes -------------------------------------------------------------------------

    def expanded(self, replica: int, high_watermark: int) -> Replicas | None:
        """Return the ISR with this follower; None if the follower may not join now.

        It must have reached the high watermark and the start of the leader epoch.
        """
        follower = self.followers.get(replica)
        if self.proposal is not None or follower is None or replica in self.isr:
            return None
        if follower.end_offset < max(high_watermark, self.epoch_start_offset):
            return None
        return (*self.isr, replica)

    def shrunk(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> Replicas | None:
        """Return the ISR without the followers that lag; None if it need not change."""
        if self.proposal is not None:
            return None
        kept = tuple(
            replica
            for replica in self.isr
            if replica == self.broker_id
            or (
                replica in self.followers
                and self.followers[replica].is_caught_up(leader_end_offset, now_ms, lag_max_ms)
            )
        )
        return None if kept == self.isr else kept

    def propose(self, isr: Replicas) -> Proposal:
        """Begin a change of the ISR."""
        assert self.proposal is None
        self.proposal = Proposal(isr, self.leader_epoch, self.partition_epoch)
        return self.proposal

    def accepted(
        self, proposal: Proposal, isr: Replicas, leader_epoch: int, partition_epoch: int
    ) -> bool:
        """Take the controller's state after a proposal; False if the proposal is outdated."""
        if self.proposal is not proposal or leader_epoch != self.leader_epoch:
            return False
        if partition_epoch < self.partition_epoch:
            return False
        self.isr, self.partition_epoch, self.proposal = isr, partition_epoch, None
        return True

    def rejected(self, proposal: Proposal, error: ErrorCode) -> bool:
        """Take the controller's error; return whether the same proposal must be sent again."""
        if self.proposal is not proposal or error in _OUTDATED:
            return False
        if error in _ROLLED_BACK:
            self.proposal = None
            return False
        return True
