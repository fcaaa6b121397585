"""One replica of a partition: its role, its log, its high watermark and the waiting requests.

The role comes from the metadata image. The leader appends. The leader's high watermark never goes
back; `replication.isr` decides which replicas must have a record before the high watermark passes
that record. Used from the event loop only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.slices import in_slices
from cluster_model.records import Replicas
from data_plane.log.partition_log import AppendInfo, PartitionLog
from data_plane.records.validation import Batch
from data_plane.replication.isr import Follower, LeaderIsr

ALL: Final = -1  # acks of all in-sync replicas
_ANY_EPOCH: Final = -1
_NO_LEADER: Final = -1


class PartitionView(Protocol):
    """One partition in the metadata image."""

    @property
    def leader(self) -> int:
        """A broker id; -1 for none."""

    @property
    def leader_epoch(self) -> int:
        """Increases with every election of a leader."""

    @property
    def partition_epoch(self) -> int:
        """Increases with every change of the state; it is the version of the state's znode."""

    @property
    def replicas(self) -> Replicas:
        """The assigned brokers."""

    @property
    def isr(self) -> Replicas:
        """The in-sync replicas."""


class IsrPort(Protocol):
    """What a leader needs to maintain its ISR."""

    @property
    def lag_max_ms(self) -> int:
        """replica.lag.time.max.ms."""

    def now_ms(self) -> int:
        """Return the monotonic time in milliseconds."""

    def is_live(self, broker_id: int) -> bool:
        """Return whether a broker is registered, according to this broker's metadata."""

    def propose(self, partition: Partition, isr: Replicas) -> None:
        """Propose an ISR to the controller."""


class WaitingAppend(NamedTuple):
    """A waiting append with acks=all: its last offset, and a future with its error code."""

    offset: int
    done: asyncio.Future[ErrorCode]


