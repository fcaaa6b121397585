"""OffsetFetch, key 9, versions 0 to 9: the committed offsets of groups. No group exists.

Answered by the coordinator of the group; other brokers answer NOT_COORDINATOR. A partition without
a committed offset, existing or not, has offset -1 and no error. A topic without partitions is
omitted, and a repeated partition is answered once.

Version notes:
    0: offsets in ZooKeeper, read by any broker: UNKNOWN_TOPIC_OR_PARTITION for each
       partition, or UNKNOWN_SERVER_ERROR when the group's name is not valid in a znode path.
    1: no error code for the whole group, so other brokers than the coordinator return no topics.
    2: an error code for the whole group; null topics request all committed offsets.
    8: many groups. 9: a member id, which is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from broker_proxy.apis.base import AuthorizeFor, ClientRequest, NeverAnsweredError
from broker_proxy.coordinators import Coordinators
from cluster_model.quirks import NO_QUIRKS, OFFSET_FETCH_NO_GROUPS_HANGS, Quirks
from cluster_model.topic_names import has_valid_path

_NOTHING_COMMITTED: Final = -1
_MANY_GROUPS_FROM: Final = 8
_GROUP_ERROR_FROM: Final = 2

RequestedTopics = Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None
# A topic's name and the error of each of its partitions.
TopicCodes = list[tuple[str, list[tuple[int, ErrorCode]]]]


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """Answers OffsetFetch requests."""

    coordinators: Coordinators
    authorize_for: AuthorizeFor
    quirks: Quirks = NO_QUIRKS
    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_FETCH

    async def handle(self, request: ClientRequest, message: OffsetFetchRequest) -> Any:
        """Return a result per group, in the order of the request."""
        if request.header.api_version < _MANY_GROUPS_FROM:
            return self._one_group(request, message)
        if not message.groups and OFFSET_FETCH_NO_GROUPS_HANGS in self.quirks:
            raise NeverAnsweredError
        groups = []
        for group in message.groups:
            error, topics = self._look_up(request, group.group_id, group.topics)
            rows = _rows(topics, OffsetFetchResponseTopics, OffsetFetchResponsePartitions)
            groups.append(OffsetFetchResponseGroup(group.group_id, rows, error))
        return OffsetFetchResponse(groups=groups)

    def _one_group(self, request: ClientRequest, message: OffsetFetchRequest) -> Any:
        error, topics = self._look_up(request, message.group_id, message.topics)
        rows = _rows(topics, OffsetFetchResponseTopic, OffsetFetchResponsePartition)
        return OffsetFetchResponse(error_code=error, topics=rows)

    def _look_up(
        self, request: ClientRequest, group_id: str, requested: RequestedTopics
    ) -> tuple[ErrorCode, TopicCodes]:
        """Return the error of the group and of each partition."""
        version, authorize = request.header.api_version, self.authorize_for(request)
        merged: dict[str, dict[int, None]] = {}
        for topic in requested or ():
            merged.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        wanted = [(name, list(partitions)) for name, partitions in merged.items()]
        if not authorize("DESCRIBE", "GROUP", group_id):
            refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
            if version >= _GROUP_ERROR_FROM:
                return refused, []
            return refused, [
                (name, [(each, refused) for each in each_of]) for name, each_of in wanted
            ]
        if version and not self.coordinators.has_group(group_id):
            return ErrorCode.NOT_COORDINATOR, []
        topics: TopicCodes = []
        for name, partitions in wanted:
            if not partitions:
                continue
            if not authorize("DESCRIBE", "TOPIC", name):
                denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                topics.append((name, [(each, denied) for each in partitions]))
            elif version:
                topics.append((name, [(each, ErrorCode.NONE) for each in partitions]))
            else:
                results = [(each, self._in_zookeeper(group_id, name, each)) for each in partitions]
                topics.append((name, results))
        return ErrorCode.NONE, topics

    def _in_zookeeper(self, group_id: str, topic: str, partition: int) -> ErrorCode:
        """Return the error of version 0: the offset is missing, or its path is invalid."""
        if self.coordinators.has_partition(topic, partition) and not has_valid_path(group_id):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _rows(topics: TopicCodes, topic: type, partition: type) -> list[Any]:
    return [
        topic(
            name=name,
            partitions=[
                partition(
                    partition_index=index, committed_offset=_NOTHING_COMMITTED, error_code=code
                )
                for index, code in partitions
            ],
        )
        for name, partitions in topics
    ]
