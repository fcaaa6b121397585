"""One group: its state, its members and its committed offsets (Kafka's GroupMetadata).

This module only keeps the state. `membership` and `offsets` decide how it changes.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from data_plane.groups.records import NEVER, GroupValue, MemberValue

NO_GENERATION: Final = -1
NO_MEMBER_ID: Final = ""
CONSUMER: Final = "consumer"  # the protocol type whose metadata lists topics
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")

Protocols = tuple[tuple[str, bytes], ...]  # names with metadata, the preferred one first
TopicPartition = tuple[str, int]


class State(Enum):
    """The states of a group, under Kafka's names."""

    PREPARING_REBALANCE = "PreparingRebalance"  # waits for members to join
    COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
    STABLE = "Stable"
    DEAD = "Dead"  # deleted, or handed to another coordinator
    EMPTY = "Empty"


# The protocols of one member: each JoinGroup compares them with those of all other members. Kafka
# has no such limit (docs/differences.md).
PROTOCOLS_MAX: Final = 1_000


@dataclass(slots=True)
class Member:
    """A member of a group. `join_ticket` and `sync_ticket` are its waiting requests."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    join_ticket: object | None = None
    sync_ticket: object | None = None
    is_new: bool = False  # no rebalance has ended since the member joined

    @property
    def may_expire(self) -> bool:
        """True if the member is new, or does not wait for a response."""
        waits = self.join_ticket is not None or self.sync_ticket is not None
        return self.is_new or not waits

    def metadata(self, protocol: str | None) -> bytes:
        """Return the metadata that the member gave for the protocol."""
        return next((candidate for name, candidate in self.protocols if name == protocol), b"")

    def vote(self, candidates: Iterable[str]) -> str:
        """Return the candidate that the member prefers."""
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset. Times are milliseconds since 1970; -1 means none."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int = NEVER


@dataclass(slots=True)
class _Stored:
    committed: CommittedOffset
    log_offset: int


@dataclass(slots=True)
class Group:
    """One group. A committed offset is visible once the append of its record has succeeded."""

    group_id: str
    state: State = State.EMPTY
    state_since_ms: int = NEVER  # wall clock; -1: not in the log
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)  # instance id -> member id
    pending_members: set[str] = field(default_factory=set)  # ids that have not joined yet
    pending_syncs: set[str] = field(default_factory=set)
    is_first_delayed: bool = False  # the first rebalance waits for more members
    new_member_added: bool = False  # during the delay of the first rebalance
    subscribed_topics: frozenset[str] | None = None  # None: unknown
    offsets: dict[TopicPartition, _Stored] = field(default_factory=dict)
    pending_offsets: dict[TopicPartition, list[CommittedOffset]] = field(default_factory=dict)

    # --- State -----------------------------------------------------------------------------

    def enter(self, state: State, now_ms: int) -> None:
        """Change the state. `now_ms` is wall-clock time."""
        self.state, self.state_since_ms = state, now_ms

    @property
    def can_rebalance(self) -> bool:
        """True when a rebalance may begin."""
        return self.state in (State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def all_have_joined(self) -> bool:
        """True when every member waits for the rebalance, and no member id is pending."""
        waits = all(member.join_ticket is not None for member in self.members.values())
        return waits and not self.pending_members

    @property
    def awaiting_join(self) -> int:
        """How many members wait for the rebalance."""
        return sum(member.join_ticket is not None for member in self.members.values())

    @property
    def is_used(self) -> bool:
        """False if the group has nothing, and no record in the log."""
        return bool(self.generation or self.members or self.pending_members or self.has_offsets)

    # --- Members ---------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Add a member; the first one becomes the leader and gives the group its protocol type."""
        if not self.members:
            self.protocol_type = member.protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_members.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member, if the group has it. If it was the leader, another member is chosen."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, instance_id: str, old_id: str, new_id: str) -> Member:
        """Give the static member another member id."""
        member = self.members.pop(old_id)
        member.member_id = new_id
        self.members[new_id] = member
        if self.leader == old_id:
            self.leader = new_id
        self.static_members[instance_id] = new_id
        return member

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, else choose a member that has joined.

        Returns False if no member has joined.
        """
        current = self.members.get(self.leader or NO_MEMBER_ID)
        if current is None or current.join_ticket is None:
            joined = (m for m in self.members.values() if m.join_ticket is not None)
            chosen = next(joined, None)
            if chosen is None:
                return False
            self.leader = chosen.member_id
        return True

    # --- Protocols -------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """True when a member with this protocol type and these protocols may join."""
        if len(protocols) > PROTOCOLS_MAX:
            return False
        if self.state is State.EMPTY:
            return bool(protocol_type and protocols)
        return self.protocol_type == protocol_type and bool(self._common(protocols))

    def select_protocol(self) -> str:
        """Of the protocols that every member supports, return the one with the most votes."""
        first = next(iter(self.members.values()))
        candidates = self._common(first.protocols)
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def _common(self, protocols: Protocols) -> set[str]:
        """Return the names among `protocols` that every member supports."""
        common = {name for name, _ in protocols}
        for member in self.members.values():
            common.intersection_update(name for name, _ in member.protocols)
        return common

    def begin_generation(self, now_ms: int) -> None:
        """Begin the next generation: choose its protocol and wait for the leader's assignment."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.subscribed_topics = self.find_subscribed_topics()
        self.enter(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)
        self.pending_syncs.clear()

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics of the members' subscriptions; None when they are not known."""
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        try:
            subscriptions = (
                _subscription(m.metadata(self.protocol)) for m in self.members.values()
            )
            return frozenset().union(*subscriptions)
        except (struct.error, ValueError):
            return None

    def is_subscribed(self, topic: str) -> bool:
        """True when a member subscribes to the topic, or the subscriptions are unknown."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    # --- Offsets ---------------------------------------------------------------------------

    def prepare_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Note offsets that are about to be written."""
        for key, committed in offsets.items():
            self.pending_offsets.setdefault(key, []).append(committed)

    def complete_commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], log_offset: int
    ) -> dict[TopicPartition, CommittedOffset]:
        """Make written offsets visible; return those that are visible now.

        An offset stays invisible if it was removed while it was written, or if a commit that is
        later in the log is already visible.
        """
        visible = {}
        for key, committed in offsets.items():
            stored = self.offsets.get(key)
            is_newest = stored is None or stored.log_offset < log_offset
            if is_newest and self._is_pending(key, committed):
                self.offsets[key] = _Stored(committed, log_offset)
                visible[key] = committed
        self.abandon_commit(offsets)
        return visible

    def abandon_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Forget that these offsets are pending. Other commits of the same keys stay pending."""
        for key, committed in offsets.items():
            others = [
                offset for offset in self.pending_offsets.pop(key, ()) if offset is not committed
            ]
            if others:
                self.pending_offsets[key] = others

    def _is_pending(self, key: TopicPartition, committed: CommittedOffset) -> bool:
        return any(offset is committed for offset in self.pending_offsets.get(key, ()))

    def load_offset(self, key: TopicPartition, committed: CommittedOffset, log_offset: int) -> None:
        """Set an offset that was read from the log."""
        self.offsets[key] = _Stored(committed, log_offset)

    def committed(self, key: TopicPartition) -> CommittedOffset | None:
        """Return the committed offset of a partition."""
        stored = self.offsets.get(key)
        return None if stored is None else stored.committed

    def remove_offsets(self, keys: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Remove offsets; return the keys that had a committed or a pending offset."""
        removed = []
        for key in keys:
            pending = self.pending_offsets.pop(key, None)
            if self.offsets.pop(key, None) is not None or pending is not None:
                removed.append(key)
        return removed

    @property
    def has_offsets(self) -> bool:
        """True when the group has an offset that is committed or being written."""
        return bool(self.offsets or self.pending_offsets)

    # --- The log ---------------------------------------------------------------------------

    def as_value(self, assignment: Mapping[str, bytes]) -> GroupValue:
        """Return the group's record."""
        return GroupValue(
            self.protocol_type or "",
            self.generation,
            self.protocol,
            self.leader,
            self.state_since_ms,
            [
                MemberValue(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.session_timeout_ms,
                    member.metadata(self.protocol),
                    assignment.get(member.member_id, b""),
                )
                for member in self.members.values()
            ],
        )

    @classmethod
    def from_value(cls, group_id: str, value: GroupValue) -> Group:
        """Return the group that a record describes: Stable with members, else Empty."""
        group = cls(
            group_id,
            State.STABLE if value.members else State.EMPTY,
            value.current_state_timestamp,
            value.generation,
            protocol=value.protocol,
            leader=value.leader,
        )
        for member in value.members:
            group.add(
                Member(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout,
                    member.session_timeout,
                    value.protocol_type,
                    ((value.protocol or "", member.subscription),),
                    member.assignment,
                )
            )
        group.protocol_type = value.protocol_type or None
        group.subscribed_topics = group.find_subscribed_topics()
        return group


def _subscription(metadata: bytes) -> set[str]:
    """Return the topics of a ConsumerProtocolSubscription. They stand after its version (int16).

    Raises:
        struct.error, ValueError: the bytes are not a subscription.
    """
    (count,) = _INT32.unpack_from(metadata, _INT16.size)
    at, topics = _INT16.size + _INT32.size, set()
    for _ in range(count):
        (length,) = _INT16.unpack_from(metadata, at)
        at += _INT16.size
        if length < 0 or at + length > len(metadata):
            raise ValueError("a subscription that ends too early")
        topics.add(metadata[at : at + length].decode())
        at += length
    return topics
