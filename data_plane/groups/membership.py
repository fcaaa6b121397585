"""The members of a group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and rebalances.

A group has at most one join timer and one sync timer. They remove members that do not send
JoinGroup or SyncGroup in time. Each member has one timer for its session. A ticket stands for a
request that waits for its response.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from data_plane.groups.group import NO_GENERATION, NO_MEMBER_ID, Group, Member, Protocols, State
from data_plane.groups.records import GroupKey, GroupRecord
from data_plane.groups.table import GroupTable, group_error

# A new member sends no heartbeats while its JoinGroup waits, so it is not removed after its session
# timeout, but only after this time.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
# Member ids of all groups that have not joined yet. Such an id contains the client id, and Kafka
# keeps it until the session timeout, up to half an hour (docs/differences.md).
PENDING_MAX: Final = 2_000
_TOO_LARGE: Final = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A JoinGroup request."""

    group_id: str
    member_id: str
    instance_id: str | None = None
    needs_known_id: bool = True  # version 4 and higher, unless the member is static
    may_skip_assignment: bool = True  # version 9 and higher
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to a JoinGroup. Only the leader gets `members`."""

    error: ErrorCode
    member_id: str
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """A SyncGroup request. Protocol type and name are None before version 5."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Synced:
    """The answer to a SyncGroup."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Leaving:
    """A member to remove: by its id, or by its instance id alone."""

    member_id: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class NoResponse:
    """The request gets no response: its member has sent another request, or was removed."""


class RequestDroppedError(Exception):
    """See Unanswered."""


def validate_member(group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
    """Return NONE if the request comes from a current member of the group, else the error."""
    if instance_id is not None:
        current = group.static_members.get(instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if current == member_id else ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


class Membership:
    """Decides about the members of all groups of a table."""

    def __init__(self, table: GroupTable, new_uuid: Callable[[], str]) -> None:
        self._table = table
        self._new_uuid = new_uuid
        self.completed_rebalances = 0
        # Member ids that have not joined, oldest first; some have joined or left meanwhile.
        self._pending: OrderedDict[tuple[str, str], None] = OrderedDict()

    # --- JoinGroup -------------------------------------------------------------------------

    def join(self, ticket: object, request: Join) -> None:
        """Handle a JoinGroup; the ticket is answered with `Joined`."""
        table, settings = self._table, self._table.settings
        status = table.status(request.group_id)
        allowed = range(settings.min_session_timeout_ms, settings.max_session_timeout_ms + 1)
        is_new = request.member_id == NO_MEMBER_ID
        if status is not ErrorCode.NONE:
            table.respond(ticket, Joined(status, request.member_id))
        elif request.session_timeout_ms not in allowed:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
            table.respond(ticket, Joined(error, request.member_id))
        elif request.group_id not in table.groups and not is_new:
            table.respond(ticket, Joined(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        else:
            group = table.get_or_create(request.group_id)
            if not self._has_room(group, request.member_id):
                self._forget(group, request.member_id)
                error = ErrorCode.GROUP_MAX_SIZE_REACHED
                table.respond(ticket, Joined(error, NO_MEMBER_ID))
            elif not group.supports(request.protocol_type, request.protocols):
                error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
                table.respond(ticket, Joined(error, request.member_id))
            elif is_new:
                self._join_new(group, ticket, request)
            else:
                self._join_known(group, ticket, request)
            self._complete_join_if_all_joined(group)

    def _has_room(self, group: Group, member_id: str) -> bool:
        limit = self._table.settings.max_size
        member = group.members.get(member_id)
        match group.state:
            case State.EMPTY | State.DEAD:
                return True
            case State.PREPARING_REBALANCE:
                # If the limit was lowered, the members that join first stay.
                waits = member is not None and member.join_ticket is not None
                return waits or group.awaiting_join < limit
            case _:
                return member is not None or len(group.members) < limit

    def _join_new(self, group: Group, ticket: object, request: Join) -> None:
        prefix = request.client_id if request.instance_id is None else request.instance_id
        new_id = f"{prefix}-{self._new_uuid()}"
        if request.instance_id is not None:
            old_id = group.static_members.get(request.instance_id)
            if old_id is not None:
                self._replace_static(group, ticket, request, old_id, new_id)
            else:
                self._add(group, ticket, request, new_id)
        elif request.needs_known_id:
            # KIP-394: the member joins again with its id, so that a retry does not add a second
            # member.
            group.pending_members.add(new_id)
            self._limit_pending(group.group_id, new_id)
            self._expect(
                group, new_id, request.session_timeout_ms, lambda: self._pending_left(group, new_id)
            )
            self._table.respond(ticket, Joined(ErrorCode.MEMBER_ID_REQUIRED, new_id))
        else:
            self._add(group, ticket, request, new_id)

    def _join_known(self, group: Group, ticket: object, request: Join) -> None:
        member_id = request.member_id
        if member_id in group.pending_members:
            if request.instance_id is None:
                self._add(group, ticket, request, member_id)
            else:  # A static member never gets an id in advance.
                error = ErrorCode.UNKNOWN_SERVER_ERROR
                self._table.respond(ticket, Joined(error, NO_MEMBER_ID))
            return
        error = validate_member(group, member_id, request.instance_id)
        if error is not ErrorCode.NONE or group.state is State.EMPTY:
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            self._table.respond(ticket, Joined(error or unknown, member_id))
            return
        member = group.members[member_id]
        is_same = member.protocols == request.protocols
        is_leader = group.leader == member_id
        if group.state is State.COMPLETING_REBALANCE and is_same:
            # The member has probably not received the first response.
            self._table.respond(ticket, _joined(group, member_id))
        elif group.state is State.STABLE and is_same and not is_leader:
            self._table.respond(ticket, _joined(group, member_id))
        else:
            # In a stable group, the leader joins to have the partitions assigned again.
            self._update(member, ticket, request)
            self._rebalance(group)

    def _add(self, group: Group, ticket: object, request: Join, member_id: str) -> None:
        member = Member(
            member_id,
            request.instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocol_type,
            request.protocols,
            join_ticket=ticket,
            is_new=True,
        )
        if group.state is State.PREPARING_REBALANCE and group.generation == 0:
            group.new_member_added = True
        group.add(member)
        self._expect_member(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance(group)

    def _update(self, member: Member, ticket: object | None, request: Join) -> None:
        self._drop(member.join_ticket)
        member.protocols = request.protocols
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.join_ticket = ticket

    def _replace_static(
        self, group: Group, ticket: object, request: Join, old_id: str, new_id: str
    ) -> None:
        """KIP-345: a static member has restarted; it keeps its assignment if possible."""
        instance_id = request.instance_id
        assert instance_id is not None
        old_leader = group.leader or ""
        self._swap_ids(group, instance_id, old_id, new_id)
        member = group.members[new_id]
        before = (member.rebalance_timeout_ms, member.session_timeout_ms)
        self._update(member, ticket, request)
        if group.state is State.COMPLETING_REBALANCE:
            # The leader may be about to assign partitions to the old id.
            self._prepare_rebalance(group)
        elif group.state is State.STABLE:
            if group.select_protocol() != group.protocol:
                self._rebalance(group)
                return

            def stored(error: ErrorCode) -> None:
                if member.join_ticket is not ticket:
                    return  # Answered meanwhile.
                if error is ErrorCode.NONE:
                    self._respond_join(member, _rejoined(group, new_id, old_leader, request))
                    return
                failed = _joined(group, NO_MEMBER_ID, error=error, leader=old_leader)
                self._respond_join(member, failed)
                # As in Kafka, the member keeps its new protocols: a member that joined meanwhile
                # may support no others.
                member.rebalance_timeout_ms, member.session_timeout_ms = before
                self._swap_ids(group, instance_id, new_id, old_id)

            assignment = {
                remaining.member_id: remaining.assignment for remaining in group.members.values()
            }
            self._store(group, assignment, stored)

    def _swap_ids(self, group: Group, instance_id: str, old_id: str, new_id: str) -> None:
        """Give a static member another id; fence waiting requests that have the old id."""
        old = group.members[old_id]
        self._respond_join(old, Joined(ErrorCode.FENCED_INSTANCE_ID, old_id))
        self._respond_sync(old, Synced(ErrorCode.FENCED_INSTANCE_ID))
        self._table.timers.cancel((group.group_id, old_id))
        self._expect_member(group, group.replace_static(instance_id, old_id, new_id))

    # --- Rebalances ------------------------------------------------------------------------

    def _rebalance(self, group: Group) -> None:
        if group.can_rebalance:
            self._prepare_rebalance(group)

    def _prepare_rebalance(self, group: Group) -> None:
        """Wait for all members to join. If the group was empty, first wait for more members."""
        if group.state is State.COMPLETING_REBALANCE:
            self._assign(group, {}, ErrorCode.REBALANCE_IN_PROGRESS)
        self._table.timers.cancel(_sync_key(group))
        was_empty = group.state is State.EMPTY
        group.enter(State.PREPARING_REBALANCE, self._table.now.wall_ms)
        delay_ms = self._table.settings.initial_rebalance_delay_ms
        if was_empty:
            self._delay_first(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        else:
            group.is_first_delayed = False
            self._wait_for_joins(group)
            self._complete_join_if_all_joined(group)

    def _delay_first(self, group: Group, delay_ms: int, remaining_ms: int) -> None:
        """Delay the first rebalance. If members join during a delay, another delay follows."""
        group.is_first_delayed = True

        def is_over() -> None:
            if group.new_member_added and remaining_ms:
                group.new_member_added = False
                configured = self._table.settings.initial_rebalance_delay_ms
                delay = min(configured, remaining_ms)
                self._delay_first(group, delay, max(remaining_ms - delay, 0))
            else:
                group.is_first_delayed = False
                self._complete_join(group)

        self._table.timers.set(_join_key(group), self._table.now.steady_ms + delay_ms, is_over)

    def _wait_for_joins(self, group: Group) -> None:
        at_ms = self._table.now.steady_ms + max(group.rebalance_timeout_ms, 1)
        self._table.timers.set(_join_key(group), at_ms, lambda: self._complete_join(group))

    def _complete_join_if_all_joined(self, group: Group) -> None:
        if group.state is not State.PREPARING_REBALANCE or group.is_first_delayed:
            return
        if group.all_have_joined:
            self._table.timers.cancel(_join_key(group))
            self._complete_join(group)

    def _complete_join(self, group: Group) -> None:
        """End the wait: remove dynamic members that have not joined, and answer the others."""
        if group.state is not State.PREPARING_REBALANCE:
            return
        for member in list(group.members.values()):
            if member.join_ticket is None and member.instance_id is None:
                self._forget(group, member.member_id)
        if group.members and not group.elect_joined_leader():
            self._wait_for_joins(group)  # Only static members remain, and none has joined.
            return
        group.begin_generation(self._table.now.wall_ms)
        if not group.members:
            self._store(group, {}, lambda _error: None)
            return
        for member in group.members.values():
            self._respond_join(member, _joined(group, member.member_id))
            self._expect_member(group, member)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        generation = group.generation
        self._table.timers.set(
            _sync_key(group),
            self._table.now.steady_ms + group.rebalance_timeout_ms,
            lambda: self._expire_syncs(group, generation),
        )

    def _expire_syncs(self, group: Group, generation: int) -> None:
        """Remove the members that have not sent SyncGroup in time."""
        waits = group.state in (State.COMPLETING_REBALANCE, State.STABLE)
        if generation != group.generation or not waits or not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            self._forget(group, member_id)
        self._rebalance(group)

    # --- SyncGroup -------------------------------------------------------------------------

    def sync(self, ticket: object, request: Sync) -> None:
        """Handle a SyncGroup; the ticket is answered with `Synced`."""
        table = self._table
        error = table.status(request.group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The log does not have the state of a rebalance, so the members must join again. Older
            # clients do not expect COORDINATOR_LOAD_IN_PROGRESS here.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        group = table.groups.get(request.group_id)
        if error is not ErrorCode.NONE:
            table.respond(ticket, Synced(error))
        elif group is None:
            table.respond(ticket, Synced(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            error = _validate_sync(group, request)
            if error is not ErrorCode.NONE:
                table.respond(ticket, Synced(error))
            else:
                self._sync(group, ticket, request)

    def _sync(self, group: Group, ticket: object, request: Sync) -> None:
        member = group.members[request.member_id]
        match group.state:
            case State.PREPARING_REBALANCE:
                self._table.respond(ticket, Synced(ErrorCode.REBALANCE_IN_PROGRESS))
            case State.COMPLETING_REBALANCE:
                self._drop(member.sync_ticket)
                member.sync_ticket = ticket
                self._received_sync(group, member.member_id)
                if group.leader == member.member_id:
                    self._store_assignment(group, request.assignments)
            case State.STABLE:
                self._received_sync(group, member.member_id)
                protocol = (group.protocol_type, group.protocol)
                self._table.respond(ticket, Synced(ErrorCode.NONE, *protocol, member.assignment))
                self._expect_member(group, member)
            case _:
                self._table.respond(ticket, Synced(ErrorCode.UNKNOWN_MEMBER_ID))

    def _received_sync(self, group: Group, member_id: str) -> None:
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._table.timers.cancel(_sync_key(group))

    def _store_assignment(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Write the leader's assignment; the group is stable once the log has it."""
        assignment = {member_id: assignments.get(member_id, b"") for member_id in group.members}
        generation = group.generation

        def stored(error: ErrorCode) -> None:
            if group.state is not State.COMPLETING_REBALANCE or generation != group.generation:
                return
            if error is ErrorCode.NONE:
                self._assign(group, assignment, ErrorCode.NONE)
                group.enter(State.STABLE, self._table.now.wall_ms)
            else:
                self._assign(group, {}, error)
                self._rebalance(group)

        self._store(group, assignment, stored)
        self.completed_rebalances += 1

    def _assign(self, group: Group, assignment: Mapping[str, bytes], error: ErrorCode) -> None:
        """Set the assignment of each member and answer the SyncGroup requests."""
        protocol = (None, None) if error else (group.protocol_type, group.protocol)
        for member in group.members.values():
            member.assignment = assignment.get(member.member_id, b"")
            if member.sync_ticket is not None:
                self._respond_sync(member, Synced(error, *protocol, member.assignment))
                self._expect_member(group, member)

    # --- Heartbeat and LeaveGroup ------------------------------------------------------------

    def heartbeat(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None
    ) -> ErrorCode:
        """Handle a Heartbeat."""
        error = self._table.status(group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE
        group = self._table.groups.get(group_id)
        if error is not ErrorCode.NONE or group is None:
            return error or ErrorCode.UNKNOWN_MEMBER_ID
        error = validate_member(group, member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is State.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._expect_member(group, group.members[member_id])
        rebalances = group.state is State.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if rebalances else ErrorCode.NONE

    def leave(
        self, group_id: str, members: Sequence[Leaving]
    ) -> tuple[ErrorCode, list[tuple[Leaving, ErrorCode]]]:
        """Handle a LeaveGroup: return an error for the request, or for each member."""
        error = self._table.status(group_id)
        if error is not ErrorCode.NONE:
            return error, []
        group = self._table.groups.get(group_id)
        if group is None:
            return error, [(member, ErrorCode.UNKNOWN_MEMBER_ID) for member in members]
        return error, [(member, self._leave(group, member)) for member in members]

    def _leave(self, group: Group, leaving: Leaving) -> ErrorCode:
        member_id = leaving.member_id
        if member_id == NO_MEMBER_ID and leaving.instance_id is not None:
            # KIP-345: an administrator removes a static member.
            current = group.static_members.get(leaving.instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = current
        elif member_id in group.pending_members:
            self._table.timers.cancel((group.group_id, member_id))
            self._pending_left(group, member_id)
            return ErrorCode.NONE
        else:
            error = validate_member(group, member_id, leaving.instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._remove(group, group.members[member_id])
        return ErrorCode.NONE

    # --- Sessions --------------------------------------------------------------------------

    def expect(self, group: Group, member: Member) -> None:
        """Restart the session timeout of a member that has sent a request."""
        self._expect_member(group, member)

    def _expect_member(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        wait = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self._expect(group, member.member_id, wait, lambda: self._session_ended(group, member))

    def _expect(
        self, group: Group, member_id: str, timeout_ms: int, expired: Callable[[], None]
    ) -> None:
        at_ms = self._table.now.steady_ms + timeout_ms
        self._table.timers.set((group.group_id, member_id), at_ms, expired)

    def _session_ended(self, group: Group, member: Member) -> None:
        if group.members.get(member.member_id) is member and member.may_expire:
            self._remove(group, member)

    def _pending_left(self, group: Group, member_id: str) -> None:
        group.pending_members.discard(member_id)
        self._complete_join_if_all_joined(group)

    def _limit_pending(self, group_id: str, member_id: str) -> None:
        """Forget the oldest member ids that have not joined, so that they take little memory.

        A client whose id was forgotten gets UNKNOWN_MEMBER_ID and asks for another one.
        """
        self._pending[group_id, member_id] = None
        while len(self._pending) > PENDING_MAX:
            key, _ = self._pending.popitem(last=False)
            group = self._table.groups.get(key[0])
            if group is None or key[1] not in group.pending_members:
                continue  # It has joined or left.
            self._table.timers.cancel(key)
            self._pending_left(group, key[1])
            if group.state is State.EMPTY and not group.is_used:
                group.enter(State.DEAD, self._table.now.wall_ms)
                del self._table.groups[group.group_id]

    def _remove(self, group: Group, member: Member) -> None:
        """Remove a member that left or whose session ended; the others rebalance."""
        # A new member may expire while its JoinGroup waits. This error makes its client join again.
        self._respond_join(member, Joined(ErrorCode.UNKNOWN_MEMBER_ID, NO_MEMBER_ID))
        self._forget(group, member.member_id)
        self._rebalance(group)
        self._complete_join_if_all_joined(group)

    def _forget(self, group: Group, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None:
            self._drop(member.join_ticket)
            self._drop(member.sync_ticket)
        group.remove(member_id)
        self._table.timers.cancel((group.group_id, member_id))

    # --- Loading and unloading -----------------------------------------------------------------

    def loaded(self, group: Group) -> None:
        """Begin the sessions of the members of a group that was read from the log."""
        if len(group.members) > self._table.settings.max_size:
            # A rebalance removes the excess members. Until it ends, they can commit offsets.
            self._prepare_rebalance(group)
        for member in group.members.values():
            self._expect_member(group, member)

    def unloaded(self, group: Group) -> None:
        """Answer the waiting requests: this broker no longer coordinates the group."""
        for member in group.members.values():
            error = ErrorCode.NOT_COORDINATOR
            self._respond_join(member, Joined(error, member.member_id))
            self._respond_sync(member, Synced(error))
        self.forget_timers(group)
        group.enter(State.DEAD, self._table.now.wall_ms)

    def forget_timers(self, group: Group) -> None:
        """Cancel every timer of a group."""
        for member_id in (*group.members, *group.pending_members):
            self._table.timers.cancel((group.group_id, member_id))
        self._table.timers.cancel(_join_key(group))
        self._table.timers.cancel(_sync_key(group))

    # --- Answers and records -------------------------------------------------------------------

    def _store(
        self, group: Group, assignment: Mapping[str, bytes], then: Callable[[ErrorCode], None]
    ) -> None:
        record = GroupRecord(GroupKey(group.group_id), group.as_value(assignment))
        self._table.append(
            group.group_id, [record], lambda error, _offset: then(_stored_error(error))
        )

    def _respond_join(self, member: Member, result: Joined) -> None:
        if member.join_ticket is not None:
            self._table.respond(member.join_ticket, result)
            member.join_ticket = None

    def _respond_sync(self, member: Member, result: Synced) -> None:
        if member.sync_ticket is not None:
            self._table.respond(member.sync_ticket, result)
            member.sync_ticket = None

    def _drop(self, ticket: object | None) -> None:
        if ticket is not None:
            self._table.respond(ticket, NoResponse())


def _stored_error(error: ErrorCode) -> ErrorCode:
    """Return the error that members get when the group's record could not be written."""
    if error is ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.UNKNOWN_SERVER_ERROR if error in _TOO_LARGE else group_error(error)


def _validate_sync(group: Group, request: Sync) -> ErrorCode:
    error = validate_member(group, request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for given_id, known_id in (
        (request.protocol_type, group.protocol_type),
        (request.protocol, group.protocol),
    ):
        if given_id is not None and given_id != known_id:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _joined(
    group: Group,
    member_id: str,
    *,
    error: ErrorCode = ErrorCode.NONE,
    leader: str | None = None,
    skips: bool = False,
) -> Joined:
    """Describe the current generation to a member; the leader gets all members."""
    members: tuple[JoinedMember, ...] = ()
    if group.leader == member_id and leader is None:
        members = tuple(
            JoinedMember(
                group_member.member_id,
                group_member.instance_id,
                group_member.metadata(group.protocol),
            )
            for group_member in group.members.values()
        )
    return Joined(
        error,
        member_id,
        group.generation,
        group.protocol_type,
        group.protocol,
        (group.leader or "") if leader is None else leader,
        skips,
        members,
    )


def _rejoined(group: Group, member_id: str, old_leader: str, request: Join) -> Joined:
    """Answer a static member that keeps its assignment.

    A leader must not assign again, since a stable group ignores assignments. From version 9 on, the
    response sets `skip_assignment` (KIP-814). In older versions, the response names the leader's
    former member id, so the leader acts as a follower.
    """
    if request.may_skip_assignment:
        return _joined(group, member_id, skips=group.leader == member_id)
    return _joined(group, member_id, leader=old_leader)


def _join_key(group: Group) -> tuple[str, str, str]:
    return (group.group_id, "", "join")


def _sync_key(group: Group) -> tuple[str, str, str]:
    return (group.group_id, "", "sync")
