"""Loads the groups of a partition of `__consumer_offsets` from its log, and unloads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from data_plane.groups.group import CommittedOffset, Group, TopicPartition
from data_plane.groups.membership import Membership
from data_plane.groups.offsets import Offsets
from data_plane.groups.records import GroupKey, GroupRecord, GroupValue, OffsetKey, OffsetValue
from data_plane.groups.table import GroupTable


@dataclass(slots=True)
class Replay:
    """Reads the records in log order and keeps the newest value of each key."""

    _groups: dict[str, GroupValue] = field(default_factory=dict)
    _offsets: dict[str, dict[TopicPartition, tuple[CommittedOffset, int]]] = field(
        default_factory=dict
    )

    def apply(self, record: GroupRecord, log_offset: int) -> None:
        """Take the next record; `log_offset` is the offset of the first record of its batch."""
        match record.key, record.value:
            case GroupKey(group_id), GroupValue() as value:
                self._groups[group_id] = value
            case GroupKey(group_id), _:
                self._groups.pop(group_id, None)
            case OffsetKey(group_id, topic, partition), OffsetValue() as value:
                committed = CommittedOffset(
                    value.offset,
                    value.leader_epoch,
                    value.metadata,
                    value.commit_timestamp,
                    value.expire_timestamp,
                )
                of_group = self._offsets.setdefault(group_id, {})
                of_group[(topic, partition)] = (committed, log_offset)
            case OffsetKey(group_id, topic, partition), _:
                self._offsets.get(group_id, {}).pop((topic, partition), None)

    def groups(self) -> Iterable[Group]:
        """Return each group with its offsets. A group without a record of its own is Empty."""
        for group_id in {**self._groups, **self._offsets}:
            offsets = self._offsets.get(group_id, {})
            value = self._groups.get(group_id)
            if value is None and not offsets:
                continue
            group = Group(group_id) if value is None else Group.from_value(group_id, value)
            for key, (committed, log_offset) in offsets.items():
                group.load_offset(key, committed, log_offset)
            yield group


class Ownership:
    """Takes over and hands over partitions of `__consumer_offsets`."""

    def __init__(self, table: GroupTable, membership: Membership, offsets: Offsets) -> None:
        self._table = table
        self._membership = membership
        self._offsets = offsets

    def begin_loading(self, partition: int, leader_epoch: int) -> bool:
        """Return whether this broker, the leader of the partition, has to load its groups.

        Until they are loaded, clients get COORDINATOR_LOAD_IN_PROGRESS. A leader that is elected
        again has loaded them already or is loading them.
        """
        if partition in self._table.owned or partition in self._table.loading:
            return False
        self._table.loading[partition] = leader_epoch
        return True

    def finish_loading(self, partition: int, leader_epoch: int, groups: Iterable[Group]) -> bool:
        """Serve the groups; False if this broker has resigned since it began to load them."""
        if self._table.loading.get(partition) != leader_epoch:
            return False
        del self._table.loading[partition]
        self._table.owned.add(partition)
        for group in groups:
            self._table.groups[group.group_id] = group
            self._membership.loaded(group)
        return True

    def resign(self, partition: int) -> Sequence[Group]:
        """Drop and return the groups of a partition that this broker no longer coordinates."""
        self._table.loading.pop(partition, None)
        if partition not in self._table.owned:
            return []
        self._table.owned.discard(partition)
        dropped = self._table.groups_of(partition)
        for group in dropped:
            self._membership.unloaded(group)
            del self._table.groups[group.group_id]
        return dropped

    @property
    def is_loading(self) -> bool:
        """True while any partition is being loaded."""
        return bool(self._table.loading)
