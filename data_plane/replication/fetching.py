"""Builds a follower's requests to one leader, and applies the responses. No network, no clock.

A follower fetches from the end of its log and names the epoch of its last record. If the leader's
log differs there, the response says where it diverges, and the follower truncates its log (see
`truncation`). Requests are incremental (KIP-227): they name only the partitions whose parameters
have changed since the last request, so an unchanged partition costs nothing.
Source: AbstractFetcherThread and FetchSessionHandler of Kafka 3.9.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, NamedTuple

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from data_plane.log.checkpoints import LogName
from data_plane.log.epochs import UNDEFINED_OFFSET, LeaderEpochs
from data_plane.partition import Partition

_log = logging.getLogger(__name__)
# The timestamps of ListOffsets that mean the end and the start of the log.
_LATEST: Final = -1
_EARLIEST: Final = -2
# The session epoch of a request that names all partitions and begins a session, and the largest
# session epoch.
_FULL: Final = 0
_EPOCH_MAX: Final = 2**31 - 1
# These errors are expected: leader and follower learn of a change at different times.
_EXPECTED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class FetchLimits(NamedTuple):
    """The broker configs of follower fetches."""

    wait_max_ms: int  # replica.fetch.wait.max.ms
    min_bytes: int  # replica.fetch.min.bytes
    partition_bytes_max: int  # replica.fetch.max.bytes
    response_bytes_max: int  # replica.fetch.response.max.bytes
    backoff_ms: int  # replica.fetch.backoff.ms


@dataclass(slots=True)
class _Followed:
    """A partition in one leader epoch."""

    partition: Partition
    leader_epoch: int
    # Set after a fetch from an offset that the leader lacks: the timestamp for ListOffsets.
    asks_for: int | None = None
    retry_ms: int = 0

    @property
    def is_current(self) -> bool:
        """False once the partition has another leader or leader epoch."""
        return self.partition.leader_epoch == self.leader_epoch

    def is_ready(self, now_ms: int) -> bool:
        """Return whether a request may name the partition now."""
        return self.is_current and self.retry_ms <= now_ms


class _Sent(NamedTuple):
    """What the fetch session at the leader has for a partition."""

    topic_id: bytes
    wanted: FetchPartition


class Fetching:
    """The partitions that a broker follows on one leader. Times are monotonic, except `wall_ms`."""

    def __init__(self, broker_id: int, leader: int, limits: FetchLimits) -> None:
        self._broker_id = broker_id
        self._leader = leader
        self._limits = limits
        self._followed: dict[LogName, _Followed] = {}
        self._session_id = 0
        self._epoch = _FULL  # the session epoch of the next request
        self._sent: dict[LogName, _Sent] = {}
        self._names: dict[tuple[bytes, int], LogName] = {}  # of `_sent`, by topic id and partition
        # The next request can differ from the leader's session only in these partitions.
        self._due: dict[LogName, None] = {}

    def restart(self) -> None:
        """Name all partitions in the next request: there is no session, or it may be outdated."""
        self._epoch = _FULL
        self._sent.clear()
        self._names.clear()
        self._due = dict.fromkeys(self._followed)

    @property
    def is_empty(self) -> bool:
        """True when nothing is followed on this leader."""
        return not self._followed

    def follow(self, name: LogName, partition: Partition | None) -> None:
        """Follow a partition if this object's leader leads it now, else stop following it."""
        if name in self._followed:
            self._due[name] = None
        if partition is None or partition.leader != self._leader or self._leader == self._broker_id:
            self._followed.pop(name, None)
            return
        followed = self._followed.get(name)
        if followed is None or followed.partition is not partition or not followed.is_current:
            self._followed[name] = _Followed(partition, partition.leader_epoch)
            self._due[name] = None

    def retry_in_ms(self, now_ms: int) -> int:
        """Return how long to wait before the next request; 0 if one can be sent now."""
        due = (self._followed[name] for name in self._due if name in self._followed)
        waits = (max(0, followed.retry_ms - now_ms) for followed in due)
        return min(waits, default=self._limits.backoff_ms)

    # --- Fetching ------------------------------------------------------------------------

    def fetch_request(self, now_ms: int, broker_epoch: int) -> FetchRequest | None:
        """Return a request for the records that the logs lack; None if nothing can be fetched.

        A partition that cannot be fetched now is removed from the session and remains due.
        """
        topics: dict[bytes, FetchTopic] = {}
        forgotten: list[ForgottenTopic] = []
        for name in list(self._due):
            followed, sent = self._followed.get(name), self._sent.get(name)
            wanted = self._wanted(followed, now_ms) if followed is not None else None
            if followed is None or wanted is not None:
                del self._due[name]
            if wanted == sent:
                continue
            if sent is not None and (wanted is None or wanted.topic_id != sent.topic_id):
                forgotten.append(ForgottenTopic(sent.topic_id, name[0], [name[1]]))
                del self._sent[name], self._names[sent.topic_id, name[1]]
            if wanted is not None:
                row = topics.setdefault(wanted.topic_id, FetchTopic(wanted.topic_id, name[0], []))
                row.partitions.append(wanted.wanted)
                self._sent[name] = wanted
                self._names[wanted.topic_id, name[1]] = name
        if not self._sent:
            self.restart()
            return None
        return FetchRequest(
            replica_id=self._broker_id,
            max_wait_ms=self._limits.wait_max_ms,
            min_bytes=self._limits.min_bytes,
            max_bytes=self._limits.response_bytes_max,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=list(topics.values()),
            forgotten_topics_data=forgotten,
            replica_state=ReplicaState(self._broker_id, broker_epoch),
        )

    def _wanted(self, followed: _Followed, now_ms: int) -> _Sent | None:
        if not followed.is_ready(now_ms) or followed.asks_for is not None:
            return None
        log = followed.partition.log
        wanted = FetchPartition(
            partition=followed.partition.number,
            current_leader_epoch=followed.leader_epoch,
            fetch_offset=log.end_offset,
            last_fetched_epoch=log.epochs.latest,
            log_start_offset=log.start_offset,
            partition_max_bytes=self._limits.partition_bytes_max,
        )
        return _Sent(log.topic_id, wanted)

    def fetched(self, response: FetchResponse, now_ms: int, wall_ms: int) -> int:
        """Append the records of the last response; return how many bytes were appended."""
        count = 0
        for topic in response.responses:
            for partition_data in topic.partitions:
                number = partition_data.partition_index
                name = self._names.get((topic.topic_id, number), (topic.topic, number))
                current = self._current(name)
                if current is None:
                    continue
                self._due[name] = None
                if partition_data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    current.asks_for = _LATEST
                elif partition_data.error_code:
                    self._failed(current, partition_data.error_code, now_ms)
                elif partition_data.diverging_epoch.end_offset >= 0:
                    self._diverged(current, partition_data.diverging_epoch)
                elif self._sent[name].wanted.fetch_offset == current.partition.log.end_offset:
                    count += self._append(current, partition_data, now_ms, wall_ms)
        if response.error_code or not response.session_id:
            self.restart()
        else:
            self._session_id = response.session_id
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1
        return count

    def _current(self, name: LogName) -> _Followed | None:
        """Return the partition if the answer is for its present topic id and leader epoch."""
        followed, sent = self._followed.get(name), self._sent.get(name)
        if followed is None or sent is None or not followed.is_current:
            return None
        if sent.topic_id != followed.partition.log.topic_id:  # A deleted topic had the same name.
            return None
        return followed if sent.wanted.current_leader_epoch == followed.leader_epoch else None

    def _diverged(self, followed: _Followed, leader: EpochEndOffset) -> None:
        log = followed.partition.log
        offset = truncation(log.epochs, log.end_offset, leader.epoch, leader.end_offset)
        self._truncate(followed, offset)

    def _truncate(self, followed: _Followed, offset: int) -> None:
        partition, epoch = followed.partition, followed.leader_epoch
        if offset < partition.log.end_offset:
            _log.info("%s is truncated to %d in leader epoch %d", partition, offset, epoch)
            partition.truncate_to(offset)

    def _append(
        self, followed: _Followed, partition_data: PartitionData, now_ms: int, wall_ms: int
    ) -> int:
        try:
            followed.partition.append_as_follower(
                partition_data.records or b"",
                partition_data.high_watermark,
                partition_data.log_start_offset,
                wall_ms,
            )
        except ApiError as error:
            self._failed(followed, error.error, now_ms)
            return 0
        return len(partition_data.records or b"")

    def _failed(self, followed: _Followed, code: int, now_ms: int) -> None:
        """Try the partition again later; a new leader epoch ends the wait."""
        followed.retry_ms = now_ms + self._limits.backoff_ms
        if code not in _EXPECTED:
            _log.warning("%s cannot be fetched: error %d", followed.partition, code)

    # --- Offsets that are out of the leader's range --------------------------------------

    def offsets_request(self, now_ms: int) -> ListOffsetsRequest | None:
        """Ask where the leader's logs end or begin, after OFFSET_OUT_OF_RANGE for a fetch."""
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for name in self._due:
            followed = self._followed.get(name)
            if followed is not None and followed.is_ready(now_ms) and followed.asks_for is not None:
                asked = ListOffsetsPartition(name[1], followed.leader_epoch, followed.asks_for)
                topics.setdefault(name[0], []).append(asked)
        if not topics:
            return None
        rows = [ListOffsetsTopic(topic, partitions) for topic, partitions in topics.items()]
        return ListOffsetsRequest(self._broker_id, 0, rows)

    def offsets_listed(self, response: ListOffsetsResponse, now_ms: int) -> None:
        """Truncate each log to the leader's end, or restart it where the leader's log begins."""
        for topic in response.topics:
            for result in topic.partitions:
                followed = self._followed.get((topic.name, result.partition_index))
                if followed is None or followed.asks_for is None or not followed.is_current:
                    continue
                own_end = followed.partition.log.end_offset
                if result.error_code:
                    self._failed(followed, result.error_code, now_ms)
                elif followed.asks_for == _EARLIEST:
                    followed.asks_for = None
                    if result.offset > own_end:
                        followed.partition.restart_at(result.offset)
                    else:  # The leader's log has changed since the fetch.
                        followed.retry_ms = now_ms + self._limits.backoff_ms
                elif result.offset < own_end:
                    followed.asks_for = None
                    self._truncate(followed, result.offset)
                else:
                    followed.asks_for = _EARLIEST


def truncation(
    epochs: LeaderEpochs, end_offset: int, leader_epoch: int, leader_end_offset: int
) -> int:
    """Return where a log must end after its leader's answer (`leader_epoch`, `leader_end_offset`).

    KIP-101, KIP-279, KIP-595: a follower names the leader epoch of its last record. If the leader's
    log differs, the leader answers with its own largest epoch up to the named epoch, and with the
    end offset of that epoch. The follower's records from that offset on come from a leader that
    failed before they were committed.

    `epochs` and `end_offset` are those of the follower. If its log lacks the epoch `leader_epoch`,
    the log is cut after its largest epoch below `leader_epoch`. The next fetch compares again.
    """
    own_epoch, own_end = epochs.end_offset(leader_epoch, end_offset)
    if own_end == UNDEFINED_OFFSET:
        return min(leader_end_offset, end_offset)
    if own_epoch != leader_epoch:
        return min(own_end, end_offset)
    return min(own_end, leader_end_offset, end_offset)
