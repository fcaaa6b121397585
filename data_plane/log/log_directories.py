"""All logs of one broker, in its log directories.

New logs are created in the first directory of `log.dirs`. Checkpoints are written at intervals, on
a clean stop, and after a compaction or a deletion of records. A clean stop also creates the file
`.kafka_cleanshutdown`: if it exists at the next start, the logs need no recovery.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from data_plane.log.checkpoints import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    LogName,
    read_offsets,
    write_offsets,
)
from data_plane.log.meta_properties import META_PROPERTIES, Owner, check_owner, write_owner
from data_plane.log.open_files import OPEN_FILES_MAX, OpenFiles, replace_file
from data_plane.log.partition_log import UNKNOWN_OFFSET, PartitionLog, SharedByLogs
from data_plane.log.recovery import log_name_of, open_log, set_aside
from data_plane.log.segment import CLEANED
from data_plane.settings import TopicSettings

_log = logging.getLogger(__name__)
_CLEAN_STOP: Final = ".kafka_cleanshutdown"
_DELETED: Final = "-delete"
_STRAY: Final = "-stray"
_DOOMED: Final = re.compile(r".+-[0-9]+\.[0-9a-f]{32}-delete")
_LOCK: Final = ".lock"
_FILES: Final = (
    *(_CLEAN_STOP, _LOCK, META_PROPERTIES),
    *(HIGH_WATERMARKS, CLEANED_OFFSETS, LOG_STARTS, RECOVERY_POINTS),
)
SettingsOf = Callable[[str], TopicSettings]


class LogDirectories:
    """Opens, creates and deletes logs. `settings_of` returns a topic's current configs."""

    def __init__(
        self, paths: Sequence[str], settings_of: SettingsOf, files_max: int = OPEN_FILES_MAX
    ) -> None:
        """`files_max`: the segments that are open at the same time."""
        self.paths = tuple(Path(path) for path in paths)
        self.logs: dict[LogName, PartitionLog] = {}
        # Those of them that have a folder. What is done at intervals visits no others.
        self.stored: dict[LogName, PartitionLog] = {}
        self._numbers: dict[str, set[int]] = {}  # partitions by topic
        # High watermarks from the checkpoints. Each is used when its partition gets a role.
        self.high_watermarks: dict[LogName, int] = {}
        self.files = OpenFiles(files_max)
        self._shared = SharedByLogs(self.files, settings_of, self._created)
        self._locks: list[IO[str]] = []

    def check_owner(self, broker_id: int, cluster_id: str | None) -> None:
        """Check that the directories belong to this broker; `cluster_id` is ZooKeeper's.

        Raises:
            OSError: a directory belongs to another cluster or broker.
        """
        for path in self.paths:
            check_owner(path, broker_id, cluster_id)

    def set_owner(self, broker_id: int, cluster_id: str) -> None:
        """Write into each directory whose it is, after `load`."""
        for path in self.paths:
            write_owner(path, Owner(cluster_id, broker_id))

    def load(self) -> None:
        """Open every log on disk.

        Raises:
            OSError: a directory cannot be used.
        """
        for path in self.paths:
            path.mkdir(parents=True, exist_ok=True)
            for file in _FILES:
                if os.path.lexists(path / file) and not (path / file).is_file():
                    set_aside(path / file)
            self._lock(path)
            marker = path / _CLEAN_STOP
            is_clean = marker.exists()
            marker.unlink(missing_ok=True)
            self.high_watermarks |= read_offsets(path / HIGH_WATERMARKS)
            cleaned = read_offsets(path / CLEANED_OFFSETS)
            starts, points = read_offsets(path / LOG_STARTS), read_offsets(path / RECOVERY_POINTS)
            for folder in sorted(entry for entry in path.iterdir() if entry.is_dir()):
                name = log_name_of(folder)
                if _DOOMED.fullmatch(folder.name):
                    shutil.rmtree(folder, ignore_errors=True)
                elif name is not None:
                    log = open_log(
                        folder,
                        name,
                        self._shared,
                        start_offset=starts.get(name, 0),
                        recovery_point=points.get(name, 0),
                        is_clean=is_clean,
                    )
                    log.cleaned_offset = min(cleaned.get(name, UNKNOWN_OFFSET), log.end_offset)
                    self._add(log)

    def _lock(self, path: Path) -> None:
        """Keep other brokers out of a directory until this process ends or `close` is called."""
        file = (path / _LOCK).open("a")
        self._locks.append(file)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OSError(
                f"Another process uses the log directory {path}: set log.dirs to a directory that "
                "no other broker uses."
            ) from error

    def _add(self, log: PartitionLog) -> None:
        topic, number = log.name
        self.logs[log.name] = log
        self._numbers.setdefault(topic, set()).add(number)

    def numbers(self, topic: str) -> frozenset[int]:
        """Return the partitions of a topic that have a log here."""
        return frozenset(self._numbers.get(topic, ()))

    def _created(self, log: PartitionLog) -> None:
        self.stored[log.name] = log

    def get_or_create(self, topic: str, number: int, topic_id: bytes) -> PartitionLog:
        """Return the log of a partition. A log of a deleted topic with the same name is removed."""
        name = (topic, number)
        log = self.logs.get(name)
        if log is not None and log.topic_id not in (topic_id, bytes(16)):
            _log.warning("%s belongs to a deleted topic with the same name; it is removed", log)
            self.delete([name])
            log = None
        if log is None:
            log = PartitionLog(self.paths[0], name, topic_id, self._shared)
            self._add(log)
        elif log.topic_id != topic_id:
            log.set_topic_id(topic_id)
        return log

    def delete(self, names: Iterable[LogName]) -> None:
        """Delete logs. They are renamed first, so that a new log may take the name at once."""
        for folder in self._rename(names, _DELETED):
            self.files.remove([folder])

    def set_aside(self, names: Iterable[LogName]) -> None:
        """Rename logs as Kafka renames strays. No broker uses or deletes them any more."""
        for folder in self._rename(names, _STRAY):
            _log.warning(
                "the controller does not know this broker's replica in %s: delete the folder, or "
                "rename it if the controller is wrong",
                folder,
            )

    def _rename(self, names: Iterable[LogName], suffix: str) -> Iterator[Path]:
        """Forget logs and rename their folders; yield the new paths of those on disk."""
        for name in names:
            log = self.logs.pop(name, None)
            self.stored.pop(name, None)
            numbers = self._numbers.get(name[0], set())
            numbers.discard(name[1])
            if not numbers:
                self._numbers.pop(name[0], None)
            self.high_watermarks.pop(name, None)
            if log is None or not log.on_disk:
                continue
            log.close_files()
            yield log.folder.rename(_renamed(log.folder, name, suffix))

    def move(self, name: LogName, path: Path) -> None:
        """Move a log to another of `paths`.

        Raises:
            OSError: the log cannot be moved. It stays where it is.
        """
        log = self.logs.get(name)
        if log is None or log.parent == path:
            return
        before, folder = log.folder, path / log.folder.name
        log.close_files()
        if log.on_disk:
            # The next start deletes an incomplete copy, because its name ends with `-delete`.
            copy = _renamed(folder, name, _DELETED)
            try:
                shutil.copytree(before, copy, ignore=shutil.ignore_patterns("*" + CLEANED))
                copy.rename(folder)
            except OSError:
                shutil.rmtree(copy, ignore_errors=True)
                raise
        log.relocate(path)
        if log.on_disk:
            gone = before.rename(_renamed(before, name, _DELETED))
            shutil.rmtree(gone, ignore_errors=True)

    def write_checkpoints(self, high_watermarks: Mapping[LogName, int]) -> None:
        """Write the offsets that the next start needs, for the logs that are on disk."""
        for path in self.paths:
            logs = {name: log for name, log in self.stored.items() if log.parent == path}
            write_offsets(
                path / HIGH_WATERMARKS,
                {name: high_watermarks[name] for name in logs if name in high_watermarks},
            )
            write_offsets(path / LOG_STARTS, {name: log.start_offset for name, log in logs.items()})
            write_offsets(
                path / RECOVERY_POINTS, {name: log.recovery_point for name, log in logs.items()}
            )
            self._write_cleaned(path)

    def cleaned(self, log: PartitionLog, offset: int) -> None:
        """Store the offset up to which a log is compacted."""
        log.cleaned_offset = offset
        self._write_cleaned(log.parent)

    def _write_cleaned(self, path: Path) -> None:
        offsets = {
            name: log.cleaned_offset
            for name, log in self.stored.items()
            if log.cleaned_offset != UNKNOWN_OFFSET and log.parent == path
        }
        if offsets or (path / CLEANED_OFFSETS).exists():
            write_offsets(path / CLEANED_OFFSETS, offsets)

    def close(self, high_watermarks: Mapping[LogName, int]) -> None:
        """Stop cleanly."""
        for log in self.stored.values():
            log.close()
        self.write_checkpoints(high_watermarks)
        for path in self.paths:
            replace_file(path / _CLEAN_STOP, b'{"version":0}')
        self.files.close_all()
        for file in self._locks:
            file.close()
        self._locks.clear()

    def used_share(self) -> dict[Path, float]:
        """Return which share of each directory's disk is used."""
        shares = {}
        for path in self.paths:
            stat = os.statvfs(path)
            shares[path] = 1 - stat.f_bavail / stat.f_blocks if stat.f_blocks else 0.0
        return shares


def _renamed(folder: Path, name: LogName, suffix: str) -> Path:
    """Return the new path of a log's folder, as in Kafka. Long topic names are cut."""
    return folder.with_name(f"{name[0][:200]}-{name[1]}.{uuid.uuid4().hex}{suffix}")
