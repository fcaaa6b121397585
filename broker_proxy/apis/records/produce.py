"""Produce, key 0, versions 0 to 11: answered by the leader of each partition.

The order of checks is that of `KafkaApis.handleProduceRequest`. As in Kafka, a partition's result
has an error message only if individual records were rejected.

Version notes:
    3: record batches must have format 2, exactly one per partition. 7: zstd. 8: the response lists
    rejected records. 10: with NOT_LEADER_OR_FOLLOWER, the response names the current leader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.produce import (
    BatchIndexAndErrorMessage,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from bridgehead.slices import sliced
from broker_proxy.apis.records.current_leaders import Moved, name_leaders
from broker_proxy.client_quotas import ClientQuota
from broker_proxy.client_request import (
    AuthorizeFor,
    ClientRequest,
    ClosedWithoutResponseError,
    NoResponseError,
)
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.session_state import ConnectionLostError
from cluster_model.topic_names import INTERNAL_TOPICS
from data_plane.log.partition_log import AppendInfo
from data_plane.partition import ALL, Partition
from data_plane.partitions import Partitions
from data_plane.records.batch import HEADER_BYTES, MAGIC_AT, MAGIC_V2, parse_header
from data_plane.records.validation import (
    RecordsRejectedError,
    check_first_batch,
    check_for_version,
    takes_long,
)
from metrics import names
from metrics.node_metrics import NodeMetrics

_log = logging.getLogger(__name__)
_NONE: Final = 0
_LEADER: Final = 1
_ADMIN_CLIENT_ID: Final = "__admin_client"  # may append to internal topics
_LEADER_FROM: Final = 10
_SHOWN_MAX: Final = 10  # failed partitions in one line of the log
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
# Kafka reports no log start offset with these errors.
_WITHOUT_START: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A partition whose records are appended. Its `response` must wait for the in-sync replicas."""

    partition: Partition
    info: AppendInfo
    response: PartitionProduceResponse


@dataclass(frozen=True, slots=True)
class Produce:
    """Answers Produce requests."""

    cache: MetadataCache
    partitions: Partitions
    authorize_for: AuthorizeFor
    quota: ClientQuota
    metrics: NodeMetrics
    api_key: ClassVar[ApiKey] = ApiKey.PRODUCE

    async def handle(self, request: ClientRequest, message: ProduceRequest) -> ProduceResponse:
        """Append to every partition; with acks=all (-1), wait for the in-sync replicas.

        Raises:
            NoResponseError: acks=0 and everything was appended.
            ClosedWithoutResponseError: acks=0 and an append failed. The producer notices only the
                closed connection.
        """
        await _check_first_batches(message)
        authorize = self.authorize_for(request)
        name = message.transactional_id
        if await _has_transactional(message) and (
            name is None or not authorize("WRITE", "TRANSACTIONAL_ID", name)
        ):
            raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        response = ProduceResponse(responses=[])
        waiting: list[_Waiting] = []
        entries = await _last_entries(message)
        async for topic, partitions in sliced(entries.items()):
            allowed = authorize("WRITE", "TOPIC", topic)
            is_known = not allowed or await self._knows_settings(topic)
            partition_responses = []
            async for data in sliced(partitions.values()):
                partition_response = PartitionProduceResponse(index=data.index, base_offset=-1)
                partition_responses.append(partition_response)
                try:
                    if not allowed:
                        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    if not is_known:
                        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    waiting += await self._append(
                        request, message.acks, topic, data, partition_response
                    )
                except ApiError as error:
                    _reject(partition_response, error)
            response.responses.append(TopicProduceResponse(topic, partition_responses))
        if message.acks == ALL and waiting:
            await self._wait_for_replicas(waiting, message.timeout_ms / 1000)
        size = len(request.header_bytes) + len(request.body)
        response.throttle_time_ms = self.quota.charge(request.client, size)
        request.progress.throttle_ms = response.throttle_time_ms
        if message.acks == _NONE:
            await _end_without_response(response)
        if request.header.api_version >= _LEADER_FROM:
            response.node_endpoints = name_leaders(
                self.cache, request.client.listener_name, await _moved(response), NodeEndpoint
            )
        return response

    async def _knows_settings(self, topic: str) -> bool:
        """Read a topic's configs before its first append; False while ZooKeeper is unreachable.

        The producer then tries again, whereas it would give up after UNKNOWN_SERVER_ERROR.
        """
        if self.cache.has_topic(topic):
            try:
                await self.partitions.settings.read(topic)
            except ConnectionLostError:
                return False
        return True

    async def _append(
        self,
        request: ClientRequest,
        acks: int,
        topic: str,
        data: PartitionProduceData,
        partition_response: PartitionProduceResponse,
    ) -> Iterable[_Waiting]:
        """Append one partition's records and fill `response`; return the append to wait for."""
        cached = self.cache.topics.get(topic)
        if cached is None or data.index not in cached.partitions:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        records = data.records or b""
        check_for_version(request.header.api_version, records)
        if acks not in (ALL, _NONE, _LEADER):
            raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
        if topic in INTERNAL_TOPICS and request.client.client_id != _ADMIN_CLIENT_ID:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if _is_transactional(records):
            raise ApiError(ErrorCode.INVALID_TXN_STATE)  # There are no transactions here.
        self.metrics.count(names.PRODUCE_REQUESTS)
        partition = self.partitions.get(topic, data.index)
        try:
            now_ms, validated = self.partitions.now_ms(), None
            if takes_long(records):
                validated = await partition.validate(records, acks, now_ms)
            info = partition.append(records, acks, now_ms, validated)
        except ApiError as rejection:
            if rejection.error in _TOO_LARGE:
                self.metrics.count(names.BYTES_REJECTED, len(records))
            elif rejection.error not in _WITHOUT_START:
                self.metrics.count(names.FAILED_PRODUCE_REQUESTS)
            if rejection.error not in _WITHOUT_START:
                partition_response.log_start_offset = partition.log.start_offset
            raise
        if not info.is_duplicate:
            self.metrics.count(names.BYTES_IN, len(records))
            self.metrics.count(names.MESSAGES_IN, max(info.last_offset - info.base_offset + 1, 0))
        partition_response.base_offset, partition_response.log_append_time_ms = (
            info.base_offset,
            info.append_time,
        )
        partition_response.log_start_offset = partition.log.start_offset
        return (_Waiting(partition, info, partition_response),) if info.last_offset >= 0 else ()

    async def _wait_for_replicas(self, waiting: list[_Waiting], timeout_s: float) -> None:
        """Wait until all in-sync replicas have the records, but at most `timeout_s`."""
        futures = [write.partition.committed(write.info.last_offset) for write in waiting]
        if not all(future.done() for future in futures):
            await asyncio.wait(futures, timeout=max(timeout_s, 0))
        for write, future in zip(waiting, futures, strict=True):
            error = future.result() if future.done() else ErrorCode.REQUEST_TIMED_OUT
            future.cancel()
            if error is ErrorCode.NONE:
                self.partitions.acknowledged(write.partition, write.info)
            else:
                write.response.error_code, write.response.base_offset = error, -1


