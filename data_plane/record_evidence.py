"""Evidence: the records acknowledged with acks=all, and those in the logs when a broker stops.

The broker writes one event for each partition of an acknowledged produce request. A batch is
identified by the CRC in its header, so no checksum is computed for the evidence. The CRC covers
everything from the attributes on, but neither the offset nor the leader epoch. Compacted topics and
topics with unclean leader election may lose acknowledged records, so there is no evidence about
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from cluster_model.znodes.layout import encode_uuid
from data_plane.log.partition_log import AppendInfo, PartitionLog
from data_plane.partition import Partition
from data_plane.partitions import Partitions
from event_log.events import LogHeld, RecordsAcknowledged
from event_log.writer import EventLog

_BATCHES_PER_EVENT: Final = 500


class RecordEvidence:
    """Writes the events of one broker."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def acknowledged(self, partition: Partition, info: AppendInfo) -> None:
        """Records are on all in-sync replicas; the producer is about to be answered."""
        log = partition.log
        if not _keeps_all(log):
            return
        self._log.append(
            RecordsAcknowledged(
                topic=partition.topic,
                topic_id=encode_uuid(log.topic_id),
                partition_index=partition.number,
                leader_epoch=partition.leader_epoch,
                base_offset=info.base_offset,
                record_count=info.last_offset - info.base_offset + 1,
                crc=info.crc,
            )
        )

    def held(self, partitions: Partitions) -> None:
        """Record the logs of the partitions that this broker leads, after the last append."""
        for partition in partitions.by_name.values():
            log = partition.log
            is_used = log.end_offset > 0 or partition.leader_epoch > 0
            if partition.is_leader and is_used and _keeps_all(log):
                self._held(partition, log)

    def _held(self, partition: Partition, log: PartitionLog) -> None:
        batches = _batches(log)
        page = list(islice(batches, _BATCHES_PER_EVENT))
        while True:
            self._log.append(
                LogHeld(
                    topic=partition.topic,
                    topic_id=encode_uuid(log.topic_id),
                    partition_index=partition.number,
                    leader_epoch=partition.leader_epoch,
                    start_offset=log.start_offset,
                    end_offset=log.end_offset,
                    batches=page,
                )
            )
            page = list(islice(batches, _BATCHES_PER_EVENT))
            if not page:
                return


def _batches(log: PartitionLog) -> Iterator[str]:
    if log.end_offset > log.start_offset:
        for placed in log.placed_from(log.start_offset):
            yield f"{placed.header.base_offset}:{placed.header.crc}"


def _keeps_all(log: PartitionLog) -> bool:
    """Return whether only retention and DeleteRecords remove acknowledged records."""
    settings = log.settings()
    return not (settings.is_compacted or settings.values["unclean.leader.election.enable"])
