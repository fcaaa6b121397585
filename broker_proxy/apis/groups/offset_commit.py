"""OffsetCommit, key 8, versions 1 to 9: answered by the coordinator of the group.

Version notes:
    0: not served, because it commits to ZooKeeper, where only the controller writes.
    1: generation and member id; a timestamp for each partition. 2 to 4: one retention time for all
    partitions. 6: the leader epoch of each offset. 7: instance ids of static members. 9: for a
    KIP-848 group, the generation is a member epoch. Such groups do not exist here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from bridgehead.slices import sliced
from broker_proxy.apis.groups.coordinators import Coordinators
from broker_proxy.apis.groups.group_topics import check_topics
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from data_plane.groups.group import CommittedOffset
from data_plane.groups.offsets import Commit, Errors
from data_plane.groups.records import NEVER

_DEFAULT: Final = -1  # no timestamp or retention time is given


class CommitsOffsets(Protocol):
    """Stores committed offsets; see `GroupService.commit`."""

    async def commit(self, request: Commit) -> Errors:
        """Return an error for each partition."""


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """Answers OffsetCommit requests."""

    groups: CommitsOffsets
    coordinators: Coordinators
    authorize_for: AuthorizeFor
    now_ms: Callable[[], int]
    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_COMMIT

    async def handle(self, request: ClientRequest, message: OffsetCommitRequest) -> Any:
        """Return an error for each partition."""
        authorize = self.authorize_for(request)
        if not authorize("READ", "GROUP", message.group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        now_ms = self.now_ms()
        expires_ms = NEVER
        if message.retention_time_ms != _DEFAULT:
            expires_ms = now_ms + message.retention_time_ms
        commits = {
            (topic.name, partition.partition_index): _committed(partition, now_ms, expires_ms)
            async for topic in sliced(message.topics)
            async for partition in sliced(topic.partitions)
        }
        wanted = [
            (t.name, [partition.partition_index for partition in t.partitions])
            async for t in sliced(message.topics)
        ]
        checked = await check_topics(wanted, authorize, self.coordinators)
        errors: Errors = {}
        if checked.valid:
            commit = Commit(
                group_id=message.group_id,
                generation=message.generation_id_or_member_epoch,
                member_id=message.member_id,
                instance_id=message.group_instance_id,
                offsets={key: commits[key] async for key in sliced(checked.valid)},
            )
            errors = await self.groups.commit(commit)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name, [OffsetCommitResponsePartition(index, error) for index, error in rows]
                )
                async for name, rows in sliced(await checked.merged(errors))
            ]
        )


def _committed(
    partition: OffsetCommitRequestPartition, now_ms: int, expires_ms: int
) -> CommittedOffset:
    has_time = partition.commit_timestamp != _DEFAULT
    return CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        partition.commit_timestamp if has_time else now_ms,
        expires_ms,
    )