async def _last_entries(message: ProduceRequest) -> dict[str, dict[int, PartitionProduceData]]:
    """Return the data by topic and partition. As in Kafka, a partition's last entry counts.

    Kafka differs if the version does not permit the records of an entry: it answers with the error
    of this entry, and appends the last of the others (`produce-repeated-partition` in
    docs/differences.md).
    """
    entries: dict[str, dict[int, PartitionProduceData]] = {}
    async for topic in sliced(message.topic_data):
        partitions = entries.setdefault(topic.name, {})
        async for partition in sliced(topic.partition_data):
            partitions[partition.index] = partition
    return entries


async def _check_first_batches(message: ProduceRequest) -> None:
    """Check the first batch of each partition; as in Kafka, a damaged one fails the request."""
    async for topic in sliced(message.topic_data):
        async for partition in sliced(topic.partition_data):
            check_first_batch(partition.records or b"")


async def _has_transactional(message: ProduceRequest) -> bool:
    async for topic in sliced(message.topic_data):
        async for partition in sliced(topic.partition_data):
            if _is_transactional(partition.records or b""):
                return True
    return False


def _is_transactional(records: bytes) -> bool:
    if len(records) < HEADER_BYTES or records[MAGIC_AT] != MAGIC_V2:
        return False
    return parse_header(records).is_transactional


def _reject(response: PartitionProduceResponse, rejection: ApiError) -> None:
    response.error_code, response.base_offset = rejection.error, -1
    if isinstance(rejection, RecordsRejectedError):
        response.error_message = rejection.message
        response.record_errors = [
            BatchIndexAndErrorMessage(*record) for record in rejection.records
        ]


async def _moved(response: ProduceResponse) -> list[Moved]:
    return [
        Moved(topic.name, partition_response.index, partition_response.current_leader)
        async for topic in sliced(response.responses)
        async for partition_response in sliced(topic.partition_responses)
        if partition_response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    ]


async def _end_without_response(response: ProduceResponse) -> None:
    failed = [
        f"{topic.name}-{partition_response.index} {ErrorCode(partition_response.error_code).name}"
        async for topic in sliced(response.responses)
        async for partition_response in sliced(topic.partition_responses)
        if partition_response.error_code != ErrorCode.NONE
    ]
    if failed:
        shown = ", ".join(failed[:_SHOWN_MAX])
        more = f" and {len(failed) - _SHOWN_MAX} more" if len(failed) > _SHOWN_MAX else ""
        raise ClosedWithoutResponseError(f"Produce with acks=0 failed: {shown}{more}")
    raise NoResponseError
