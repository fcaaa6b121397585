"""The group coordinator of one broker, without I/O and without a clock.

The caller sets `table.now`, calls a method such as `membership.join`, and then carries out the
effects that `table.take_effects()` returns (see `table`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from bridgehead.kafka_wire.errors import ErrorCode
from data_plane.groups.group import Group
from data_plane.groups.loading import Ownership
from data_plane.groups.membership import Membership
from data_plane.groups.offsets import Offsets
from data_plane.groups.table import GroupSettings, GroupTable, Moment

CLASSIC: Final = "classic"


class GroupCoordinator:
    """Decides about the groups of one table. Each kind of decision has its own object."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        partition_of: Callable[[str], int],
        new_uuid: Callable[[], str],
        now: Moment,
    ) -> None:
        self.table = GroupTable(settings, partition_of, now)
        self.membership = Membership(self.table, new_uuid)
        self.offsets = Offsets(self.table, self.membership)
        self.ownership = Ownership(self.table, self.membership, self.offsets)

    def list_groups(
        self, states: Collection[str], types: Collection[str]
    ) -> tuple[ErrorCode, list[Group]]:
        """Return the groups whose state is in `states` and whose type is in `types`.

        An empty collection matches every group. While a partition is being loaded, the list lacks
        its groups and the error is COORDINATOR_LOAD_IN_PROGRESS.
        """
        wanted = {state.lower() for state in states}
        has_type = not types or any(kind.lower() == CLASSIC for kind in types)
        groups = [
            group
            for group in self.table.groups.values()
            if has_type and (not wanted or group.state.value.lower() in wanted)
        ]
        loading = self.ownership.is_loading
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE, groups

    def describe(self, group_id: str) -> tuple[ErrorCode, Group | None]:
        """Return the group; None if it does not exist or this broker is not its coordinator."""
        error = self.table.status(group_id, allows_empty_id=True)
        return error, self.table.groups.get(group_id) if error is ErrorCode.NONE else None

    def run_due(self) -> None:
        """Run the action of every deadline that `table.now` has reached."""
        self.table.timers.run_due(self.table.now.steady_ms)
