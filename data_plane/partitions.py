"""All replicas of this broker: roles from the metadata image, appends and reads by name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Mapping
from enum import Enum, auto
from typing import ClassVar, NamedTuple, Protocol

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.topic_names import INTERNAL_TOPICS
from data_plane.log.checkpoints import LogName
from data_plane.log.log_directories import LogDirectories
from data_plane.log.open_files import flush_all
from data_plane.log.partition_log import AppendInfo
from data_plane.partition import ALL, IsrPort, Partition, PartitionView
from data_plane.records.batch import split_batches
from data_plane.records.compaction import LastOffsets
from data_plane.settings import SettingsCache

_log = logging.getLogger(__name__)


class TopicView(Protocol):
    """One topic in the metadata image."""

    @property
    def topic_id(self) -> bytes:
        """16 bytes."""

    @property
    def partitions(self) -> Mapping[int, PartitionView]:
        """Partitions by number. Those without a state are omitted."""


class Limit(Enum):
    """The offset at which a read ends."""

    HIGH_WATERMARK = auto()
    LOG_END = auto()


class Appended(NamedTuple):
    """The answer to an append. For `log_append_time_ms` see `AppendInfo.append_time`."""

    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


class RoleListener(Protocol):
    """Is notified of the roles of this broker's replicas, on the event loop."""

    def became_leader(self, topic: str, partition: int, leader_epoch: int) -> None:
        """This broker leads from now on, or leads in a new epoch."""

    def resigned(self, topic: str, partition: int) -> None:
        """This broker no longer leads; its replica stays, or is deleted after this call."""


