"""OffsetFetch, key 9, versions 0 to 9: which offsets a group has committed, which is none.

Answered by the coordinator of the group; any other broker says NOT_COORDINATOR. A partition without
a committed offset is no error, whether it exists or not: its offset is -1. A topic without
partitions is left out, and what is asked twice is answered once.

Version notes:
    0: offsets kept in ZooKeeper, which any broker reads; there are none, which is an error 3 each,
       or -1 where the group has a name that no znode can have.
    1: has no room for the code of a whole group: another broker than the coordinator names no
       topic. 2 and later: a code of the whole, and topics of null, which asks for all that are
       committed. 8 and later: many groups. 9: names a member, which nobody needs to be here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

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
from cluster_model.topic_names import has_a_path

_NOTHING_COMMITTED: Final = -1
_MANY_GROUPS_FROM: Final = 8
_CODE_OF_THE_WHOLE_FROM: Final = 2

AskedTopics = Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None
# A topic's name, and what is told of each of its partitions.
TopicCodes = list[tuple[str, list[tuple[int, ErrorCode]]]]


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """See LocalApi."""

    coordinators: Coordinators
    authorize_for: AuthorizeFor
    quirks: Quirks = NO_QUIRKS
    api_key: ClassVar[int] = 9

    async def answer(self, request: ClientRequest, message: OffsetFetchRequest) -> Any:
        """Answer each group, in the order of the request."""
        if request.header.api_version < _MANY_GROUPS_FROM:
            return self._one_group(request, message)
        if not message.groups and OFFSET_FETCH_NO_GROUPS_HANGS in self.quirks:
            raise NeverAnsweredError
        groups = []
        for asked in message.groups:
            error, topics = self._look(request, asked.group_id, asked.topics)
            groups.append(
                OffsetFetchResponseGroup(
                    group_id=asked.group_id,
                    error_code=error,
                    topics=[
                        OffsetFetchResponseTopics(
                            name=name,
                            partitions=[
                                OffsetFetchResponsePartitions(
                                    partition_index=partition,
                                    committed_offset=_NOTHING_COMMITTED,
                                    error_code=code,
                                )
                                for partition, code in partitions
                            ],
                        )
                        for name, partitions in topics
                    ],
                )
            )
        return OffsetFetchResponse(groups=groups)

    def _one_group(self, request: ClientRequest, message: OffsetFetchRequest) -> Any:
        error, topics = self._look(request, message.group_id, message.topics)
        return OffsetFetchResponse(
            error_code=error,
            topics=[
                OffsetFetchResponseTopic(
                    name=name,
                    partitions=[
                        OffsetFetchResponsePartition(
                            partition_index=partition,
                            committed_offset=_NOTHING_COMMITTED,
                            error_code=code,
                        )
                        for partition, code in partitions
                    ],
                )
                for name, partitions in topics
            ],
        )

    def _look(
        self, request: ClientRequest, group_id: str, asked: AskedTopics
    ) -> tuple[ErrorCode, TopicCodes]:
        """Return what is told of the group, and of each topic."""
        version, authorize = request.header.api_version, self.authorize_for(request)
        merged: dict[str, dict[int, None]] = {}
        for topic in asked or ():
            merged.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        wanted = [(name, list(partitions)) for name, partitions in merged.items()]
        if not authorize("DESCRIBE", "GROUP", group_id):
            refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
            if version >= _CODE_OF_THE_WHOLE_FROM:
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
                kept = [(each, self._in_zookeeper(group_id, name, each)) for each in partitions]
                topics.append((name, kept))
        return ErrorCode.NONE, topics

    def _in_zookeeper(self, group_id: str, topic: str, partition: int) -> ErrorCode:
        """Return what a look for an offset there comes to: none, or no path to look at."""
        if self.coordinators.has_partition(topic, partition) and not has_a_path(group_id):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
