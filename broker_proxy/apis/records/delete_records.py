"""DeleteRecords, key 21, versions 0 to 2: answered by the leader of each partition.

An offset is valid from 0 up to the high watermark. Offset -1 stands for the high watermark
(docs/kafka/records-and-groups.md#deleterecords). Without a data plane every partition is an empty
log, so only 0 and -1 are valid. If a request names a partition more than once, the last entry
counts.

In the drafted dialect (KIP-201), version 1 adds error messages and `validate_only`, with which the
broker runs every check but deletes nothing. If the topic policy rejects a deletion in version 0,
the client gets UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages import delete_records as shipped
from bridgehead.kafka_wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from bridgehead.kafka_wire.messages.drafted import delete_records as drafted
from bridgehead.slices import sliced
from broker_proxy.apis.admin.config_ports import ConfigReader
from broker_proxy.apis.records.records_policy import RecordsPolicy
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from broker_proxy.metadata.cache import MetadataCache
from cluster_model.configs.broker_configs import CurrentConfig
from cluster_model.configs.topic_configs import TopicDefaults
from cluster_model.topic_names import INTERNAL_TOPICS

_log = logging.getLogger(__name__)
_HIGH_WATERMARK: Final = -1
_NO_WATERMARK: Final = -1


class DeletableLogs(Protocol):
    """The logs of the partitions that this broker leads."""

    def high_watermark(self, topic: str, partition: int) -> int:
        """Return the largest offset before which records may be deleted.

        Raises:
            ApiError: this broker does not lead the partition.
        """

    def log_start_offset(self, topic: str, partition: int) -> int:
        """Return the offset of the first record that this broker has.

        Raises:
            ApiError: this broker does not lead the partition.
        """

    def low_watermark(self, topic: str, partition: int) -> int:
        """Return the smallest log start offset of the live replicas; -1 if it is unknown.

        Raises:
            ApiError: this broker does not lead the partition.
        """

    async def delete_before(self, topic: str, partition: int, offset: int, timeout_s: float) -> int:
        """Delete the records before `offset` on all live replicas.

        Return the smallest log start offset of these replicas.

        Raises:
            ApiError: the offset is out of range, a replica did not delete in time, or this broker
                does not lead the partition.
        """


class EmptyLogs:
    """The logs of a broker without a data plane."""

    def high_watermark(self, _topic: str, _partition: int) -> int:
        return 0

    def log_start_offset(self, _topic: str, _partition: int) -> int:
        return 0

    def low_watermark(self, _topic: str, _partition: int) -> int:
        return 0

    async def delete_before(
        self, _topic: str, _partition: int, _offset: int, _timeout_s: float
    ) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Deletion:
    """The partitions of one topic: their offsets and errors; `refusal` is the policy's error."""

    name: str
    offsets: Mapping[int, int]
    errors: Mapping[int, ErrorCode]
    rejection: ApiError | None


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Answers DeleteRecords requests."""

    broker_id: int
    cache: MetadataCache
    current: CurrentConfig
    reader: ConfigReader
    authorize_for: AuthorizeFor
    policy: RecordsPolicy | None = None
    logs: DeletableLogs = field(default_factory=EmptyLogs)
    api_key: ClassVar[ApiKey] = ApiKey.DELETE_RECORDS

    async def handle(self, request: ClientRequest, message: DeleteRecordsRequest) -> Any:
        """Return a result per partition; a topic without partitions is omitted."""
        dry = isinstance(message, drafted.DeleteRecordsRequest) and message.validate_only
        requested: dict[str, dict[int, int]] = {}
        async for topic_request in sliced(message.topics):
            async for entry in sliced(topic_request.partitions):
                requested.setdefault(topic_request.name, {})[entry.partition_index] = entry.offset
        deletions: list[_Deletion] = []
        authorize = self.authorize_for(request)
        async for name, offsets in sliced(requested.items()):
            allowed = authorize("DELETE", "TOPIC", name)
            may_delete = allowed and await self._deletes_by_policy(name)
            errors = {
                partition: self._judge(name, partition, offset, may_delete)
                if allowed
                else ErrorCode.TOPIC_AUTHORIZATION_FAILED
                async for partition, offset in sliced(offsets.items())
            }
            rejection = await self._rejection(request, name, offsets, errors)
            deletions.append(_Deletion(name, offsets, errors, rejection))
        timeout_s = None if dry else message.timeout_ms / 1000
        # All partitions wait for their replicas at the same time, with one timeout.
        waiting: list[Awaitable[None]] = []
        topics = []
        async for deletion in sliced(deletions):
            results: list[shipped.DeleteRecordsPartitionResult] = []
            async for partition in sliced(deletion.errors):
                result = _result(deletion, partition)
                results.append(result)
                if result.error_code == ErrorCode.NONE:
                    waiting.append(self._partition(deletion, result, timeout_s))
            topics.append(DeleteRecordsTopicResult(name=deletion.name, partitions=results))
        await asyncio.gather(*waiting)
        return DeleteRecordsResponse(topics=topics)

    async def _partition(
        self,
        deletion: _Deletion,
        result: drafted.DeleteRecordsPartitionResult,
        timeout_s: float | None,
    ) -> None:
        """Complete the result of one partition. If `timeout_s` is None, nothing is deleted."""
        name, partition = deletion.name, result.partition_index
        try:
            if timeout_s is None:
                result.low_watermark = self.logs.low_watermark(name, partition)
            else:
                offset = deletion.offsets[partition]
                result.low_watermark = await self._delete(name, partition, offset, timeout_s)
        except ApiError as failure:
            _fail(result, failure.error, failure.error.default_text)

    async def _rejection(
        self,
        request: ClientRequest,
        name: str,
        offsets: Mapping[int, int],
        errors: Mapping[int, ErrorCode],
    ) -> ApiError | None:
        """Call the policy for the partitions that passed all other checks; return its error.

        The policy is called even if no record would be deleted: it may protect the topic.
        """
        valid = [partition for partition, error in errors.items() if error is ErrorCode.NONE]
        if self.policy is None or not valid:
            return None
        deleted: dict[int, int] = {}
        for p in valid:
            mark = self.logs.high_watermark(name, p)
            offset = mark if offsets[p] == _HIGH_WATERMARK else offsets[p]
            if offset > self.logs.log_start_offset(name, p):
                deleted[p] = offset
        rejection = await self.policy.rejection(request.client.principal, name, deleted)
        is_old = request.client.dialect == "drafted" and not request.header.api_version
        if rejection is not None and is_old and rejection.error is ErrorCode.POLICY_VIOLATION:
            _log.info(
                "%s: the policy rejects the deletion of records of %s (version 0 has no error code "
                "for this): %s",
                request.request_id,
                name,
                rejection.message,
            )
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return rejection

    def _judge(self, name: str, partition: int, offset: int, may_delete: bool) -> ErrorCode:
        """Make the checks of one partition in Kafka's order; return the first error."""
        topic = self.cache.topics.get(name)
        cached = topic.partitions.get(partition) if topic is not None else None
        if cached is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name in INTERNAL_TOPICS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if cached.leader != self.broker_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not may_delete:
            return ErrorCode.POLICY_VIOLATION
        try:
            mark = self.logs.high_watermark(name, partition)
        except ApiError as rejection:
            return rejection.error
        if offset != _HIGH_WATERMARK and not 0 <= offset <= mark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return ErrorCode.NONE

    async def _delete(self, name: str, partition: int, offset: int, timeout_s: float) -> int:
        """Delete the records before `offset`; return the low watermark."""
        if offset == _HIGH_WATERMARK:
            offset = self.logs.high_watermark(name, partition)
        return await self.logs.delete_before(name, partition, offset, timeout_s)

    async def _deletes_by_policy(self, name: str) -> bool:
        """True when cleanup.policy includes `delete`."""
        if not self.cache.has_topic(name):
            return False  # Its partitions get UNKNOWN_TOPIC_OR_PARTITION anyway.
        policy = (await self.reader.read_config("topics", name)).get("cleanup.policy")
        if policy is None:
            policy = TopicDefaults.of(self.current()).entries["cleanup.policy"].value
        return "delete" in (policy or "").replace(" ", "").split(",")


def _result(deletion: _Deletion, partition: int) -> drafted.DeleteRecordsPartitionResult:
    """Return the result of the checks of one partition."""
    result = drafted.DeleteRecordsPartitionResult(partition, _NO_WATERMARK, ErrorCode.NONE)
    error, rejection = deletion.errors[partition], deletion.rejection
    if error is not ErrorCode.NONE:
        _fail(result, error, error.default_text)
    elif rejection is not None:
        _fail(result, rejection.error, rejection.message)
    return result


def _fail(result: drafted.DeleteRecordsPartitionResult, error: ErrorCode, text: str | None) -> None:
    result.error_code, result.error_message, result.error_message_tagged = error, text, text
