"""A wrong field of a line is found even after a correct line was accepted."""

from __future__ import annotations

from typing import Any

import pytest

from judge.evidence.shapes import EVENT_SHAPES, faults_of

SHAPE = EVENT_SHAPES["client_completed"]
GOOD: dict[str, Any] = {
    "kind": "client_completed",
    "seq": 1,
    "mono_ns": 2,
    "wall_ms": 3,
    "run_id": "r",
    "node": "client-a",
    "boot": "b",
    "host_boot_id": "h",
    "schema_version": 1,
    "op_id": "1",
    "outcome": "ok",
    "elements": [["a", 0]],
}


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        ({}, ()),
        ({"elements": []}, ()),
        ({"elements": [["a", "0"]]}, ("wrong_type",)),
        ({"elements": [["a", 0, 1]]}, ("wrong_type",)),
        ({"elements": {}}, ("wrong_type",)),
        ({"seq": True}, ("wrong_type",)),
        ({"seq": 1.0}, ("wrong_type",)),
        ({"op_id": None}, ("wrong_type",)),
        ({"unknown": 1}, ()),
    ],
)
def test_a_field_with_a_wrong_value_is_a_fault(
    change: dict[str, Any], faults: tuple[str, ...]
) -> None:
    assert faults_of(GOOD, SHAPE) == ()
    assert faults_of({**GOOD, **change}, SHAPE) == faults


def test_a_missing_field_is_a_fault() -> None:
    assert faults_of(GOOD, SHAPE) == ()
    assert faults_of({name: GOOD[name] for name in GOOD if name != "boot"}, SHAPE) == (
        "missing_field",
    )
