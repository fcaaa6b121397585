"""`bridgehead status` shows what a controller skips, and why there is no controller."""

from __future__ import annotations

from bridgehead.cli.status import _znode_problems


def test_skipped_znodes_of_the_controller_are_shown_in_80_columns() -> None:
    errors = [
        f"/brokers/ids/{number}: {'a number instead of a string ' * 3}" for number in range(7)
    ]
    skipped = {"count": 31, "first": errors}
    problem = {"state": {"is_controller": False, "election_problem": "an old problem"}}
    controller = {"state": {"is_controller": True, "skipped_znodes": skipped}}
    head, *lines = _znode_problems([problem, {"state": None}, controller])
    assert head == "skipped     31 invalid znodes; the first ones:"
    assert len(lines) == 5
    assert lines[0].startswith("            /brokers/ids/0: a number instead of a string")
    assert max(map(len, lines)) == 80


def test_without_a_controller_the_reason_is_shown() -> None:
    standby = {"is_controller": False, "election_problem": None}
    states = [standby, standby | {"election_problem": "/controller_epoch is invalid"}]
    lines = _znode_problems([{"state": state} for state in states])
    assert lines == ["problem     /controller_epoch is invalid"]


def test_a_sound_cluster_has_no_such_lines() -> None:
    sound = {"is_controller": True, "skipped_znodes": {"count": 0, "first": []}}
    assert _znode_problems([{"state": sound}, {"state": None}]) == []
