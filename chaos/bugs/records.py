"""Bugs of the data plane: replication of records, and committed offsets of groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from chaos.bugs.bug import Bug, part
from data_plane.groups.loading import Replay
from data_plane.groups.records import GroupRecord, OffsetKey, OffsetValue
from data_plane.groups.service import GroupService
from data_plane.partition import Partition
from data_plane.partitions import Partitions

_WRONG_OFFSETS: Final = (
    "integration/test_group_coordinator_moves.py::test_judge_finds_wrong_committed_offsets"
)


class _ResponsesEarly(Partition):
    def advance_high_watermark(self) -> None:
        if self.is_leader:
            self.set_high_watermark(self.log.end_offset)


class _RespondingEarly(Partitions):
    new_partition = _ResponsesEarly


class _FirstCommits(Replay):
    def apply(self, record: GroupRecord, log_offset: int) -> None:
        key = record.key
        loaded = self._offsets.get(key.group, {})
        if not (isinstance(key, OffsetKey) and (key.topic, key.partition) in loaded):
            super().apply(record, log_offset)


class _LoadingFirstCommits(GroupService):
    new_replay = _FirstCommits


class _AheadOfCommits(Replay):
    def apply(self, record: GroupRecord, log_offset: int) -> None:
        if isinstance(record.value, OffsetValue):
            value = replace(record.value, offset=record.value.offset + 1)
            record = GroupRecord(record.key, value)
        super().apply(record, log_offset)


class _LoadingAhead(GroupService):
    new_replay = _AheadOfCommits


BUGS: Final[tuple[Bug, ...]] = (
    Bug(
        name="acknowledge_before_replication",
        does="A record counts as committed once the leader has it.",
        apply=part("partitions", _RespondingEarly),
        found_by="D6",
        test="integration/test_replication.py"
        "::test_judge_finds_records_acknowledged_before_replication",
    ),
    Bug(
        name="loads_first_commits",
        does="A coordinator loads each partition's first commit, not its last.",
        apply=part("groups", _LoadingFirstCommits),
        found_by="D11",
        test=_WRONG_OFFSETS,
    ),
    Bug(
        name="loads_offsets_ahead",
        does="A coordinator loads offsets that were never committed.",
        apply=part("groups", _LoadingAhead),
        found_by="D11",
        test=_WRONG_OFFSETS,
    ),
)