class Partition:
    """This broker's replica of one partition."""

    __slots__ = (
        *("_committed", "_isr", "_isrs", "_watchers", "broker_id", "high_watermark", "isr_state"),
        *("leader", "leader_epoch", "log", "number", "partition_epoch", "replicas", "topic"),
    )

    def __init__(
        self, broker_id: int, log: PartitionLog, high_watermark: int, isrs: IsrPort
    ) -> None:
        self.broker_id = broker_id
        self.log = log
        self.topic, self.number = log.name
        self.leader = _NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: Replicas = ()
        self.isr_state: LeaderIsr | None = None  # None: this broker does not lead
        self._isr: Replicas = ()
        self._isrs = isrs
        self.high_watermark = min(max(high_watermark, log.start_offset), log.end_offset)
        self._committed: Sequence[WaitingAppend] = ()
        # In the order of registration. None: no watcher.
        self._watchers: dict[Callable[[], None], None] | None = None

    def __str__(self) -> str:
        return str(self.log)

    @property
    def is_leader(self) -> bool:
        """True while this broker is the leader."""
        return self.leader == self.broker_id

    @property
    def isr(self) -> Replicas:
        """The in-sync replicas that the controller has committed, as far as this broker knows."""
        return self._isr if self.isr_state is None else self.isr_state.isr

    # --- Role ----------------------------------------------------------------------------

    def apply(self, view: PartitionView) -> bool:
        """Take the role from the metadata image; return whether the leader or its epoch changed.

        A view is ignored if its leader epoch is older, or if the leader epoch is the same and the
        partition epoch is older.

        Raises:
            OSError: the leader epoch could not be stored. The role has not changed.
        """
        if (view.leader_epoch, view.partition_epoch) < (self.leader_epoch, self.partition_epoch):
            return False
        changed = (view.leader, view.leader_epoch) != (self.leader, self.leader_epoch)
        if not changed and self._is_known(view):
            return False
        if changed and view.leader == self.broker_id:
            self.log.begin_epoch(view.leader_epoch, self.log.end_offset)
        before = self.replicas, self.isr
        self.leader, self.leader_epoch = view.leader, view.leader_epoch
        self.partition_epoch = view.partition_epoch
        self.replicas, self._isr = view.replicas, view.isr
        if not changed:
            if self.isr_state is not None:
                self.isr_state.metadata_changed(view.replicas, view.isr, view.partition_epoch)
        elif self.is_leader:
            self.isr_state = LeaderIsr.elected(
                self.broker_id,
                view.replicas,
                view.isr,
                leader_epoch=view.leader_epoch,
                partition_epoch=view.partition_epoch,
                end_offset=self.log.end_offset,
                now_ms=self._isrs.now_ms(),
            )
        else:
            self.isr_state = None
            self._release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.advance_high_watermark()
        if changed or before != (self.replicas, self.isr):
            self.notify()
        return changed

    def _is_known(self, view: PartitionView) -> bool:
        """Return whether a view of the same leader epoch has nothing new."""
        return (
            view.partition_epoch == self.partition_epoch
            and view.replicas == self.replicas
            and view.isr == self._isr
        )

    def require_leader(self, epoch: int = _ANY_EPOCH) -> None:
        """Check the client's leader epoch (see `check_epoch`), then check that this broker leads.

        Raises:
            ApiError: the epoch differs (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH), or this broker
                does not lead (NOT_LEADER_OR_FOLLOWER).
        """
        self.check_epoch(epoch)
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_epoch(self, epoch: int) -> None:
        """Compare the client's leader epoch, if it is not negative, with our own (KIP-320).

        Raises:
            ApiError: the client's epoch is older (FENCED_LEADER_EPOCH) or newer
                (UNKNOWN_LEADER_EPOCH).
        """
        if 0 <= epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        if epoch > self.leader_epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    # --- Appending -----------------------------------------------------------------------

    async def validate(self, records: bytes, acks: int, now_ms: int) -> list[Batch]:
        """Return validated records, which only `append` may fail.

        Raises:
            ApiError: they cannot be appended.
        """
        self._check_append(acks)
        return await in_slices(self.log.validating(records, now_ms))

    def append(
        self, records: bytes, acks: int, now_ms: int, validated: Sequence[Batch] | None = None
    ) -> AppendInfo:
        """Append records as the leader.

        Raises:
            ApiError: nothing was appended.
        """
        self._check_append(acks)
        info = self.log.append(records, self.leader_epoch, now_ms, validated)
        self.advance_high_watermark()
        self.notify()
        return info

    def _check_append(self, acks: int) -> None:
        self.require_leader()
        if acks == ALL and not self.has_enough_replicas:
            isr = ", ".join(map(str, self.isr))
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR Set({isr}) is insufficient to satisfy the min.isr "
                f"requirement of {self.min_insync_replicas} for partition {self}",
            )

    @property
    def min_insync_replicas(self) -> int:
        """The topic's min.insync.replicas, but at most the number of replicas, as in Kafka."""
        return min(self.log.settings().number("min.insync.replicas"), len(self.replicas))

    @property
    def has_enough_replicas(self) -> bool:
        """Whether the in-sync replicas satisfy min.insync.replicas."""
        return len(self.isr) >= self.min_insync_replicas

    def committed(self, last_offset: int) -> asyncio.Future[ErrorCode]:
        """Return a future with the error of a produce request with acks=all.

        Once the high watermark is above `last_offset`, the error is NONE, or
        NOT_ENOUGH_REPLICAS_AFTER_APPEND if there are too few in-sync replicas by then. If this
        broker stops leading before that, the error is NOT_LEADER_OR_FOLLOWER.
        """
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
        if last_offset < self.high_watermark:
            done.set_result(self._committed_error)
        else:
            self._committed = [*self._committed, WaitingAppend(last_offset, done)]
            done.add_done_callback(lambda _done: self._drop_finished())
        return done

    @property
    def _committed_error(self) -> ErrorCode:
        if self.has_enough_replicas:
            return ErrorCode.NONE
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def _drop_finished(self) -> None:
        self._committed = [waiter for waiter in self._committed if not waiter.done.done()]

    def _release(self, error: ErrorCode) -> None:
        for waiter in self._committed:
            if not waiter.done.done():
                waiter.done.set_result(error)

    # --- The high watermark --------------------------------------------------------------

    def follower_fetched(self, broker_id: int, offset: int) -> None:
        """Record that a follower has everything before `offset`; it may join the ISR."""
        state = self.isr_state
        if state is None or not state.fetched(
            broker_id, offset, self.log.end_offset, self._isrs.now_ms()
        ):
            return
        grown = state.expanded(broker_id, self.high_watermark)
        if grown is not None and self._isrs.is_live(broker_id):
            self._isrs.propose(self, grown)
        self.advance_high_watermark()

    def settled(self, broker_id: int) -> Follower | None:
        """Return the follower if it is in the ISR and has all records, else None."""
        state = self.isr_state
        if state is None or broker_id not in state.isr:
            return None
        follower = state.followers.get(broker_id)
        if follower is None or follower.end_offset != self.log.end_offset:
            return None
        return follower

    def check_lag(self) -> None:
        """Propose an ISR without the followers that lag."""
        if self.isr_state is None:
            return
        isrs = self._isrs
        shrunk = self.isr_state.shrunk(self.log.end_offset, isrs.now_ms(), isrs.lag_max_ms)
        if shrunk is not None:
            isrs.propose(self, shrunk)

    def isr_changed(self) -> None:
        """The controller has decided about this leader's ISR."""
        self.advance_high_watermark()
        self.notify()

    def advance_high_watermark(self) -> None:
        """Move the leader's high watermark forward if all in-sync replicas have records beyond it.

        As in Kafka from 3.7 on, it does not move while the ISR is below min.insync.replicas.
        """
        state = self.isr_state
        # The cheapest check is the first: most partitions have no record above the high watermark.
        if state is None or self.high_watermark >= self.log.end_offset:
            return
        if not self.has_enough_replicas:
            return
        isrs = self._isrs
        lowest = state.high_watermark(
            self.log.end_offset, isrs.now_ms(), isrs.lag_max_ms, isrs.is_live
        )
        if lowest > self.high_watermark:
            self.set_high_watermark(lowest)

    def set_high_watermark(self, offset: int) -> None:
        """Increase the high watermark, at most to the log end; answer the appends below it."""
        self.high_watermark = min(max(offset, self.log.start_offset), self.log.end_offset)
        for waiter in self._committed:
            if waiter.offset < self.high_watermark and not waiter.done.done():
                waiter.done.set_result(self._committed_error)
        self.notify()

    # --- Following -----------------------------------------------------------------------

    def append_as_follower(
        self, records: bytes, high_watermark: int, log_start_offset: int, now_ms: int
    ) -> None:
        """Append what the leader sent; adopt the leader's high watermark and log start offset.

        Raises:
            ApiError: a size is invalid (CORRUPT_MESSAGE), or the disk failed (KAFKA_STORAGE_ERROR).
        """
        if records:
            self.log.append_as_follower(records, now_ms)
        mark = min(high_watermark, self.log.end_offset)
        if mark > self.high_watermark:
            self.set_high_watermark(mark)
        if log_start_offset > self.log.start_offset:
            self.log.advance_start(log_start_offset)
        if records:
            self.notify()

    def truncate_to(self, offset: int) -> None:
        """Remove the records from `offset` on. The leader does not have them."""
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        self.notify()

    def restart_at(self, offset: int) -> None:
        """Empty the log and begin at `offset`, where the leader's log begins."""
        self.log.start_at(offset)
        self.high_watermark = offset
        self.notify()

    # --- Waiting -------------------------------------------------------------------------

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` after every append and truncation, and when the replica stops.

        It is also called after changes of the role, the replicas, the ISR and the high watermark;
        after retention or DeleteRecords has moved the log start offset; and, while a DeleteRecords
        waits, after a follower has reported a new log start offset. It is not called if a follower
        only adopts the leader's log start offset.
        """
        if self._watchers is None:
            self._watchers = {}
        self._watchers[changed] = None

    def unwatch(self, changed: Callable[[], None]) -> None:
        """Stop calling `changed`."""
        if self._watchers is not None:
            self._watchers.pop(changed, None)

    def notify(self) -> None:
        """Call the watchers."""
        for changed in list(self._watchers or ()):
            changed()

    def stop(self) -> None:
        """End the role: the replica is deleted or the broker stops."""
        self.leader = _NO_LEADER
        self.isr_state = None
        self._release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.notify()
