"""The group coordinator as group APIs see it; `NoGroups` is for brokers without a data plane."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.slices import sliced
from broker_proxy.apis.groups.coordinators import Coordinators
from data_plane.groups.group import Group, TopicPartition
from data_plane.groups.offsets import Fetched


class StoredGroups(Protocol):
    """The groups of this broker. See `GroupService` for each method."""

    def list_groups(
        self, states: Collection[str], types: Collection[str]
    ) -> tuple[ErrorCode, Sequence[Group]]:
        """Return the loaded groups, with COORDINATOR_LOAD_IN_PROGRESS while others are loading."""

    def describe(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        """Return an error or the group. The group is None if it does not exist."""

    async def fetch(
        self, group_id: str, wanted: Sequence[TopicPartition] | None, *, stable: bool
    ) -> tuple[ErrorCode, Mapping[TopicPartition, Fetched]]:
        """Return an error or committed offsets. If `wanted` is None, return all of them."""

    def delete_offsets(
        self, group_id: str, keys: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]:
        """Return one error for the group, or else one for each partition."""

    async def delete_groups(self, group_ids: Sequence[str]) -> Mapping[str, ErrorCode]:
        """Return an error code for each group."""


@dataclass(frozen=True, slots=True)
class NoGroups:
    """Answers like a coordinator that stores no groups."""

    coordinators: Coordinators

    def list_groups(
        self, states: Collection[str], types: Collection[str]
    ) -> tuple[ErrorCode, Sequence[Group]]:
        return ErrorCode.NONE, []

    def describe(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        return self._error(group_id), None

    async def fetch(
        self, group_id: str, wanted: Sequence[TopicPartition] | None, *, stable: bool
    ) -> tuple[ErrorCode, Mapping[TopicPartition, Fetched]]:
        return self._error(group_id), dict.fromkeys(wanted or (), Fetched(None))

    def delete_offsets(
        self, group_id: str, keys: Sequence[TopicPartition]
    ) -> tuple[ErrorCode, Mapping[TopicPartition, ErrorCode]]:
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID, {}
        return self._error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND, {}

    async def delete_groups(self, group_ids: Sequence[str]) -> Mapping[str, ErrorCode]:
        return {
            group_id: self._error(group_id) or ErrorCode.GROUP_ID_NOT_FOUND
            async for group_id in sliced(group_ids)
        }

    def _error(self, group_id: str) -> ErrorCode:
        here = self.coordinators.has_group(group_id)
        return ErrorCode.NONE if here else ErrorCode.NOT_COORDINATOR
