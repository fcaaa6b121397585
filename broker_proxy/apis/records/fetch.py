"""Fetch, key 1, versions 0 to 17: records for consumers and followers (docs/kafka).

The order of checks is that of `KafkaApis.handleFetchRequest`. A response is sent when it has
`min_bytes`, a diverging epoch or a nearer replica, when reading a log failed, when no log can be
read, or when `max_wait_ms` has passed. A partition that is unknown or denied does not end the wait
for the others.

Version notes:
    0 to 3: record batches of format 2 are converted to an older format. From 3 on: a size limit for
    the whole response, but its first record batch is always complete. 4: isolation level.
    7: sessions. 9: the client's leader epoch. 10: zstd. 11: the consumer's rack. 12: diverging
    epochs. 13: topic ids. 16: the current leader's address.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import encode_response
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from bridgehead.kafka_wire.schema import has_more_elements
from bridgehead.slices import in_thread, sliced
from broker_proxy.apis.records.current_leaders import Moved, name_leaders
from broker_proxy.apis.records.fetch_sessions import Context, FetchSessions, TopicPartition
from broker_proxy.client_quotas import ClientQuota
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from broker_proxy.metadata.cache import MetadataCache
from data_plane.partition import Partition
from data_plane.partitions import Partitions
from data_plane.record_deletion import RecordDeletion
from data_plane.records.batch import PREFIX_BYTES, parse_prefix
from data_plane.records.down_conversion import for_version
from metrics import names
from metrics.node_metrics import NodeMetrics

_SMALL_ELEMENTS: Final = 1_000  # a response of so many elements is encoded within a slice
_SINGLE_LIMIT_THROUGH: Final = 2  # through this version the first batch may be incomplete
_ZSTD: Final = "zstd"
_ZSTD_FROM: Final = 10  # the first version whose consumers know zstd
_FORMAT_2_FROM: Final = 4
_FOLLOWERS_SERVE_FROM: Final = 11
_IDS_FROM: Final = 13
_REPLICA_STATE_FROM: Final = 15
_LEADERS_FROM: Final = 16
_READ_COMMITTED: Final = 1
_ISOLATION_LEVELS: Final = (0, 1)
# Errors that occur after the records were read. As in Kafka, `records` is then null.
_OF_CONVERSION: Final = (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, ErrorCode.UNSUPPORTED_VERSION)
_NO_TOPIC: Final = bytes(16)
# After a change of roles the follower usually learns of it within this time.
_ROLES_KNOWN_AFTER_S: Final = 0.02
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class _Wanted(NamedTuple):
    """One partition to read.

    `name` is None for an unknown topic id or, below version 13, an empty name. `refusal` is an
    error found without reading a log.
    """

    key: TopicPartition
    name: str | None
    partition: FetchPartition
    rejection: ErrorCode


class _Result(NamedTuple):
    responses: list[PartitionData]
    size: int
    is_final: bool  # respond now: failed read, diverging epoch, nearer replica, or no log to read


@dataclass(frozen=True, slots=True)
class Fetch:
    """Answers Fetch requests. `bytes_max` is fetch.max.bytes."""

    cache: MetadataCache
    partitions: Partitions
    authorize_for: AuthorizeFor
    bytes_max: int
    deletion: RecordDeletion
    sessions: FetchSessions
    quota: ClientQuota
    metrics: NodeMetrics
    # Whether consumers are sent to an in-sync replica in their rack (KIP-392).
    is_rack_aware: bool = False
    api_key: ClassVar[ApiKey] = ApiKey.FETCH

    async def handle(self, request: ClientRequest, message: FetchRequest) -> Any:
        """Return a result per partition. Incremental responses omit partitions without news."""
        version = request.header.api_version
        now_ms = time.monotonic_ns() // 1_000_000
        try:
            context = await self.sessions.open(message, version, now_ms)
        except ApiError as rejection:
            return FetchResponse(error_code=rejection.error)
        replica = message.replica_id
        if message.isolation_level not in _ISOLATION_LEVELS:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
        if version >= _REPLICA_STATE_FROM:
            replica = message.replica_state.replica_id
        may_read = self._may_read(request, is_follower=replica >= 0)
        if replica < 0 or not may_read(""):
            context.unsettle_all()
        bytes_max = min(message.max_bytes, self.bytes_max)
        if replica < 0:
            bytes_max = int(min(bytes_max, self.quota.largest(request.client)))
        read = _Read(self, message, version, replica, context, may_read, bytes_max)
        result = await read.when_ready()
        wanted = read.wanted
        self.metrics.count(names.FETCH_REQUESTS, len(wanted) + read.settled_count)
        response = FetchResponse()
        if version >= _LEADERS_FROM:
            response.node_endpoints = name_leaders(
                self.cache,
                request.client.listener_name,
                await _moved(wanted, result.responses),
                NodeEndpoint,
            )
        news = [
            (stream.key, partition_data)
            async for stream, partition_data in sliced(zip(wanted, result.responses, strict=True))
            if context.has_news(stream.key, partition_data)
        ]
        response.responses = await _by_topic(news)
        if replica < 0 and (throttle_ms := await self._throttle_ms(request, response)):
            request.progress.throttle_ms = throttle_ms
            return FetchResponse(throttle_time_ms=throttle_ms, session_id=context.session_id)
        response.session_id = await context.finish(news)
        if replica >= 0:
            await self._settle(context, replica, wanted, result.responses)
        else:
            sent = sum(len(partition_data.records or b"") for _, partition_data in news)
            self.metrics.count(names.BYTES_OUT, sent)
        return response

    async def _throttle_ms(self, request: ClientRequest, response: FetchResponse) -> int:
        """Charge the response to the quota. As in Kafka, a throttled client gets no records."""
        if not self.quota.is_enabled:
            return 0
        large, version = has_more_elements(response, _SMALL_ELEMENTS), request.header.api_version
        size = len(await in_thread(large, encode_response, ApiKey.FETCH, version, response))
        throttle_ms = self.quota.charge(request.client, size)
        if throttle_ms:
            self.quota.take_back(request.client, size)
        return throttle_ms

    def _may_read(self, request: ClientRequest, *, is_follower: bool) -> Callable[[str], bool]:
        """Return a function that tells whether the client may read a topic.

        A follower may read all topics or none.
        """
        authorize = self.authorize_for(request)
        if is_follower:
            is_broker = authorize("CLUSTER_ACTION", "CLUSTER", "kafka-cluster")
            return lambda _name: is_broker
        return lambda name: authorize("READ", "TOPIC", name)

    def wanted(
        self,
        key: TopicPartition,
        partition: FetchPartition,
        version: int,
        may_read: Callable[[str], bool],
    ) -> _Wanted:
        """Look up the topic's name and make the checks that need no log."""
        name = self.cache.topic_name(key.topic_id) if key.topic_id != _NO_TOPIC else key.name
        rejection = ErrorCode.NONE
        if not name:
            by_id = version >= _IDS_FROM
            no_name = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return _Wanted(key, None, partition, no_name)
        topic = self.cache.topics.get(name)
        if not may_read(name):
            rejection = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or partition.partition not in topic.partitions:
            rejection = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _Wanted(key, name, partition, rejection)

    def has_outdated_epoch(self, key: TopicPartition, wanted: FetchPartition) -> bool:
        """Return whether the partition has had an election that the follower had not heard of."""
        name = self.cache.topic_name(key.topic_id)
        partition = self.partitions.find((name or "", key.partition))
        return partition is not None and 0 <= wanted.current_leader_epoch < partition.leader_epoch

    def settle_if_idle(
        self, context: Context, replica: int, key: TopicPartition, wanted: FetchPartition
    ) -> bool:
        """Settle a partition that the response need not contain (see fetch_sessions).

        Return False if it must be read. Most partitions of a follower are idle, so this is what a
        fetch costs after an election of many leaders.
        """
        name = self.cache.topic_name(key.topic_id)
        partition = self.partitions.find((name or "", key.partition))
        if partition is None or wanted.current_leader_epoch != partition.leader_epoch:
            return False
        log, epoch = partition.log, wanted.last_fetched_epoch
        if wanted.fetch_offset != log.end_offset or wanted.partition_max_bytes < 0:
            return False
        if log.topic_id != key.topic_id:
            return False
        if epoch >= 0 and log.epochs.end_offset(epoch, log.end_offset) != (epoch, log.end_offset):
            return False
        partition.follower_fetched(replica, wanted.fetch_offset)
        self.deletion.follower_fetched(partition, replica, wanted.log_start_offset)
        follower = partition.settled(replica)
        return follower is not None and context.settle_if_known(key, partition, follower)

    async def _settle(
        self,
        context: Context,
        replica: int,
        wanted: Sequence[_Wanted],
        responses: Sequence[PartitionData],
    ) -> None:
        """Settle the partitions of which the follower now has all records (see fetch_sessions)."""
        async for part, response in sliced(zip(wanted, responses, strict=True)):
            if response.error_code != ErrorCode.NONE or response.diverging_epoch.end_offset >= 0:
                continue
            partition = self.partitions.find((part.name or "", part.partition.partition))
            follower = partition.settled(replica) if partition is not None else None
            if partition is not None and follower is not None:
                context.settle(part.key, partition, follower)


