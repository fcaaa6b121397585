"""Opens the log of one replica after a restart.

After a clean stop the files are trusted, except indexes that do not fit to their log. After a kill,
every segment from the recovery point on is read and its indexes are rebuilt. The log then ends
before the first batch that is incomplete or damaged.

What cannot be a file of the log but has the name of one gets another name; nothing is deleted.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Final

from cluster_model.topic_names import is_valid_topic_name
from cluster_model.znodes.layout import decode_uuid
from cluster_model.znodes.values import ZnodeContentError
from data_plane.log.checkpoints import (
    INT_MAX,
    LEADER_EPOCHS,
    PARTITION_METADATA,
    LogName,
    read_epochs,
)
from data_plane.log.epochs import LeaderEpochs
from data_plane.log.partition_log import PartitionLog, SharedByLogs
from data_plane.log.replacements import finish_replacements
from data_plane.log.segment import (
    BASE_OFFSET_MAX,
    CLEANED,
    DELETED,
    RELATIVE_OFFSET_MAX,
    SWAP,
    Placed,
    Segment,
    is_readable,
)
from data_plane.records.batch import checksum_of

_log = logging.getLogger(__name__)
_NO_TOPIC_ID: Final = bytes(16)


_SEGMENT_FILE: Final = re.compile(
    r"([0-9]{20})\.(?:log|index|timeindex|snapshot|txnindex)(?:\.(?:cleaned|swap|deleted))?"
)
_SEGMENT_SUFFIXES: Final = (
    *(".log", ".index", ".timeindex", ".snapshot", ".txnindex"),
    *(CLEANED, SWAP, DELETED),
)


def log_name_of(folder: Path) -> LogName | None:
    """Return the topic and partition of a log's folder; None for any other folder."""
    topic, _, number = folder.name.rpartition("-")
    if not (number.isascii() and number.isdigit() and is_valid_topic_name(topic)):
        return None
    is_canonical = len(number) <= len(str(INT_MAX)) and number == str(int(number))
    return (topic, int(number)) if is_canonical and int(number) <= INT_MAX else None


def set_aside(path: Path) -> None:
    """Rename what is in the place of one of our files, because this broker did not write it."""
    number = 0
    while os.path.lexists(aside := path.with_name(f"{path.name}.{number}.stray")):
        number += 1
    path.rename(aside)
    _log.warning("%s is no file of this broker and is now named %s", path, aside.name)


def _set_strays_aside(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        name = path.name.removesuffix(".tmp")
        if name in (LEADER_EPOCHS, PARTITION_METADATA):
            is_ours = path.is_file()
        elif path.name.endswith(_SEGMENT_SUFFIXES):
            match = _SEGMENT_FILE.fullmatch(path.name)
            is_ours = match is not None and int(match[1]) <= BASE_OFFSET_MAX and path.is_file()
        else:
            continue
        if not is_ours:
            set_aside(path)


def open_log(
    folder: Path,
    name: LogName,
    shared: SharedByLogs,
    *,
    start_offset: int,
    recovery_point: int,
    is_clean: bool,
) -> PartitionLog:
    """Return the log that is stored in `folder`."""
    _set_strays_aside(folder)
    finish_replacements(folder)
    log = PartitionLog(folder.parent, name, _topic_id(folder), shared)
    bases = sorted(int(path.stem) for path in folder.glob("*.log"))
    log.is_stored()
    if bases:
        log.segments = [Segment(folder, base, shared.files) for base in bases]
    interval = log.settings().number("index.interval.bytes")
    for number, segment in enumerate(log.segments):
        following = bases[number + 1] if number + 1 < len(bases) else None
        is_trusted = is_clean or (following is not None and following <= recovery_point)
        if is_trusted and segment.path.exists():
            segment.load(int(os.path.getctime(segment.path) * 1000))
            if not segment.has_sound_indexes():
                _log.warning("%s does not fit to its log: it is rebuilt", segment.index_path)
                is_trusted = False
        if not is_trusted and segment.path.exists() and not _rebuild(segment, interval):
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
    log.epochs = _epochs(log)
    log.epochs.truncate_end(log.end_offset)
    log.reload_producers()
    return log


def _epochs(log: PartitionLog) -> LeaderEpochs:
    """Return the epochs of the checkpoint; if it is damaged, those of the batches."""
    entries = read_epochs(log.folder / LEADER_EPOCHS)
    epochs = LeaderEpochs(entries or ())
    if entries is None:
        for placed in log.placed_from(log.start_offset):
            epochs.assign(placed.header.leader_epoch, placed.header.base_offset)
    return epochs


def _last_indexed(segment: Segment) -> int:
    """Return the position of the last indexed batch."""
    return segment.last_indexed_position if segment.size else 0


def _rebuild(segment: Segment, interval: int) -> bool:
    """Rebuild the indexes; return False if the end had to be cut off."""
    total = os.path.getsize(segment.path)
    batches = segment.rebuild(interval)
    expected = segment.base_offset
    for placed in batches:
        if not _is_intact(segment, placed, expected):
            batches.close()
            break
        expected = placed.header.next_offset
    if segment.size == total:
        return True
    segment.cut()
    return False


def _is_intact(segment: Segment, placed: Placed, expected: int) -> bool:
    """Return whether a batch is valid, and its offsets, which no checksum covers, may be right."""
    header = placed.header
    if not is_readable(header) or header.base_offset < expected:
        return False
    if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
        return False
    return header.crc == checksum_of(segment.read(placed.position, header.size))


def _topic_id(folder: Path) -> bytes:
    try:
        lines = (folder / PARTITION_METADATA).read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(": ", 1) for line in lines)
        return decode_uuid(fields["topic_id"])
    except (OSError, ValueError, KeyError, ZnodeContentError) as error:
        _log.warning("%s has no readable %s: %s", folder, PARTITION_METADATA, error)
        return _NO_TOPIC_ID
