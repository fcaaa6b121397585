"""The groups of one coordinator, their timers, and the effects that its caller must carry out.

The coordinator has no clock and no I/O. Its caller sets `now` before each call, and then takes the
effects: answers to waiting requests, records to append to the log, and evidence. The caller reports
the result of an append with `appended`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple

from bridgehead.kafka_wire.errors import ErrorCode
from data_plane.groups.group import CommittedOffset, Group, State, TopicPartition
from data_plane.groups.records import GroupRecord
from data_plane.groups.timers import Timers

ALL_IN_SYNC: Final = -1
NO_ACKS: Final = 0
# The result of an append: its error and the offset of its first record (-1 with an error).
Then = Callable[[ErrorCode, int], None]


class Moment(NamedTuple):
    """A time: `wall_ms` for timestamps, `steady_ms` for timeouts."""

    wall_ms: int
    steady_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """The configurations of the coordinator, under Kafka's names."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    commit_acks: int = ALL_IN_SYNC


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer the request with this ticket."""

    ticket: object
    result: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Append one batch to a partition of `__consumer_offsets`, then call `appended`."""

    id: int
    partition: int
    records: Sequence[GroupRecord]
    acks: int


@dataclass(frozen=True, slots=True)
class OffsetsStored:
    """Evidence: these offsets are in the log, and are visible from now on."""

    group_id: str
    partition: int
    log_offset: int
    offsets: Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    """Evidence: these offsets are removed."""

    group_id: str
    partition: int
    keys: Sequence[TopicPartition]


Effect = Respond | Append | OffsetsStored | OffsetsDeleted


class GroupTable:
    """The groups that this broker coordinates, their timers, and effects that are not taken yet."""

    def __init__(
        self, settings: GroupSettings, partition_of: Callable[[str], int], now: Moment
    ) -> None:
        self.settings = settings
        self.partition_of = partition_of  # group id -> partition of `__consumer_offsets`
        self.now = now
        self.timers = Timers()
        self.groups: dict[str, Group] = {}
        self.owned: set[int] = set()  # partitions whose groups are loaded
        self.loading: dict[int, int] = {}  # partition being loaded -> its leader epoch
        self._effects: list[Effect] = []
        self._waiting: dict[int, Then] = {}
        self._ids = count()

    def status(self, group_id: str, *, allows_empty_id: bool = False) -> ErrorCode:
        """Return why this broker cannot answer for a group now; NONE when it can.

        Clients that name no group store offsets under the empty group id, which has no members.
        """
        if not group_id and not allows_empty_id:
            return ErrorCode.INVALID_GROUP_ID
        partition = self.partition_of(group_id)
        if partition in self.loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if partition not in self.owned:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE

    def get_or_create(self, group_id: str) -> Group:
        """Return the group; a new one is Empty."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, state_since_ms=self.now.wall_ms)
        return group

    def respond(self, ticket: object, result: Any) -> None:
        """Answer a request."""
        self._effects.append(Respond(ticket, result))

    def append(
        self, group_id: str, records: Sequence[GroupRecord], then: Then, acks: int | None = None
    ) -> None:
        """Append records about a group; `then` gets the result."""
        partition = self.partition_of(group_id)
        if partition not in self.owned:
            then(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            return
        append_id = next(self._ids)
        self._waiting[append_id] = then
        wanted = self.settings.commit_acks if acks is None else acks
        self._effects.append(Append(append_id, partition, records, wanted))

    def committed(
        self, group_id: str, log_offset: int, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Add the evidence that offsets were committed."""
        self._effects.append(
            OffsetsStored(group_id, self.partition_of(group_id), log_offset, offsets)
        )

    def removed(self, group_id: str, keys: Sequence[TopicPartition]) -> None:
        """Add the evidence that offsets were removed."""
        self._effects.append(OffsetsDeleted(group_id, self.partition_of(group_id), keys))

    def appended(self, append_id: int, error: ErrorCode, base_offset: int = -1) -> None:
        """Report the result of an Append."""
        self._waiting.pop(append_id)(error, base_offset)

    def take_effects(self) -> list[Effect]:
        """Return the effects since the last call, in the order in which they must be done."""
        effects, self._effects = self._effects, []
        return effects

    def groups_of(self, partition: int) -> list[Group]:
        """Return the groups of a partition of `__consumer_offsets`."""
        return [
            group
            for group in self.groups.values()
            if self.partition_of(group.group_id) == partition
        ]

    def count(self, state: State) -> int:
        """Return how many groups are in a state."""
        return sum(group.state is state for group in self.groups.values())


def group_error(error: ErrorCode) -> ErrorCode:
    """Return the error that clients get for a failed append, translated as in Kafka."""
    match error:
        case (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            | ErrorCode.NOT_ENOUGH_REPLICAS
            | ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        ):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case ErrorCode.NOT_LEADER_OR_FOLLOWER | ErrorCode.KAFKA_STORAGE_ERROR:
            return ErrorCode.NOT_COORDINATOR
        case _:
            return error