class Partitions:
    """This broker's replicas, by topic and partition."""

    new_partition: ClassVar[Callable[..., Partition]] = Partition
    new_last_offsets: ClassVar[type[LastOffsets]] = LastOffsets

    def __init__(
        self,
        broker_id: int,
        directories: LogDirectories,
        settings: SettingsCache,
        now_ms: Callable[[], int],
        isrs: IsrPort,
        acknowledged: Callable[[Partition, AppendInfo], None] = lambda _partition, _info: None,
    ) -> None:
        """`acknowledged` is called before a success with acks=-1 is returned."""
        self.broker_id = broker_id
        self.directories = directories
        self.settings = settings
        self.now_ms = now_ms
        self._isrs = isrs
        self.acknowledged = acknowledged
        self.by_name: dict[LogName, Partition] = {}
        self._changed: set[LogName] = set()
        self._topics: Mapping[str, TopicView] = {}  # in the newest metadata
        self._waiting: dict[str, None] = {}  # topics whose roles are not those of the metadata yet
        self._failed: set[str] = set()  # topics whose last update could not be applied
        self._listeners: list[RoleListener] = []

    def add_listener(self, listener: RoleListener) -> None:
        """Tell `listener` which partitions this broker leads, now and after each change."""
        self._listeners.append(listener)
        for partition in list(self.by_name.values()):
            if partition.is_leader:
                listener.became_leader(partition.topic, partition.number, partition.leader_epoch)

    # --- Roles ---------------------------------------------------------------------------

    def apply(
        self,
        topics: Mapping[str, TopicView],
        changed: Iterable[str] | None,
        unreadable: Container[str] = (),
    ) -> None:
        """Apply a metadata image now; see `note`."""
        self.note(topics, changed, unreadable)
        self.apply_all_waiting()

    def apply_all_waiting(self) -> None:
        """Take the roles of every topic that waits for them."""
        for name in self.waiting():
            self.apply_waiting(name)

    def note(
        self,
        topics: Mapping[str, TopicView],
        changed: Iterable[str] | None,
        unreadable: Container[str] = (),
    ) -> None:
        """Take a metadata image; its roles are taken by `apply_waiting`, topic by topic.

        An update of 1,000 partitions takes milliseconds, which neither the controller nor other
        clients need to wait for. A topic that a client uses meanwhile takes its roles at once.

        `changed` names the changed topics; None: compare all topics. The logs of `unreadable`
        topics stay, although the image does not have these topics. If the disk fails for a topic,
        the topic is tried again after the next call.
        """
        self._topics = topics
        if changed is None:
            names = {*topics, *(topic for topic, _ in self.directories.logs)}
        else:
            names = {*changed, *self._failed}
        self._failed = set()
        for name in sorted(names):
            if name in topics or name not in unreadable:
                self._waiting[name] = None
            else:
                self._waiting.pop(name, None)

    def waiting(self) -> list[str]:
        """Return the topics whose replicas do not have the roles of the metadata yet."""
        return list(self._waiting)

    def apply_waiting(self, name: str) -> None:
        """Give the replicas of a topic the roles of the metadata, if they do not have them yet."""
        if name not in self._waiting:
            return
        del self._waiting[name]
        try:
            self._apply_topic(name, self._topics.get(name))
        except OSError:
            _log.exception("the update of %s was not applied; the next one tries again", name)
            self._failed.add(name)

    def _apply_topic(self, name: str, topic: TopicView | None) -> None:
        here = {
            number: view
            for number, view in (topic.partitions.items() if topic is not None else ())
            if self.broker_id in view.replicas
        }
        gone = [(name, number) for number in self.directories.numbers(name) - here.keys()]
        self._drop(gone)
        if topic is None:
            self.settings.forget(name)
            return
        for number, view in here.items():
            self._apply_partition((name, number), topic.topic_id, view)

    def _apply_partition(self, name: LogName, topic_id: bytes, view: PartitionView) -> None:
        partition = self.by_name.get(name)
        if partition is not None and partition.log.topic_id not in (topic_id, bytes(16)):
            self._drop([name])
            self.settings.forget(name[0])  # They may be those of the deleted topic.
            partition = None
        if partition is None:
            log = self.directories.get_or_create(*name, topic_id)
            mark = self.directories.high_watermarks.get(name, 0)
            partition = self.by_name[name] = self.new_partition(
                self.broker_id, log, mark, self._isrs
            )
        led = partition.is_leader
        if not partition.apply(view):
            return
        self._changed.add(name)
        for listener in self._listeners:
            if partition.is_leader:
                listener.became_leader(*name, partition.leader_epoch)
            elif led:
                listener.resigned(*name)

    def delete(self, name: LogName) -> None:
        """Delete a replica of this broker, if there is one. The metadata need not have named it."""
        self._drop([name])

    def keep_only(self, names: Container[LogName]) -> None:
        """Stop all other replicas. Their logs stay on disk, under names that no replica uses."""
        strays = [name for name in self.directories.logs if name not in names]
        self._drop(strays, self.directories.set_aside)

    def _drop(
        self,
        names: Iterable[LogName],
        dispose: Callable[[Iterable[LogName]], None] | None = None,
    ) -> None:
        for name in names:
            self._changed.add(name)
            partition = self.by_name.pop(name, None)
            if partition is not None:
                led = partition.is_leader
                partition.stop()
                for listener in self._listeners if led else ():
                    listener.resigned(*name)
            (dispose or self.directories.delete)([name])

    # --- Access --------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> Partition:
        """Return this broker's replica.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER if only other brokers
                have replicas of the partition.
        """
        existing = self.find((topic, partition))
        if existing is not None:
            return existing
        if topic in self._topics and partition in self._topics[topic].partitions:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def find(self, name: LogName) -> Partition | None:
        """Return this broker's replica, with the role of the newest metadata; None: it has none."""
        if self._waiting:
            self.apply_waiting(name[0])
        return self.by_name.get(name)

    def take_changed(self) -> set[LogName]:
        """Return replicas that were dropped or got a new leader or epoch since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    async def append(
        self,
        topic: str,
        partition: int,
        records: bytes,
        *,
        acks: int,
        timeout_s: float,
        internal: bool = False,
    ) -> Appended:
        """Append to a partition that this broker leads; with acks=-1 wait for the ISR.

        `internal`: the broker itself appends, so the topic may be internal.

        Raises:
            ApiError: NOT_ENOUGH_REPLICAS, MESSAGE_TOO_LARGE, ... if nothing was appended;
                NOT_ENOUGH_REPLICAS_AFTER_APPEND or REQUEST_TIMED_OUT if the records were appended;
                NOT_LEADER_OR_FOLLOWER in either case.
        """
        if topic in INTERNAL_TOPICS and not internal:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        await self.settings.read(topic)
        replica = self.get(topic, partition)
        info = replica.append(records, acks, self.now_ms())
        if acks == ALL and info.last_offset >= 0:
            done = replica.committed(info.last_offset)
            finished, _ = await asyncio.wait([done], timeout=timeout_s)
            error = done.result() if finished else ErrorCode.REQUEST_TIMED_OUT
            done.cancel()
            if error is not ErrorCode.NONE:
                raise ApiError(error)
            self.acknowledged(replica, info)
        return Appended(info.base_offset, info.append_time, replica.log.start_offset)

    def read(
        self, topic: str, partition: int, offset: int, max_bytes: int, *, up_to: Limit
    ) -> bytes:
        """Return whole batches, beginning with the one that contains `offset`; b"" at the end.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE or an error of `get`.
        """
        replica = self.get(topic, partition)
        log = replica.log
        end = replica.high_watermark if up_to is Limit.HIGH_WATERMARK else log.end_offset
        data = log.read(offset, max_bytes, end)
        return data[: sum(len(batch) for batch in split_batches(data))]

    # --- Upkeep --------------------------------------------------------------------------

    def high_watermarks(self) -> dict[LogName, int]:
        """Return the last known high watermark of every log on disk, even of one without a role."""
        before, now = self.directories.high_watermarks, self.by_name
        return {
            name: now[name].high_watermark if name in now else before.get(name, 0)
            for name in self.directories.stored
        }

    def write_checkpoints(self) -> None:
        """Write high watermarks, log start offsets and recovery points."""
        self.directories.write_checkpoints(self.high_watermarks())

    async def flush(self) -> None:
        """Flush completed segments, in another thread, so that a recovery need not read them."""
        in_thread = asyncio.get_running_loop().run_in_executor
        for log in list(self.directories.stored.values()):
            paths, ended = log.unflushed, log.segments[-1].base_offset
            if paths:
                await in_thread(None, flush_all, paths)
                log.recovery_point = max(log.recovery_point, min(ended, log.end_offset))

    async def apply_retention(self) -> int:
        """Delete old segments of all logs; return the number of segments."""
        count = 0
        for name in list(self.directories.stored):
            partition = self.by_name.get(name)
            if partition is None:
                continue
            await self.settings.read(name[0])
            if self.by_name.get(name) is partition:
                deleted = partition.log.delete_old_segments(self.now_ms(), partition.high_watermark)
                count += deleted
                if deleted:  # The next responses to followers must have the new log start offset.
                    partition.notify()
                await asyncio.sleep(0)
        return count

    def expire_producers(self, idle_ms: int) -> None:
        """Forget the idempotent producers whose newest batch is at least `idle_ms` old.

        After a log is opened again, its expired producers are known again until the next call.
        """
        for log in self.directories.stored.values():
            log.producers.expire(self.now_ms() - idle_ms)

    def close(self) -> None:
        """Stop cleanly: nothing is appended after this."""
        for partition in self.by_name.values():
            partition.stop()
        self.directories.close(self.high_watermarks())
