"""Proposes changes of the ISR to the controller, for all partitions that this broker leads.

One AlterPartition request is in flight at a time; changes that arise meanwhile go into the next
request (Kafka's AlterPartitionManager). A change that the controller did not decide is proposed
again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, Protocol

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicDataPartitionData,
    BrokerState,
    PartitionData,
    TopicData,
)
from cluster_model.records import Replicas
from data_plane.log.checkpoints import LogName
from data_plane.partition import Partition
from data_plane.replication.isr import LeaderIsr, Proposal

_log = logging.getLogger(__name__)
_RETRY_S: Final = 0.05
# Sends a request to the controller. Returns None if there is no response.
AlterPartitions = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse | None]]


class IsrCounters(Protocol):
    """Metrics of ISR changes."""

    def isr_expanded(self) -> None:
        """A replica joined."""

    def isr_shrunk(self) -> None:
        """Replicas left."""

    def isr_update_failed(self) -> None:
        """The controller rejected a change."""


class _Change(NamedTuple):
    partition: Partition
    isr: LeaderIsr
    proposal: Proposal
    before: Replicas

    @property
    def is_current(self) -> bool:
        return self.partition.isr_state is self.isr and self.isr.proposal is self.proposal


class IsrChanges:
    """The changes that the controller has not decided. Used from the event loop only.

    `is_live` tells whether a broker is registered; `lag_max_ms` is replica.lag.time.max.ms.
    """

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        alter: AlterPartitions,
        counters: IsrCounters,
        is_live: Callable[[int], bool],
        lag_max_ms: int,
    ) -> None:
        self.is_live = is_live
        self.lag_max_ms = lag_max_ms
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._alter = alter
        self._counters = counters
        self._undecided: dict[LogName, _Change] = {}
        self._task: asyncio.Task[None] | None = None

    @staticmethod
    def now_ms() -> int:
        """Return the monotonic time in milliseconds."""
        return time.monotonic_ns() // 1_000_000

    def propose(self, partition: Partition, isr: Replicas) -> None:
        """Propose an ISR for a partition that this broker leads."""
        state = partition.isr_state
        assert state is not None
        change = _Change(partition, state, state.propose(isr), state.isr)
        _log.info("%s: proposing the ISR %s instead of %s", partition, isr, state.isr)
        self._undecided[partition.topic, partition.number] = change
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Send nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._undecided:
            self._undecided = {
                name: change for name, change in self._undecided.items() if change.is_current
            }
            sent = dict(self._undecided)
            if not sent:
                return
            try:
                response = await self._alter(self._request(sent))
                if response is not None:
                    self._responded(sent, response)
            except Exception:
                _log.exception("AlterPartition failed; it is sent again")
            if any(self._undecided.get(name) is change for name, change in sent.items()):
                await asyncio.sleep(_RETRY_S)

    def _request(self, changes: Mapping[LogName, _Change]) -> AlterPartitionRequest:
        topics: dict[bytes, TopicData] = {}
        for (topic, number), (partition, _, proposal, _) in changes.items():
            row = PartitionData(
                partition_index=number,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[BrokerState(replica) for replica in proposal.isr],
                new_isr=list(proposal.isr),
                partition_epoch=proposal.partition_epoch,
            )
            topic_id = partition.log.topic_id
            topics.setdefault(topic_id, TopicData(topic_id, topic)).partitions.append(row)
        return AlterPartitionRequest(self._broker_id, self._broker_epoch(), list(topics.values()))

    def _responded(self, sent: Mapping[LogName, _Change], response: AlterPartitionResponse) -> None:
        """Apply the decisions. Changes that must be sent again remain in `_undecided`."""
        if response.error_code:
            error = ErrorCode(response.error_code)
            _log.info("the controller answers AlterPartition with %s", error.name)
            return
        names = {
            sent_change.partition.log.topic_id: topic for (topic, _), sent_change in sent.items()
        }
        for topic in response.topics:
            name = names.get(topic.topic_id, "")
            for row in topic.partitions:
                change = sent.get((name, row.partition_index))
                if change is not None:
                    self._decided(change, row)

    def _decided(self, change: _Change, row: AlterPartitionTopicDataPartitionData) -> None:
        """Apply the decision about one partition, unless the change must be sent again."""
        partition, isr, proposal, before = change
        name = (partition.topic, partition.number)
        error = ErrorCode(row.error_code)
        if error is ErrorCode.NONE:
            self._count(before, tuple(row.isr))
        elif change.is_current:
            _log.info("%s: the ISR %s is rejected with %s", partition, proposal.isr, error.name)
            self._counters.isr_update_failed()
            if isr.rejected(proposal, error):
                return
        # Newer metadata may have ended this proposal, or a newer proposal may have replaced it.
        if self._undecided.get(name) is change:
            del self._undecided[name]
        if error is ErrorCode.NONE and isr.accepted(
            proposal, tuple(row.isr), row.leader_epoch, row.partition_epoch
        ):
            partition.isr_changed()

    def _count(self, before: Replicas, after: Replicas) -> None:
        if set(after) - set(before):
            self._counters.isr_expanded()
        if set(before) - set(after):
            self._counters.isr_shrunk()
