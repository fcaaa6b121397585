"""Deadlines of the group coordinator."""

from __future__ import annotations

from data_plane.groups.timers import Timers


def test_actions_run_in_the_order_of_their_deadlines() -> None:
    timers, ran = Timers(), []
    timers.set("b", 20, lambda: ran.append("b"))
    timers.set("a", 10, lambda: ran.append("a"))

    timers.run_due(9)
    assert ran == []
    assert timers.next_at_ms() == 10
    timers.run_due(20)

    assert ran == ["a", "b"]
    assert timers.next_at_ms() is None


def test_a_deadline_is_replaced_by_a_later_or_an_earlier_one() -> None:
    timers, ran = Timers(), []
    timers.set("a", 10, lambda: ran.append("first"))
    timers.set("a", 30, lambda: ran.append("later"))
    timers.run_due(10)
    assert ran == []

    timers.set("a", 20, lambda: ran.append("earlier"))
    timers.run_due(20)
    assert ran == ["earlier"]

    timers.run_due(100)
    assert ran == ["earlier"]


def test_a_cancelled_deadline_has_no_effect_and_can_be_set_again() -> None:
    timers, ran = Timers(), []
    timers.set("a", 10, lambda: ran.append("a"))
    timers.cancel("a")
    timers.cancel("a")
    timers.run_due(10)
    assert ran == []

    timers.set("a", 20, lambda: ran.append("again"))
    timers.run_due(20)
    assert ran == ["again"]


def test_moving_a_deadline_adds_no_queue_entry() -> None:
    timers = Timers()
    for at_ms in range(1_000):
        timers.set("member", 10_000 + at_ms, lambda: None)

    assert len(timers._queue) == 1


def test_an_action_may_set_its_deadline_again() -> None:
    timers, ran = Timers(), []

    def again() -> None:
        ran.append("a")
        timers.set("a", 20, again)

    timers.set("a", 10, again)
    timers.run_due(15)
    assert ran == ["a"]
    timers.run_due(19)
    assert ran == ["a"]
