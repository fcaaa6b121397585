"""Fetch sessions: remember which partitions a consumer or follower fetches. KIP-227. Pure.

An incremental request names only the partitions that the client adds, changes or removes. Its
response has only partitions with news, such as records, an error or changed offsets. The number of
sessions is limited, as in Kafka, and so is the number of their partitions; a client without a
session sends full requests.

A partition is *settled* for a follower that is in the ISR and has all records of the partition. The
leader does not read a settled partition until it changes. So the cost of a request depends on how
many partitions have changed, not on how many the session has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.fetch import FetchPartition, FetchRequest, PartitionData
from bridgehead.slices import sliced
from data_plane.partition import Partition
from data_plane.replication.isr import Follower

NO_SESSION: Final = 0
_FINAL_EPOCH: Final = -1
_INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1
# Partitions of all sessions together. Kafka has no such limit (docs/differences.md). A partition
# takes some 500 bytes.
PARTITIONS_MAX: Final = 500_000
# A session that was not used for this long may be evicted to make room for a new session.
_EVICTABLE_AFTER_MS: Final = 120_000
_IDS_FROM: Final = 13
_NO_TOPIC: Final = bytes(16)


class TopicPartition(NamedTuple):
    """A partition as the client names it: by topic id from version 13 on, else by name."""

    topic_id: bytes
    name: str
    partition: int


class Sent(NamedTuple):
    """What the last response said about a partition."""

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


_NOTHING_SENT: Final = Sent(-1, -1, -1)
# What a follower assumes about an empty log.
_EMPTY: Final = Sent(0, 0, 0)


@dataclass(slots=True)
class _Cached:
    wanted: FetchPartition
    sent: Sent = _NOTHING_SENT


class _Settled:
    """A partition that is not read until it changes; the watch on this change."""

    __slots__ = ("follower", "key", "partition", "session")

    def __init__(
        self, session: FetchSession, key: TopicPartition, partition: Partition, follower: Follower
    ) -> None:
        self.session = session
        self.key = key
        self.partition = partition
        self.follower = follower

    def __call__(self) -> None:
        """The partition has changed."""
        self.session.unsettle(self.key)
        self.session.wake()


@dataclass(slots=True)
class FetchSession:
    """One client's partitions. Each request reads those in `unsettled`, in the dict's order."""

    session_id: int
    uses_ids: bool
    used_ms: int
    epoch: int = 1  # expected in the next request
    partitions: dict[TopicPartition, _Cached] = field(default_factory=dict)
    unsettled: OrderedDict[TopicPartition, None] = field(default_factory=OrderedDict)
    settled: dict[TopicPartition, _Settled] = field(default_factory=dict)
    # Called when a partition is no longer settled.
    wake: Callable[[], None] = lambda: None

    async def update(self, wanted: Iterable[tuple[TopicPartition, FetchPartition]]) -> None:
        """Add partitions, or replace the fetch parameters of partitions that are known."""
        async for key, partition in sliced(wanted):
            followed = self.partitions.get(key)
            if followed is None:
                self.partitions[key] = _Cached(partition)
                self.unsettled[key] = None
            else:
                followed.wanted = partition
                self.unsettle(key)

    def settle(self, key: TopicPartition, partition: Partition, follower: Follower) -> None:
        """Do not read a partition until it changes."""
        del self.unsettled[key]
        settled = self.settled[key] = _Settled(self, key, partition, follower)
        partition.watch(settled)

    def unsettle(self, key: TopicPartition) -> None:
        """Read a partition again; record that its follower had all records at the last request."""
        settled = self.settled.pop(key, None)
        if settled is not None:
            settled.partition.unwatch(settled)
            settled.follower.had_all_records(self.used_ms)
            self.unsettled[key] = None

    async def forget(self, keys: Iterable[TopicPartition]) -> None:
        """Remove partitions from the session."""
        async for key in sliced(keys):
            self.unsettle(key)
            self.unsettled.pop(key, None)
            self.partitions.pop(key, None)


class FetchSessions:
    """The sessions of one broker. `new_id` returns a random positive number."""

    def __init__(self, limit: int, new_id: Callable[[], int]) -> None:
        self._limit = limit
        self._new_id = new_id
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def _has_room_for(self, number: int) -> bool:
        used = sum(len(session.partitions) for session in self._sessions.values())
        return used + number <= PARTITIONS_MAX

    async def open(self, message: FetchRequest, version: int, now_ms: int) -> Context:
        """Return the context of a request, like Kafka's `FetchManager.newContext`.

        Raises:
            ApiError: the session does not exist, or the partitions of all sessions became too
                many (FETCH_SESSION_ID_NOT_FOUND), its epoch differs
                (INVALID_FETCH_SESSION_EPOCH), or the client changed between topic names and topic
                ids (FETCH_SESSION_TOPIC_ID_ERROR).
        """
        # A partition that is named twice counts once, with its last parameters.
        named = {key: partition async for key, partition in sliced(_wanted(message, version))}
        wanted = list(named.items())
        if message.session_epoch in (_FINAL_EPOCH, _INITIAL_EPOCH):
            await self._close(message.session_id)
            is_new = message.session_epoch == _INITIAL_EPOCH
            return Context(self, None, wanted, is_new, version >= _IDS_FROM, now_ms)
        session = self._sessions.get(message.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != message.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != (version >= _IDS_FROM):
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if not self._has_room_for(len(wanted)):
            await self._close(session.session_id)
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.used_ms = now_ms
        self._sessions.move_to_end(session.session_id)
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        await session.update(wanted)
        await session.forget(_forgotten(message, version))
        if not session.partitions:
            self._sessions.pop(session.session_id, None)
            return Context(self, None, [], False, session.uses_ids, now_ms)
        return Context(self, session, [], False, session.uses_ids, now_ms)

    async def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await session.forget(list(session.partitions))

    async def create(
        self, wanted: list[tuple[TopicPartition, FetchPartition]], uses_ids: bool, now_ms: int
    ) -> FetchSession | None:
        """Return a new session; None if there is no room for it."""
        if len(self._sessions) >= self._limit:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.used_ms <= _EVICTABLE_AFTER_MS:
                return None
            await self._close(oldest.session_id)
        if not self._has_room_for(len(wanted)):
            return None
        session_id = self._new_id()
        while session_id in self._sessions or session_id == NO_SESSION:
            session_id = self._new_id()
        session = self._sessions[session_id] = FetchSession(session_id, uses_ids, now_ms)
        await session.update(wanted)
        return session


class Context:
    """The context of one request: which partitions to read and which to return."""

    def __init__(
        self,
        sessions: FetchSessions,
        session: FetchSession | None,
        wanted: list[tuple[TopicPartition, FetchPartition]],
        is_new: bool,
        uses_ids: bool,
        now_ms: int,
    ) -> None:
        self._wanted = wanted
        self._sessions = sessions
        self._session = session
        self._is_new = is_new
        self._uses_ids = uses_ids
        self._now_ms = now_ms

    @property
    def session_id(self) -> int:
        """The request's session; 0 for none."""
        return NO_SESSION if self._session is None else self._session.session_id

    @property
    def wanted(self) -> list[tuple[TopicPartition, FetchPartition]]:
        """The partitions to read."""
        if self._session is None:
            return self._wanted
        cached = self._session.partitions
        return [(key, cached[key].wanted) for key in self._session.unsettled]

    @property
    def is_empty(self) -> bool:
        """True if the client fetches no partition."""
        return not self._wanted and self._session is None

    @property
    def has_settled(self) -> bool:
        """True if the session has partitions that are not read until they change."""
        return self._session is not None and bool(self._session.settled)

    def on_change(self, wake: Callable[[], None]) -> None:
        """Call `wake` when there are more partitions to read."""
        if self._session is not None:
            self._session.wake = wake

    def settle(self, key: TopicPartition, partition: Partition, follower: Follower) -> None:
        """Do not read this partition until it changes. Call this after `finish`."""
        if self._session is not None and key in self._session.unsettled:
            self._session.settle(key, partition, follower)

    def settle_if_known(
        self, key: TopicPartition, partition: Partition, follower: Follower
    ) -> bool:
        """Settle a partition if the follower knows its offsets. The response then omits it.

        Unlike in Kafka, the first response of an incremental request omits an empty log, too.
        """
        session = self._session
        cached = session.partitions.get(key) if session is not None else None
        if session is None or cached is None or key not in session.unsettled:
            return False
        mark = partition.high_watermark
        now = Sent(mark, mark, partition.log.start_offset)
        if cached.sent != now and (cached.sent != _NOTHING_SENT or now != _EMPTY):
            return False
        cached.sent = now
        session.settle(key, partition, follower)
        return True

    def unsettle_all(self) -> None:
        """Read all partitions."""
        if self._session is not None:
            for key in list(self._session.settled):
                self._session.unsettle(key)

    def has_news(self, key: TopicPartition, response: PartitionData) -> bool:
        """Return whether the response must contain this partition."""
        if self._session is None:
            return True
        cached = self._session.partitions.get(key)
        return (
            cached is None
            or bool(response.records)
            or response.error_code != ErrorCode.NONE
            or response.preferred_read_replica >= 0
            or response.diverging_epoch.end_offset >= 0
            or cached.sent != _sent(response)
        )

    async def finish(self, responses: list[tuple[TopicPartition, PartitionData]]) -> int:
        """Remember what the response says; return its session id, or 0 for no session.

        A partition with records goes to the end of the order, so that every partition gets its
        turn.
        """
        is_new = self._session is None and self._is_new and self._wanted
        if is_new:
            self._session = await self._sessions.create(self._wanted, self._uses_ids, self._now_ms)
        session = self._session
        if session is None:
            return NO_SESSION
        async for key, response in sliced(responses):
            cached = session.partitions.get(key)
            if cached is None:
                continue
            # After an error the next response has the partition again.
            failed = response.error_code != ErrorCode.NONE
            cached.sent = _NOTHING_SENT if failed else _sent(response)
            if response.records and not is_new and key in session.unsettled:
                session.unsettled.move_to_end(key)
        return session.session_id


def _sent(response: PartitionData) -> Sent:
    return Sent(response.high_watermark, response.last_stable_offset, response.log_start_offset)


def _wanted(message: FetchRequest, version: int) -> Iterable[tuple[TopicPartition, FetchPartition]]:
    by_id = version >= _IDS_FROM
    for topic in message.topics:
        for partition in topic.partitions:
            topic_id, name = (topic.topic_id, "") if by_id else (_NO_TOPIC, topic.topic)
            yield TopicPartition(topic_id, name, partition.partition), partition


def _forgotten(message: FetchRequest, version: int) -> Iterable[TopicPartition]:
    by_id = version >= _IDS_FROM
    for topic in message.forgotten_topics_data:
        topic_id, name = (topic.topic_id, "") if by_id else (_NO_TOPIC, topic.topic)
        for number in topic.partitions:
            yield TopicPartition(topic_id, name, number)
