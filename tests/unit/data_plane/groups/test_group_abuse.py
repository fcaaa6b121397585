"""Clients that join groups without end: what a group coordinator keeps of them."""

from __future__ import annotations

import itertools

from bridgehead.kafka_wire.errors import ErrorCode
from data_plane.groups import membership, timers
from data_plane.groups.group import PROTOCOLS_MAX
from data_plane.groups.membership import Join, Joined, Membership
from data_plane.groups.table import GroupSettings, GroupTable, Moment, Respond
from data_plane.groups.timers import Timers

CONSUMERS = (("range", b""),)


class Coordinator:
    """A membership of groups that this broker owns."""

    def __init__(self) -> None:
        self.table = GroupTable(GroupSettings(), lambda _group: 0, Moment(0, 0))
        self.table.owned.add(0)
        ids = itertools.count(1)
        self.membership = Membership(self.table, lambda: f"{next(ids):08}")

    def join(self, group_id: str, member_id: str = "", **fields: object) -> list[Joined]:
        """Send a JoinGroup; return the responses to all requests that have one now."""
        values: dict[str, object] = {
            "client_id": "app",
            "client_host": "/127.0.0.1",
            "session_timeout_ms": 1_800_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": CONSUMERS,
            "needs_known_id": True,
        }
        request = Join(group_id=group_id, member_id=member_id, **{**values, **fields})  # type: ignore[arg-type]
        self.membership.join(object(), request)
        effects = self.table.take_effects()
        return [effect.result for effect in effects if isinstance(effect, Respond)]


def test_ids_that_never_join_are_forgotten_with_their_groups() -> None:
    """For half an hour, any client could add an id of 32 KB with each request."""
    coordinator = Coordinator()
    count = membership.PENDING_MAX
    for number in range(3 * count):
        (joined,) = coordinator.join(f"g{number}")
        assert joined.error is ErrorCode.MEMBER_ID_REQUIRED
    assert len(coordinator.table.groups) == count
    assert "g0" not in coordinator.table.groups
    assert len(coordinator.table.timers._deadlines) == count
    assert len(coordinator.table.timers._queue) <= 2 * count + timers._FORGOTTEN_MAX


def test_a_forgotten_id_is_unknown_and_a_new_one_joins() -> None:
    coordinator = Coordinator()
    (first,) = coordinator.join("g", client_id="old")
    for _ in range(membership.PENDING_MAX):
        (latest,) = coordinator.join("g")
    (joined,) = coordinator.join("g", first.member_id)
    assert joined.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.join("g", latest.member_id) == []
    assert latest.member_id in coordinator.table.groups["g"].members


def test_members_stay_when_ids_are_forgotten() -> None:
    coordinator = Coordinator()
    (first,) = coordinator.join("g")
    coordinator.join("g", first.member_id)
    for number in range(2 * membership.PENDING_MAX):
        coordinator.join(f"other-{number % 7}")
    assert list(coordinator.table.groups["g"].members) == [first.member_id]


def test_a_member_has_a_limited_number_of_protocols() -> None:
    """Each join compares the protocols of all members."""
    coordinator = Coordinator()
    many = tuple((f"p{number}", b"") for number in range(PROTOCOLS_MAX + 1))
    (joined,) = coordinator.join("g", protocols=many)
    assert joined.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (joined,) = coordinator.join("g", protocols=many[1:])
    assert joined.error is ErrorCode.MEMBER_ID_REQUIRED


def test_forgotten_deadlines_leave_the_heap_and_the_others_are_kept() -> None:
    deadlines, run = Timers(), list[int]()
    for number in range(10):
        deadlines.set(number, 100 + number, lambda number=number: run.append(number))  # type: ignore[misc]
    deadlines.set(3, 5_000, lambda: run.append(-3))  # a heartbeat postpones it
    for number in range(20_000):
        deadlines.set(("gone", number), 50, lambda: run.append(-1))
        deadlines.cancel(("gone", number))
    assert len(deadlines._queue) < 2_000
    deadlines.run_due(4_999)
    assert run == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    deadlines.run_due(5_000)
    assert run[-1] == -3