class _Read:
    """Reads the partitions of one request. Reads again after each change until it has enough."""

    def __init__(
        self,
        fetch: Fetch,
        message: FetchRequest,
        version: int,
        replica: int,
        context: Context,
        may_read: Callable[[str], bool],
        bytes_max: int,
    ) -> None:
        self.wanted: list[_Wanted] = []
        self._fetch = fetch
        self._context = context
        self._may_read = may_read
        self._partitions = fetch.partitions
        self._deletion = fetch.deletion
        self._brokers = fetch.cache.brokers
        self._rack = message.rack_id if fetch.is_rack_aware and replica < 0 else ""
        self._bytes_max = bytes_max
        self._message = message
        self._version = version
        self._replica = replica
        self._wanted_keys: set[TopicPartition] = set()
        self.settled_count = 0  # partitions that needed not be read
        self._is_outdated = False  # elections since the request was sent
        # Followers that name topic ids need no answer for idle partitions.
        self._settles = replica >= 0 and version >= _IDS_FROM and may_read("")

    async def _name_changed(self, *, waits: bool = False) -> list[_Wanted]:
        """Add the partitions that have become unsettled since the last call; return them.

        While the request `waits`, partitions with elections that the follower had not heard of are
        left for its next request, which names their new epochs.
        """
        more = []
        async for key, partition in sliced(self._context.wanted):
            if key in self._wanted_keys:
                continue
            if self._settles and self._fetch.settle_if_idle(
                self._context, self._replica, key, partition
            ):
                self.settled_count += 1
            elif waits and self._settles and self._fetch.has_outdated_epoch(key, partition):
                self._is_outdated = True
            else:
                more.append(self._fetch.wanted(key, partition, self._version, self._may_read))
        self._wanted_keys.update(part.key for part in more)
        self.wanted += more
        return more

    async def when_ready(self) -> _Result:
        """Return results once they are enough (see the module), or `max_wait_ms` has passed."""
        message = self._message
        changed = asyncio.Event()
        watched: list[Partition] = []
        self._context.on_change(changed.set)  # From now on, because partitions settle below.
        try:
            await self._name_changed()
            result = await self._read_all()
            if self._is_enough(result) or message.max_wait_ms <= 0 or self._context.is_empty:
                return result
            deadline = time.monotonic() + message.max_wait_ms / 1000
            await self._watch(self.wanted, changed, watched)
            while not self._is_enough(result):
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    break
                try:
                    async with asyncio.timeout(remaining):
                        await changed.wait()
                except TimeoutError:
                    pass
                changed.clear()
                await self._watch(await self._name_changed(waits=True), changed, watched)
                result = await self._read_all()
                if self._is_outdated and not self._is_enough(result):
                    await asyncio.sleep(min(max(remaining, 0), _ROLES_KNOWN_AFTER_S))
                    await self._name_changed(waits=True)
                    return await self._read_all()
            return result
        finally:
            self._context.on_change(lambda: None)
            for partition in watched:
                partition.unwatch(changed.set)

    def _is_enough(self, result: _Result) -> bool:
        return result.is_final or result.size >= min(self._message.min_bytes, self._bytes_max)

    async def _watch(
        self, wanted: Iterable[_Wanted], changed: asyncio.Event, watched: list[Partition]
    ) -> None:
        async for part in sliced(wanted):
            partition = self._partitions.find((part.name or "", part.partition.partition))
            if partition is not None and part.rejection is ErrorCode.NONE:
                partition.watch(changed.set)
                watched.append(partition)

    async def _read_all(self) -> _Result:
        responses, size, is_final = [], 0, False
        whole_first = self._version > _SINGLE_LIMIT_THROUGH
        async for key, name, wanted, error in sliced(self.wanted):
            response = PartitionData(
                partition_index=wanted.partition, high_watermark=-1, records=b"",
                aborted_transactions=None,
            )  # fmt: skip
            responses.append(response)
            try:
                if error is not ErrorCode.NONE:
                    raise ApiError(error)
                assert name is not None
                if wanted.partition_max_bytes < 0:
                    raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
                limit = min(wanted.partition_max_bytes, self._bytes_max - size)
                partition = self._partitions.get(name, wanted.partition)
                if len({key.topic_id, partition.log.topic_id} - {_NO_TOPIC}) > 1:
                    # The topic was deleted and created again while the request waited.
                    raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)
                self._read(partition, wanted, response, max(limit, 0), whole_first=whole_first)
            except ApiError as rejection:
                converts = rejection.error in _OF_CONVERSION
                was_read = error is ErrorCode.NONE and not converts
                response = responses[-1] = PartitionData(
                    partition_index=wanted.partition, error_code=rejection.error, high_watermark=-1,
                    records=None if converts else b"",
                    aborted_transactions=None if was_read else [],
                )  # fmt: skip
            count = len(response.records or b"")
            whole_first = whole_first and not count
            size += count
            diverges = response.diverging_epoch.end_offset >= 0
            diverges = diverges or response.preferred_read_replica >= 0
            failed = response.error_code != ErrorCode.NONE and error is ErrorCode.NONE
            is_final = is_final or diverges or failed
        reads_none = all(part.rejection is not ErrorCode.NONE for part in self.wanted)
        return _Result(responses, size, is_final or (reads_none and not self._context.has_settled))

    def _read(
        self,
        partition: Partition,
        wanted: FetchPartition,
        response: PartitionData,
        limit: int,
        *,
        whole_first: bool,
    ) -> None:
        is_follower = self._replica >= 0
        if is_follower or self._version < _FOLLOWERS_SERVE_FROM:
            partition.require_leader(wanted.current_leader_epoch)
        else:
            partition.check_epoch(wanted.current_leader_epoch)
        if is_follower and self._replica not in partition.replicas:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = partition.log
        offset, mark = wanted.fetch_offset, partition.high_watermark
        if wanted.last_fetched_epoch >= 0:  # Kafka reads every negative value as no epoch.
            epoch, end = log.epochs.end_offset(wanted.last_fetched_epoch, log.end_offset)
            if end < 0 or offset < log.start_offset:
                raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch != wanted.last_fetched_epoch or end < offset:
                response.diverging_epoch = EpochEndOffset(epoch, end)
                self._describe(response, partition)
                return
        nearer = self._nearer_replica(partition, offset)
        if nearer is not None:
            response.preferred_read_replica = nearer
            self._describe(response, partition)
            return
        records = log.read(
            offset, limit, log.end_offset if is_follower else mark, whole_first=whole_first
        )
        if is_follower:
            partition.follower_fetched(self._replica, offset)
            self._deletion.follower_fetched(partition, self._replica, wanted.log_start_offset)
        if self._version > _SINGLE_LIMIT_THROUGH and _is_cut(records):
            records = b""
        self._describe(response, partition)
        if self._version < _ZSTD_FROM and log.settings().values["compression.type"] == _ZSTD:
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        converts = self._version < _FORMAT_2_FROM and records
        if converts and not log.settings().values["message.downconversion.enable"]:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        response.records = for_version(self._version, records, offset)

    def _nearer_replica(self, partition: Partition, offset: int) -> int | None:
        """Return an in-sync replica in the consumer's rack; None to read from this broker."""
        if not self._rack or not partition.is_leader or offset > partition.high_watermark:
            return None
        live = {
            replica: self._brokers[replica] for replica in partition.isr if replica in self._brokers
        }
        near = [broker_id for broker_id, broker in live.items() if broker.rack == self._rack]
        return None if not near or partition.broker_id in near else near[0]

    def _describe(self, response: PartitionData, partition: Partition) -> None:
        response.high_watermark = partition.high_watermark
        response.last_stable_offset = partition.high_watermark  # There are no transactions.
        response.log_start_offset = partition.log.start_offset
        if self._message.isolation_level == _READ_COMMITTED and self._replica < 0:
            response.aborted_transactions = []


async def _moved(wanted: Sequence[_Wanted], responses: Sequence[PartitionData]) -> list[Moved]:
    return [
        Moved(
            part.name or "", partition_response.partition_index, partition_response.current_leader
        )
        async for part, partition_response in sliced(zip(wanted, responses, strict=True))
        if partition_response.error_code in _MOVED
    ]


def _is_cut(records: bytes) -> bool:
    """Return whether the first batch is incomplete."""
    if not records:
        return False
    return len(records) < PREFIX_BYTES or len(records) < parse_prefix(records)[1]


async def _by_topic(
    responses: Sequence[tuple[TopicPartition, PartitionData]],
) -> list[FetchableTopicResponse]:
    """Group adjacent partitions of a topic, in their order."""
    topics: list[FetchableTopicResponse] = []
    async for (topic_id, name, _), response in sliced(responses):
        if not topics or (topics[-1].topic_id, topics[-1].topic) != (topic_id, name):
            topics.append(FetchableTopicResponse(topic_id=topic_id, topic=name, partitions=[]))
        topics[-1].partitions.append(response)
    return topics
