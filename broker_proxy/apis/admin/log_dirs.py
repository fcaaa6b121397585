"""The log directories of a broker without a data plane. Every replica is an empty log.

Every replica is in the first directory until a client moves it. Nothing is on disk: moves are
forgotten when the broker stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker_proxy.metadata.cache import MetadataCache


class LogDirs:
    """One broker's directories and its replicas in them."""

    def __init__(self, paths: Sequence[str], cache: MetadataCache, broker_id: int) -> None:
        """`paths` must not be empty."""
        self.paths = tuple(paths)
        self._cache = cache
        self._broker_id = broker_id
        self._moved: dict[tuple[bytes, int], str] = {}  # by topic id and partition

    def has_replica(self, name: str, partition: int) -> bool | None:
        """Return whether this broker has a replica; None if the partition does not exist."""
        topic = self._cache.topics.get(name)
        state = topic.partitions.get(partition) if topic else None
        return None if state is None else self._broker_id in state.replicas

    def replicas(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield (partition, directory) of this broker's replicas of a topic, in ascending order."""
        topic = self._cache.topics.get(name)
        if topic is not None:
            for number, state in sorted(topic.partitions.items()):
                if self._broker_id in state.replicas:
                    yield number, self._moved.get((topic.topic_id, number), self.paths[0])

    def size(self, _name: str, _partition: int) -> int:
        """Return the size of a replica in bytes."""
        return 0

    def disk(self, _path: str) -> tuple[int, int]:
        """Return total and usable bytes of a directory's disk; -1: unknown."""
        return -1, -1

    def move(self, name: str, partition: int, path: str) -> None:
        """Move a replica of this broker to one of `paths`."""
        topic_id = self._cache.topics[name].topic_id
        gone = [key for key in self._moved if self._cache.topic_name(key[0]) is None]
        for key in gone:
            del self._moved[key]
        self._moved[topic_id, partition] = path


def log_dirs_of(log_dirs: str | None, log_dir: str | None) -> tuple[str, ...]:
    """Return the directories in `log.dirs`, or in `log.dir` if `log.dirs` is not set."""
    named = (folder.strip() for folder in (log_dirs or log_dir or "").split(","))
    return tuple(name for name in named if name) or ("",)
