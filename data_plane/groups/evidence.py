"""Evidence about committed offsets: commits, removals, and reports of all stored offsets.

A coordinator reports all offsets of a partition of `__consumer_offsets` after it has loaded them,
and when it stops. There is no evidence if acknowledged commits may be lost: if
`offsets.commit.required.acks` is not -1, or if unclean leader election is enabled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bridgehead.kafka_wire.errors import ApiError
from cluster_model.topic_names import GROUP_METADATA_TOPIC
from cluster_model.znodes.layout import encode_uuid
from data_plane.groups.group import Group
from data_plane.groups.table import OffsetsDeleted, OffsetsStored
from data_plane.partition import Partition
from data_plane.partitions import Partitions
from event_log.events import OffsetsCommitted, OffsetsHeld, OffsetsRemoved
from event_log.writer import EventLog

_OFFSETS_PER_EVENT: Final = 500


class GroupEvidence:
    """Writes the events of one broker. `is_kept` is True if commits are appended with acks=all."""

    def __init__(self, log: EventLog, partitions: Partitions, *, is_kept: bool) -> None:
        self._log = log
        self._partitions = partitions
        self._is_kept = is_kept

    def committed(self, commit: OffsetsStored) -> None:
        """A commit is on all in-sync replicas; the client is about to be answered."""
        partition = self._partition(commit.partition)
        if partition is None or not commit.offsets:
            return
        self._log.append(
            OffsetsCommitted(
                group_id=commit.group_id,
                topic_id=encode_uuid(partition.log.topic_id),
                partition_index=commit.partition,
                leader_epoch=partition.leader_epoch,
                log_offset=commit.log_offset,
                offsets=[
                    f"{topic}:{number}:{offset.offset}"
                    for (topic, number), offset in commit.offsets.items()
                ],
            )
        )

    def removed(self, removal: OffsetsDeleted) -> None:
        """Offsets are removed, and their tombstones are about to be appended."""
        partition = self._partition(removal.partition)
        if partition is None:
            return
        self._log.append(
            OffsetsRemoved(
                group_id=removal.group_id,
                topic_id=encode_uuid(partition.log.topic_id),
                partition_index=removal.partition,
                leader_epoch=partition.leader_epoch,
                offsets=[f"{topic}:{number}" for topic, number in removal.keys],
            )
        )
        # The tombstones may survive a kill of this process, so the event is flushed before them.
        self._log.flush()

    def loaded(self, number: int, leader_epoch: int, groups: Iterable[Group]) -> None:
        """The groups of a partition were loaded by the leader of this epoch."""
        partition = self._partition(number)
        if partition is not None:
            self._held(partition, leader_epoch - 1, groups)

    def stopped(self, number: int, groups: Iterable[Group]) -> None:
        """There will be no more commits: this broker stops."""
        partition = self._partition(number)
        if partition is not None:
            self._held(partition, partition.leader_epoch, groups)

    def _held(self, partition: Partition, leader_epoch: int, groups: Iterable[Group]) -> None:
        if not partition.log.end_offset and not partition.leader_epoch:
            return  # The partition has never been used.
        held = [
            f"{topic}:{number}:{stored.committed.offset}:{stored.log_offset}:{group.group_id}"
            for group in groups
            for (topic, number), stored in group.offsets.items()
        ]
        for first in range(0, max(len(held), 1), _OFFSETS_PER_EVENT):
            end = first + _OFFSETS_PER_EVENT
            self._log.append(
                OffsetsHeld(
                    topic_id=encode_uuid(partition.log.topic_id),
                    partition_index=partition.number,
                    leader_epoch=leader_epoch,
                    offsets=held[first:end],
                    is_last=end >= len(held),
                )
            )

    def _partition(self, number: int) -> Partition | None:
        """Return the partition; None if it may lose commits or was deleted."""
        if not self._is_kept:
            return None
        try:
            partition = self._partitions.get(GROUP_METADATA_TOPIC, number)
        except ApiError:
            return None
        unclean = partition.log.settings().values["unclean.leader.election.enable"]
        return None if unclean else partition
