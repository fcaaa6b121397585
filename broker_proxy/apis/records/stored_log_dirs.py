"""The log directories of a broker with a data plane."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from broker_proxy.apis.admin.log_dirs import LogDirs
from broker_proxy.metadata.cache import MetadataCache
from data_plane.partitions import Partitions


class StoredLogDirs(LogDirs):
    """LogDirs whose moves, sizes and disks are those of the stored logs."""

    def __init__(self, partitions: Partitions, cache: MetadataCache) -> None:
        logs = partitions.directories
        super().__init__(tuple(map(str, logs.paths)), cache, partitions.broker_id)
        self._partitions = partitions
        self._logs = logs

    def replicas(self, name: str) -> Iterator[tuple[int, str]]:
        for number, path in super().replicas(name):
            log = self._logs.logs.get((name, number))
            yield number, path if log is None else str(log.parent)

    def move(self, name: str, partition: int, path: str) -> None:
        """See LogDirs. The log is moved before this returns.

        Raises:
            OSError: the log cannot be moved. It stays where it is.
        """
        self._partitions.find((name, partition))  # A new replica has its log from now on.
        self._logs.move((name, partition), Path(path))

    def size(self, name: str, partition: int) -> int:
        log = self._logs.logs.get((name, partition))
        return 0 if log is None else log.size

    def disk(self, path: str) -> tuple[int, int]:
        usage = shutil.disk_usage(path)
        return usage.total, usage.free
