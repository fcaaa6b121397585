"""DeleteRecords, key 21, versions 0 to 2: answered by the leader of each partition.

There is no data plane: every partition is an empty log, whose first and last offset are 0. So what
may be asked for is offset 0, or -1, the high watermark; no replica has to be waited for
(kafka-semantics 3.18). A partition that comes twice is answered once, as its last entry asks.

Drafted (KIP-201): v1 can only validate, which for empty logs is the same, and has error messages;
v0 does not know of policies.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages import delete_records as shipped
from bridgehead.kafka_wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from bridgehead.kafka_wire.messages.drafted.delete_records import DeleteRecordsPartitionResult
from broker_proxy.apis.base import AuthorizeFor, ClientRequest
from broker_proxy.apis.config_ports import ConfigReader, CurrentConfig
from broker_proxy.apis.records_policy import RecordsPolicy
from broker_proxy.metadata_cache import MetadataCache
from cluster_model.topic_configs import TopicDefaults
from cluster_model.topic_names import INTERNAL_TOPICS

_log = logging.getLogger(__name__)
_HIGH_WATERMARK: Final = -1
_NO_WATERMARK: Final = -1
_LOG_END_OFFSET: Final = 0


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """See LocalApi."""

    broker_id: int
    cache: MetadataCache
    current: CurrentConfig
    reader: ConfigReader
    authorize_for: AuthorizeFor
    policy: RecordsPolicy | None = None
    api_key: ClassVar[int] = 21

    async def answer(self, request: ClientRequest, message: DeleteRecordsRequest) -> Any:
        """Answer each partition on its own; a topic without partitions is left out."""
        asked: dict[str, dict[int, int]] = {}
        for asked_topic in message.topics:
            for entry in asked_topic.partitions:
                asked.setdefault(asked_topic.name, {})[entry.partition_index] = entry.offset
        topics = []
        for name, offsets in asked.items():
            allowed = self.authorize_for(request)("DELETE", "TOPIC", name)
            may_delete = allowed and await self._deletes_by_policy(name)
            errors = {
                partition: self._judge(name, partition, offset, may_delete)
                if allowed
                else ErrorCode.TOPIC_AUTHORIZATION_FAILED
                for partition, offset in offsets.items()
            }
            refusal = await self._refusal(request, name, offsets, errors)
            results: list[shipped.DeleteRecordsPartitionResult] = []
            for partition, error in errors.items():
                text = error.default_text if error is not ErrorCode.NONE else None
                if refusal is not None and error is ErrorCode.NONE:
                    error, text = refusal.error, refusal.message
                watermark = _LOG_END_OFFSET if error is ErrorCode.NONE else _NO_WATERMARK
                results.append(DeleteRecordsPartitionResult(partition, watermark, error, text))
            topics.append(DeleteRecordsTopicResult(name=name, partitions=results))
        return DeleteRecordsResponse(topics=topics)

    async def _refusal(
        self,
        request: ClientRequest,
        name: str,
        offsets: Mapping[int, int],
        errors: Mapping[int, ErrorCode],
    ) -> ApiError | None:
        """Ask the policy about what nothing else speaks against."""
        asked = {p: offsets[p] for p, error in errors.items() if error is ErrorCode.NONE}
        if self.policy is None or not asked:
            return None
        refusal = await self.policy.refusal(request.connection.principal, name, asked)
        is_old = request.connection.dialect == "drafted" and not request.header.api_version
        if refusal is not None and is_old and refusal.error is ErrorCode.POLICY_VIOLATION:
            _log.info(
                "%s: records of %s are kept by policy, which version 0 cannot say: %s",
                request.request_id,
                name,
                refusal.message,
            )
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return refusal

    def _judge(self, name: str, partition: int, offset: int, may_delete: bool) -> ErrorCode:
        """Every check in Kafka's order."""
        topic = self.cache.topics.get(name)
        known = topic.partitions.get(partition) if topic is not None else None
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name in INTERNAL_TOPICS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if known.leader != self.broker_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not may_delete:
            return ErrorCode.POLICY_VIOLATION
        if offset not in (_HIGH_WATERMARK, _LOG_END_OFFSET):
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return ErrorCode.NONE

    async def _deletes_by_policy(self, name: str) -> bool:
        """True when old records of the topic may go, and are not only compacted."""
        if not self.cache.has_topic(name):
            return False  # Not looked at: its partitions are unknown.
        policy = (await self.reader.read_config("topics", name)).get("cleanup.policy")
        if policy is None:
            policy = TopicDefaults.of(self.current()).entries["cleanup.policy"].value
        return "delete" in (policy or "").replace(" ", "").split(",")
