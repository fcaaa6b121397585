"""The group coordinator at work: futures, timers and the log of `__consumer_offsets`.

Each request is one step of the core (see `coordinator`), followed by its effects. Appends to one
partition are started in the order of the effects; their results arrive in any order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Protocol, TypeVar

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.slices import batched, sliced
from cluster_model.session_state import ConnectionLostError
from cluster_model.topic_names import GROUP_METADATA_TOPIC
from data_plane.groups.coordinator import GroupCoordinator
from data_plane.groups.group import Group, TopicPartition
from data_plane.groups.loading import Replay
from data_plane.groups.membership import (
    Join,
    Joined,
    Leaving,
    NoResponse,
    RequestDroppedError,
    Sync,
    Synced,
)
from data_plane.groups.offsets import Commit, Errors, Fetched, least_bytes
from data_plane.groups.records import decode_record
from data_plane.groups.table import NO_ACKS, Append, Moment, OffsetsDeleted, OffsetsStored, Respond
from data_plane.records.batch import NewRecord, decode_batches, encode_batch

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_STEP_MAX: Final = 1_000  # partitions, groups or members in one step
_LOAD_RETRY_S: Final = 1.0
# The errors of the log after this broker has lost the leadership of the partition.
_RESIGNED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class OffsetEvidence(Protocol):
    """What this broker records about committed offsets."""

    def committed(self, commit: OffsetsStored) -> None:
        """A commit is about to be acknowledged."""

    def removed(self, removal: OffsetsDeleted) -> None:
        """Offsets were removed."""

    def loaded(self, number: int, leader_epoch: int, groups: Iterable[Group]) -> None:
        """The groups of a partition were loaded by the leader of this epoch."""

    def stopped(self, number: int, groups: Iterable[Group]) -> None:
        """There will be no more commits in this partition."""


class OffsetsLog(Protocol):
    """The partitions of `__consumer_offsets` that this broker leads."""

    async def append(self, partition: int, records: bytes, *, acks: int, timeout_s: float) -> int:
        """Append a batch; return its offset.

        Raises:
            ApiError: the batch was not appended, or may not be on all in-sync replicas.
        """

    def bytes_max(self) -> int:
        """Return the maximum size of a batch."""

    def start_offset(self, partition: int) -> int:
        """Return the offset of the first record.

        Raises:
            ApiError: this broker does not lead the partition.
        """

    def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """Return whole batches up to the end of the log; b"" at the end.

        Raises:
            ApiError: this broker does not lead the partition.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Times and sizes of the service."""

    commit_timeout_s: float = 5.0
    load_bytes: int = 5 * 1024 * 1024
    expiry_interval_s: float = 600.0


class GroupService:
    """Coordinates the groups of the partitions of `__consumer_offsets` that this broker leads."""

    new_replay: ClassVar[type[Replay]] = Replay  # Seeded bugs replace it.

    def __init__(
        self,
        core: GroupCoordinator,
        log: OffsetsLog,
        settings: ServiceSettings,
        now: Callable[[], Moment],
        evidence: OffsetEvidence,
    ) -> None:
        self.core = core
        self._log = log
        self._settings = settings
        self._now = now
        self._evidence = evidence
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0

    def start(self) -> None:
        """Begin to expire offsets; needs a running event loop."""
        self._spawn(self._expire_forever())

    async def close(self) -> None:
        """Stop. Members that wait get NOT_COORDINATOR; commits that wait get no response."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for partition in sorted(self.core.table.owned):
            self._evidence.stopped(partition, self.core.table.groups_of(partition))
        for partition in [*self.core.table.owned, *self.core.table.loading]:
            self._resign(partition)
        if self._timer is not None:
            self._timer.cancel()

    # --- Requests --------------------------------------------------------------------------

    async def join(self, request: Join) -> Joined:
        """See Membership.join.

        Raises:
            RequestDroppedError: there will be no answer.
        """
        joined: Joined = await self._ask(lambda ticket: self.core.membership.join(ticket, request))
        return joined

    async def sync(self, request: Sync) -> Synced:
        """See Membership.sync.

        Raises:
            RequestDroppedError: there will be no answer.
        """
        synced: Synced = await self._ask(lambda ticket: self.core.membership.sync(ticket, request))
        return synced

    async def commit(self, request: Commit) -> Errors:
        """Commit all offsets in one step. Offsets that fit in no batch are not encoded."""
        if len(request.offsets) > _STEP_MAX:
            size = least_bytes(request.group_id, request.offsets)
            request = replace(request, is_too_large=size > self._log.bytes_max())
        errors: Errors = await self._ask(lambda ticket: self.core.offsets.commit(ticket, request))
        return errors

    def heartbeat(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None
    ) -> ErrorCode:
        heartbeat = self.core.membership.heartbeat
        return self._step(lambda: heartbeat(group_id, generation, member_id, instance_id))

    async def leave(
        self, group_id: str, members: Sequence[Leaving]
    ) -> tuple[ErrorCode, list[tuple[Leaving, ErrorCode]]]:
        left: list[tuple[Leaving, ErrorCode]] = []
        async for part in sliced(batched(members, _STEP_MAX) if members else ((),)):
            error, results = self._step(partial(self.core.membership.leave, group_id, part))
            if error is not ErrorCode.NONE:
                return error, results
            left += results
        return ErrorCode.NONE, left

    async def fetch(
        self, group_id: str, wanted: Sequence[TopicPartition] | None, *, stable: bool
    ) -> tuple[ErrorCode, dict[TopicPartition, Fetched]]:
        """See Offsets.fetch. A commit between two steps of a long request may be partly seen."""
        fetch = self.core.offsets.fetch
        if wanted is None or len(wanted) <= _STEP_MAX:
            return self._step(lambda: fetch(group_id, wanted, stable=stable))
        fetched: dict[TopicPartition, Fetched] = {}
        async for part in sliced(batched(wanted, _STEP_MAX)):
            error, results = self._step(partial(fetch, group_id, part, stable=stable))
            if error is not ErrorCode.NONE:
                return error, {}
            fetched |= results
        return ErrorCode.NONE, fetched

    def delete_offsets(
        self, group_id: str, keys: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, Errors]:
        return self._step(lambda: self.core.offsets.delete(group_id, keys))

    async def delete_groups(self, group_ids: Sequence[str]) -> dict[str, ErrorCode]:
        errors: dict[str, ErrorCode] = {}
        async for part in sliced(batched(group_ids, _STEP_MAX)):
            errors |= self._step(partial(self.core.offsets.delete_groups, part))
        return errors

    def list_groups(
        self, states: Collection[str], types: Collection[str]
    ) -> tuple[ErrorCode, list[Group]]:
        return self.core.list_groups(states, types)

    def describe(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        return self.core.describe(group_id)

    # --- Leadership ------------------------------------------------------------------------

    def became_leader(self, topic: str, partition: int, leader_epoch: int) -> None:
        """Load the groups of a partition that this broker leads now."""
        if topic != GROUP_METADATA_TOPIC:
            return
        ownership = self.core.ownership
        if self._step(lambda: ownership.begin_loading(partition, leader_epoch)):
            self._spawn(self._load(partition, leader_epoch))

    def resigned(self, topic: str, partition: int) -> None:
        """Drop the groups of a partition that this broker no longer leads."""
        if topic == GROUP_METADATA_TOPIC:
            self._resign(partition)

    def topics_deleted(self, topics: Collection[str]) -> None:
        """Remove the committed offsets of topics that no longer exist."""
        self._step(lambda: self.core.offsets.remove_topics(topics))

    def _resign(self, partition: int) -> None:
        self._step(lambda: self.core.ownership.resign(partition))

    async def _load(self, partition: int, leader_epoch: int) -> None:
        """Load the groups of a partition; stop if this broker resigns.

        After a failure the partition is read again. Until that succeeds, clients get
        COORDINATOR_LOAD_IN_PROGRESS instead of groups without their offsets.
        """
        loading = self.core.table.loading
        while loading.get(partition) == leader_epoch:
            try:
                await self._read_and_serve(partition, leader_epoch)
                return
            except ApiError as error:
                _log.info("__consumer_offsets-%d was not loaded: %s", partition, error.error.name)
                if error.error in _RESIGNED:
                    return  # `resigned` has been or will be called.
            except Exception:
                _log.exception("__consumer_offsets-%d was not loaded", partition)
            await asyncio.sleep(_LOAD_RETRY_S)

    async def _read_and_serve(self, partition: int, leader_epoch: int) -> None:
        """Read the partition from its start to its end, and serve its groups."""
        replay = self.new_replay()
        offset = self._log.start_offset(partition)
        while self.core.table.loading.get(partition) == leader_epoch:
            data = self._log.read(partition, offset, self._settings.load_bytes)
            if not data:
                break
            offset = _replay(replay, partition, data, offset)
            await asyncio.sleep(0)  # Other requests go on during a long load.
        ownership = self.core.ownership
        if self._step(lambda: ownership.finish_loading(partition, leader_epoch, replay.groups())):
            groups = self.core.table.groups_of(partition)
            self._evidence.loaded(partition, leader_epoch, groups)
            _log.info("loaded the groups of __consumer_offsets-%d up to %d", partition, offset)

    # --- Steps and effects -----------------------------------------------------------------

    async def _ask(self, begin: Callable[[object], None]) -> Any:
        ticket: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._step(lambda: begin(ticket))
        result = await ticket
        if isinstance(result, NoResponse):
            raise RequestDroppedError
        return result

    def _step(self, act: Callable[[], _Result]) -> _Result:
        self.core.table.now = self._now()
        result = act()
        self._carry_out()
        return result

    def _carry_out(self) -> None:
        for effect in self.core.table.take_effects():
            match effect:
                case Append():
                    self._spawn(self._append(effect))
                case OffsetsStored():
                    self._evidence.committed(effect)
                case OffsetsDeleted():
                    self._evidence.removed(effect)
                case Respond(ticket, result):
                    assert isinstance(ticket, asyncio.Future)
                    if not ticket.done():  # The client may have disconnected.
                        ticket.set_result(result)
        self._set_timer()

    async def _append(self, append: Append) -> None:
        error, offset = ErrorCode.NONE, -1
        now_ms = self._now().wall_ms
        try:
            records = [NewRecord(now_ms, *record.encode()) for record in append.records]
            offset = await self._log.append(
                append.partition,
                encode_batch(records),
                acks=append.acks,
                timeout_s=self._settings.commit_timeout_s,
            )
        except ApiError as failed:
            error = failed.error
        except OSError:
            _log.exception("__consumer_offsets-%d cannot be written", append.partition)
            error = ErrorCode.KAFKA_STORAGE_ERROR
        except WireError as wrong:
            _log.warning("a group cannot be written: %s", wrong)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        except ConnectionLostError:
            # Before the first append, the topic's configs are read from ZooKeeper. The read failed.
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        except Exception:
            _log.exception("an append to __consumer_offsets-%d failed", append.partition)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        if error is not ErrorCode.NONE and append.acks == NO_ACKS:
            _log.info(
                "tombstones for __consumer_offsets-%d failed with %s; they are written again later",
                append.partition,
                error.name,
            )
        self._step(lambda: self.core.table.appended(append.id, error, offset))

    def _set_timer(self) -> None:
        """Wake up at the next deadline of the core."""
        next_ms = self.core.table.timers.next_at_ms()
        if self._timer is not None and next_ms is not None and self._timer_at_ms <= next_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if next_ms is not None:
            wait_s = max(next_ms - self._now().steady_ms, 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._wake)
            self._timer_at_ms = next_ms

    def _wake(self) -> None:
        self._timer = None
        self._step(self.core.run_due)

    async def _expire_forever(self) -> None:
        while True:
            await asyncio.sleep(self._settings.expiry_interval_s)
            try:
                self._step(self.core.offsets.expire)
            except Exception:
                _log.exception("offsets could not be expired; the next interval tries again")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _replay(replay: Replay, partition: int, data: bytes, offset: int) -> int:
    """Apply whole batches; return the offset after them. Unreadable keys and values are skipped.

    Raises:
        ApiError: a batch is damaged.
    """
    for header, records in decode_batches(data):
        offset = header.next_offset
        if header.is_control:
            continue
        for record in records:
            try:
                decoded = None if record.key is None else decode_record(record.key, record.value)
            except WireError as error:
                _log.warning(
                    "record %d of __consumer_offsets-%d is skipped: %s",
                    record.offset,
                    partition,
                    error,
                )
                continue
            if decoded is not None:
                replay.apply(decoded, header.base_offset)
    return offset
