"""Opens the log of one replica after a restart.

After a clean stop the files are trusted. After a kill, every segment from the recovery point on is
read and its indexes are rebuilt. The log then ends before the first batch that is incomplete or
damaged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cluster_model.znodes.layout import decode_uuid
from data_plane.log.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, LogName, read_epochs
from data_plane.log.epochs import LeaderEpochs
from data_plane.log.open_files import OpenFiles
from data_plane.log.partition_log import PartitionLog
from data_plane.log.replacements import finish_replacements
from data_plane.log.segment import Placed, Segment, is_readable
from data_plane.records.batch import checksum_of
from data_plane.settings import TopicSettings

_log = logging.getLogger(__name__)
_NO_TOPIC_ID: Final = bytes(16)


def log_name_of(folder: Path) -> LogName | None:
    """Return the topic and partition of a log's folder; None for any other folder."""
    topic, _, number = folder.name.rpartition("-")
    return (topic, int(number)) if topic and number.isascii() and number.isdigit() else None


def open_log(
    folder: Path,
    name: LogName,
    files: OpenFiles,
    settings: Callable[[], TopicSettings],
    *,
    start_offset: int,
    recovery_point: int,
    is_clean: bool,
) -> PartitionLog:
    """Return the log that is stored in `folder`."""
    finish_replacements(folder)
    log = PartitionLog(folder, name, _topic_id(folder), files, settings)
    bases = sorted(int(path.stem) for path in folder.glob("*.log") if path.stem.isdigit())
    log.on_disk = True
    if bases:
        log.segments = [Segment(folder, base, files) for base in bases]
    interval = settings().number("index.interval.bytes")
    for number, segment in enumerate(log.segments):
        following = bases[number + 1] if number + 1 < len(bases) else None
        if is_clean or (following is not None and following <= recovery_point):
            if segment.path.exists():
                segment.load(int(os.path.getctime(segment.path) * 1000))
        elif segment.path.exists() and not _rebuild(segment, interval):
            _log.warning(
                "%s: the segment %d was cut at byte %d", log, segment.base_offset, segment.size
            )
            for later in log.segments[number + 1 :]:
                later.delete()
            del log.segments[number + 1 :]
            break
    active = log.segments[-1]
    log.end_offset = active.base_offset
    for placed in active.batches(_last_indexed(active)):
        log.end_offset = placed.header.next_offset
    log.start_offset = min(max(start_offset, log.segments[0].base_offset), log.end_offset)
    log.recovery_point = min(recovery_point, log.end_offset)
    log.epochs = LeaderEpochs(read_epochs(folder / LEADER_EPOCHS))
    log.epochs.truncate_end(log.end_offset)
    log.reload_producers()
    return log


def _last_indexed(segment: Segment) -> int:
    """Return the position of the last indexed batch."""
    return segment.last_indexed_position if segment.size else 0


def _rebuild(segment: Segment, interval: int) -> bool:
    """Rebuild the indexes; return False if the end had to be cut off."""
    total = os.path.getsize(segment.path)
    batches = segment.rebuild(interval)
    for placed in batches:
        if not _is_intact(segment, placed):
            batches.close()
            break
    if segment.size == total:
        return True
    segment.cut()
    return False


def _is_intact(segment: Segment, placed: Placed) -> bool:
    header = placed.header
    if not is_readable(header) or header.base_offset < segment.base_offset:
        return False
    return header.crc == checksum_of(segment.read(placed.position, header.size))


def _topic_id(folder: Path) -> bytes:
    try:
        lines = (folder / PARTITION_METADATA).read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(": ", 1) for line in lines)
        return decode_uuid(fields["topic_id"])
    except (OSError, ValueError, KeyError) as error:
        _log.warning("%s has no readable %s: %s", folder, PARTITION_METADATA, error)
        return _NO_TOPIC_ID
