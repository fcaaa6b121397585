"""Committed offsets: committing, fetching, deleting and expiring them; deleting groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from data_plane.groups.group import (
    CONSUMER,
    NO_GENERATION,
    NO_MEMBER_ID,
    CommittedOffset,
    Group,
    State,
    TopicPartition,
)
from data_plane.groups.membership import Membership, validate_member
from data_plane.groups.records import NEVER, GroupKey, GroupRecord, OffsetKey, OffsetValue
from data_plane.groups.table import NO_ACKS, GroupTable, group_error

# The numbers and lengths of an OffsetKey and an OffsetValue.
_OFFSET_BYTES: Final = 34
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """An OffsetCommit request. Its generation is -1 if the client is not a member."""

    group_id: str
    generation: int = NO_GENERATION
    member_id: str = NO_MEMBER_ID
    instance_id: str | None = None
    offsets: Mapping[TopicPartition, CommittedOffset]
    is_too_large: bool = False  # no batch of the log can have these offsets


Errors = dict[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The committed offset of a partition (None if there is none), or an error."""

    committed: CommittedOffset | None
    error: ErrorCode = ErrorCode.NONE


class Offsets:
    """Decides about the offsets of all groups of a table."""

    def __init__(self, table: GroupTable, membership: Membership) -> None:
        self._table = table
        self._membership = membership
        self.commits = 0
        self.expired = 0
        self.deleted = 0

    # --- OffsetCommit ------------------------------------------------------------------------

    def commit(self, ticket: object, request: Commit) -> None:
        """Handle an OffsetCommit; the ticket is answered with an error for each partition."""
        error = self._table.status(request.group_id, allows_empty_id=True)
        group = self._table.groups.get(request.group_id)
        if error is ErrorCode.NONE and group is None:
            # A client that is not a member may store offsets under any group id.
            stands_alone = request.generation < 0
            error = ErrorCode.NONE if stands_alone else ErrorCode.ILLEGAL_GENERATION
        if error is ErrorCode.NONE:
            group = self._table.get_or_create(request.group_id)
            error = _validate_commit(group, request)
        if error is not ErrorCode.NONE:
            self._table.respond(ticket, dict.fromkeys(request.offsets, error))
            return
        assert group is not None
        if group.state is not State.EMPTY:
            member = group.members.get(request.member_id)
            if member is not None:
                self._membership.expect(group, member)
        self._store(group, ticket, request)

    def _store(self, group: Group, ticket: object, request: Commit) -> None:
        offsets = request.offsets
        limit = self._table.settings.offset_metadata_max_bytes
        fitting = {k: offset for k, offset in offsets.items() if _length(offset.metadata) <= limit}
        errors: Errors = dict.fromkeys(offsets, ErrorCode.OFFSET_METADATA_TOO_LARGE)
        if not fitting:
            self._table.respond(ticket, errors)
            return
        if request.is_too_large:
            too_large = dict.fromkeys(fitting, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
            self._table.respond(ticket, {**errors, **too_large})
            return
        group.prepare_commit(fitting)

        def stored(error: ErrorCode, base_offset: int) -> None:
            if error is ErrorCode.NONE:
                visible = group.complete_commit(fitting, base_offset)
                self._table.committed(group.group_id, base_offset, visible)
                self.commits += len(fitting)
            else:
                group.abandon_commit(fitting)
            seen = _committed_error(error)
            self._table.respond(ticket, {**errors, **dict.fromkeys(fitting, seen)})

        records = [_record(group.group_id, key, offset) for key, offset in fitting.items()]
        self._table.append(group.group_id, records, stored)

    # --- OffsetFetch -------------------------------------------------------------------------

    def fetch(
        self, group_id: str, wanted: Iterable[TopicPartition] | None, *, stable: bool
    ) -> tuple[ErrorCode, dict[TopicPartition, Fetched]]:
        """Return the committed offsets of the `wanted` partitions; None stands for all.

        With `stable`, an offset that is being written gets UNSTABLE_OFFSET_COMMIT (KIP-447).
        """
        error = self._table.status(group_id, allows_empty_id=True)
        if error is not ErrorCode.NONE:
            return error, {}
        group = self._table.groups.get(group_id)
        if group is None:
            return error, dict.fromkeys(wanted or (), Fetched(None))
        fetched = {}
        for key in list(group.offsets) if wanted is None else wanted:
            if stable and key in group.pending_offsets:
                fetched[key] = Fetched(None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            else:
                fetched[key] = Fetched(group.committed(key))
        return error, fetched

    # --- Deletion ----------------------------------------------------------------------------

    def delete(self, group_id: str, keys: Sequence[TopicPartition]) -> tuple[ErrorCode, Errors]:
        """Handle an OffsetDelete (KIP-496). Offsets of topics that members consume are kept."""
        error = self._table.status(group_id)
        if error is not ErrorCode.NONE:
            return error, {}
        group = self._table.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND, {}
        if group.state is not State.EMPTY and group.protocol_type != CONSUMER:
            return ErrorCode.NON_EMPTY_GROUP, {}
        errors: Errors = {}
        for key in keys:
            consumed = group.state is not State.EMPTY and group.is_subscribed(key[0])
            errors[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if consumed else ErrorCode.NONE
        removed = group.remove_offsets([k for k, failure in errors.items() if not failure])
        self.deleted += len(removed)
        self._clean_up(group, removed)
        return error, errors

    def delete_groups(self, group_ids: Iterable[str]) -> dict[str, ErrorCode]:
        """Handle a DeleteGroups: return an error for each group. Only empty groups are deleted."""
        return {group_id: self._delete_group(group_id) for group_id in group_ids}

    def _delete_group(self, group_id: str) -> ErrorCode:
        error = self._table.status(group_id, allows_empty_id=True)
        group = self._table.groups.get(group_id)
        if error is not ErrorCode.NONE or group is None:
            return error or ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not State.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        removed = group.remove_offsets({**group.offsets, **group.pending_offsets})
        self.deleted += len(removed)
        self._clean_up(group, removed)
        return ErrorCode.NONE

    def remove_topics(self, topics: Collection[str]) -> None:
        """Remove the offsets of deleted topics from all groups."""
        for group in list(self._table.groups.values()):
            offsets = {**group.offsets, **group.pending_offsets}
            removed = group.remove_offsets(key for key in offsets if key[0] in topics)
            if removed:
                self._clean_up(group, removed)

    def expire(self) -> None:
        """Remove offsets whose retention has passed, and groups that have nothing left."""
        for group in list(self._table.groups.values()):
            expired = self._expired(group)
            group.remove_offsets(expired)
            self.expired += len(expired)
            self._clean_up(group, expired)

    def _expired(self, group: Group) -> list[TopicPartition]:
        """KIP-211: a group's offsets expire when the group has been empty for the retention time.

        In a stable consumer group, an offset expires if no member consumes its topic and the
        retention time has passed since its commit. In a group without a protocol type, which has
        no members, an offset expires when the retention time has passed since its commit. An expiry
        time in the commit takes precedence.
        """
        since_empty = group.state_since_ms if group.state_since_ms != NEVER else None
        kept: frozenset[str] = frozenset()
        if group.protocol_type is None:
            since_empty = None
        elif group.state is not State.EMPTY:
            topics = group.subscribed_topics
            if group.protocol_type != CONSUMER or group.state is not State.STABLE or topics is None:
                return []
            since_empty, kept = None, topics
        now_ms, retention_ms = self._table.now.wall_ms, self._table.settings.offsets_retention_ms
        expired = []
        for key, stored in group.offsets.items():
            committed = stored.committed
            if key[0] in kept or key in group.pending_offsets:
                continue
            since_ms = committed.commit_timestamp if since_empty is None else since_empty
            has_own = committed.expire_timestamp != NEVER
            expires_ms = committed.expire_timestamp if has_own else since_ms + retention_ms
            if now_ms >= expires_ms:
                expired.append(key)
        return expired

    def _clean_up(self, group: Group, removed: Sequence[TopicPartition]) -> None:
        """Write tombstones for removed offsets, and for the group once it has nothing left.

        Nothing waits for the append. If a tombstone is lost, the next coordinator loads the record,
        and writes a tombstone again when the record expires.
        """
        if removed:
            self._table.removed(group.group_id, removed)
        tombstones = [GroupRecord(OffsetKey(group.group_id, *key), None) for key in removed]
        if group.state is State.EMPTY and not group.has_offsets:
            self._membership.forget_timers(group)
            group.enter(State.DEAD, self._table.now.wall_ms)
            del self._table.groups[group.group_id]
            if group.generation > 0:  # In generation 0 the group has no record.
                tombstones.append(GroupRecord(GroupKey(group.group_id), None))
        if tombstones:
            self._table.append(group.group_id, tombstones, _ignore, NO_ACKS)


def _length(text: str) -> int:
    """Return the length as Java counts it: in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _ignore(_error: ErrorCode, _base_offset: int) -> None:
    pass


def _validate_commit(group: Group, request: Commit) -> ErrorCode:
    if request.generation < 0 and group.state is State.EMPTY:
        return ErrorCode.NONE
    is_member = request.member_id != NO_MEMBER_ID or request.instance_id is not None
    if request.generation < 0 and not is_member:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = validate_member(group, request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is State.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _committed_error(error: ErrorCode) -> ErrorCode:
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if error in _TOO_LARGE else group_error(error)


def least_bytes(group_id: str, offsets: Iterable[TopicPartition]) -> int:
    """Return how many bytes these offsets have at least in the log."""
    group_bytes = _OFFSET_BYTES + len(group_id)
    return sum(group_bytes + len(topic) for topic, _ in offsets)


def _record(group_id: str, key: TopicPartition, offset: CommittedOffset) -> GroupRecord:
    value = OffsetValue(
        offset.offset,
        offset.leader_epoch,
        offset.metadata,
        offset.commit_timestamp,
        offset.expire_timestamp,
    )
    return GroupRecord(OffsetKey(group_id, *key), value)
