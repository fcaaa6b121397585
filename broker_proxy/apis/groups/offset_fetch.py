"""OffsetFetch, key 9, versions 0 to 9: the committed offsets of groups.

Answered by the coordinator of the group; other brokers answer NOT_COORDINATOR. A partition without
a committed offset has offset -1 and no error, even if the partition does not exist. A topic without
partitions is omitted, and a repeated partition is answered once.

Version notes:
    0: asks for offsets in ZooKeeper, where there are none. Every broker answers, with
       UNKNOWN_TOPIC_OR_PARTITION for each partition. If the group id is not valid in a znode path,
       existing partitions get UNKNOWN_SERVER_ERROR.
    1: no error code for the whole group, so brokers that are not the coordinator return no topics.
    2: an error code for the whole group; null topics request all committed offsets.
    7: with `require_stable`, an offset whose commit is not finished gets UNSTABLE_OFFSET_COMMIT.
    8: many groups. 9: a member id, which is ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from bridgehead.slices import sliced
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.apis.groups.group_ports import StoredGroups
from broker_proxy.client_request import (
    AuthorizeFor,
    ClientRequest,
    NeverRespondedError,
    ResponseSize,
)
from cluster_model.acls.authorization import Authorize
from cluster_model.quirks import NO_QUIRKS, OFFSET_FETCH_NO_GROUPS_HANGS, Quirks
from cluster_model.topic_names import has_valid_path
from data_plane.groups.offsets import Fetched

_NOTHING: Final = -1
_MANY_GROUPS_FROM: Final = 8

RequestedTopics = Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None
# A topic's name, and the result of each of its partitions.
Topics = list[tuple[str, list[tuple[int, Fetched]]]]


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """Answers OffsetFetch requests."""

    groups: StoredGroups
    coordinators: Coordinators
    authorize_for: AuthorizeFor
    quirks: Quirks = NO_QUIRKS
    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_FETCH

    async def handle(self, request: ClientRequest, message: OffsetFetchRequest) -> Any:
        """Return a result per group, in the order of the request."""
        if request.header.api_version < _MANY_GROUPS_FROM:
            return await self._one_group(request, message)
        if not message.groups and OFFSET_FETCH_NO_GROUPS_HANGS in self.quirks:
            raise NeverRespondedError
        groups, size = [], ResponseSize()
        authorize = self.authorize_for(request)
        async for group in sliced(message.groups):
            error, topics = await self._look_up(
                request, authorize, group.group_id, group.topics, stable=message.require_stable
            )
            size.add(sum(len(results) for _, results in topics))
            rows = await _rows(topics, OffsetFetchResponseTopics, OffsetFetchResponsePartitions)
            groups.append(OffsetFetchResponseGroup(group.group_id, rows, error))
        return OffsetFetchResponse(groups=groups)

    async def _one_group(self, request: ClientRequest, message: OffsetFetchRequest) -> Any:
        authorize = self.authorize_for(request)
        error, topics = await self._look_up(
            request, authorize, message.group_id, message.topics, stable=message.require_stable
        )
        rows = await _rows(topics, OffsetFetchResponseTopic, OffsetFetchResponsePartition)
        return OffsetFetchResponse(error_code=error, topics=rows)

    async def _look_up(
        self,
        request: ClientRequest,
        authorize: Authorize,
        group_id: str,
        requested: RequestedTopics,
        *,
        stable: bool,
    ) -> tuple[ErrorCode, Topics]:
        """Return the error of the group, and the result of each partition."""
        version = request.header.api_version
        wanted = await _merged(requested)
        if not authorize("DESCRIBE", "GROUP", group_id):
            rejected = ErrorCode.GROUP_AUTHORIZATION_FAILED
            if version:  # From version 1 on, a rejected group has no topics.
                return rejected, []
            return rejected, [
                (name, _failed(indexes, rejected)) for name, indexes in wanted.items()
            ]
        if requested is None:
            return await self._all(group_id, authorize, stable=stable)
        denied = {
            name async for name in sliced(tuple(wanted)) if not authorize("DESCRIBE", "TOPIC", name)
        }
        if not version:
            return ErrorCode.NONE, await self._in_zookeeper(group_id, wanted, denied)
        keys = [
            (name, index)
            async for name, indexes in sliced(wanted.items())
            async for index in sliced(indexes)
            if name not in denied
        ]
        error, fetched = await self.groups.fetch(group_id, keys, stable=stable)
        if error is not ErrorCode.NONE:
            return error, []
        return error, [
            (
                name,
                _failed(indexes, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if name in denied
                else [(index, fetched[name, index]) async for index in sliced(indexes)],
            )
            async for name, indexes in sliced(wanted.items())
        ]

    async def _all(
        self, group_id: str, authorize: Authorize, *, stable: bool
    ) -> tuple[ErrorCode, Topics]:
        """Return every committed offset of topics that the client may describe."""
        error, fetched_offsets = await self.groups.fetch(group_id, None, stable=stable)
        by_topic: dict[str, list[tuple[int, Fetched]]] = {}
        async for (name, index), fetched in sliced(fetched_offsets.items()):
            by_topic.setdefault(name, []).append((index, fetched))
        rows = sliced(by_topic.items())
        return error, [row async for row in rows if authorize("DESCRIBE", "TOPIC", row[0])]

    async def _in_zookeeper(
        self, group_id: str, wanted: Mapping[str, Sequence[int]], denied: Collection[str]
    ) -> Topics:
        """Return the results of version 0: no offset exists, or the znode path is invalid."""
        invalid_path = not has_valid_path(group_id)
        topics: Topics = []
        async for name, indexes in sliced(wanted.items()):
            if name in denied:
                topics.append((name, _failed(indexes, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
                continue
            rows = []
            async for index in sliced(indexes):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if invalid_path and self.coordinators.has_partition(name, index):
                    error = ErrorCode.UNKNOWN_SERVER_ERROR
                rows.append((index, Fetched(None, error)))
            topics.append((name, rows))
        return topics


async def _merged(requested: RequestedTopics) -> dict[str, list[int]]:
    """Return each topic and partition once, in order; topics without partitions are omitted."""
    merged: dict[str, dict[int, None]] = {}
    async for topic in sliced(requested or ()):
        merged.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return {name: list(indexes) for name, indexes in merged.items() if indexes}


def _failed(indexes: Iterable[int], error: ErrorCode) -> list[tuple[int, Fetched]]:
    return [(index, Fetched(None, error)) for index in indexes]


async def _rows(topics: Topics, topic: type, partition: type) -> list[Any]:
    return [
        topic(
            name=name,
            partitions=[_row(partition, index, result) async for index, result in sliced(results)],
        )
        async for name, results in sliced(topics)
    ]


def _row(partition: type, index: int, fetched: Fetched) -> Any:
    committed = fetched.committed
    if committed is None:
        return partition(partition_index=index, committed_offset=_NOTHING, error_code=fetched.error)
    return partition(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=fetched.error,
    )
