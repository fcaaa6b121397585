"""Verdicts do not depend on the wall clock, except those about wall-clock times."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.evidence.reading import read_sealed
from judge.history import History
from judge.verdicts import VerdictRow, judge
from tests import golden_histories

# A10 computes the lifetime of a login from wall-clock times. T1 compares wall-clock times with the
# times of commits, and a node's wall clock with the harness's.
ABOUT_WALL_TIME = {"A10", "T1"}


def verdicts_of(golden: Mapping[str, Any], folder: Path) -> dict[str, VerdictRow]:
    history = History(read_sealed(golden_histories.expand(golden, folder)))
    return {judgement.row.property: judgement.row for judgement in judge(history)}


def test_only_two_properties_depend_on_the_wall_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = {name: golden_histories.load(name) for name in golden_histories.names()}
    sealed = {name: golden for name, golden in every.items() if "after_sealing" not in golden}
    sealed = {
        n: g
        for n, g in sealed.items()
        if g["expect"]["run"] != "UNKNOWN" and "rejected" not in g["expect"]
    }
    before = {name: verdicts_of(golden, tmp_path / name) for name, golden in sealed.items()}
    event = golden_histories._event

    def shuffled(*arguments: Any) -> dict[str, Any]:
        made = event(*arguments)
        if isinstance(made.get("wall_ms"), int):
            place = f"{made['node']}/{made['boot']}/{made['seq']}"  # copies of a line stay equal
            made["wall_ms"] = random.Random(place).randrange(2_000_000_000_000)
        return made

    monkeypatch.setattr(golden_histories, "_event", shuffled)
    changed = set()
    for name, golden in sealed.items():
        after = verdicts_of(golden, tmp_path / f"{name}-shuffled")
        changed |= {of for of, row in after.items() if row != before[name][of]}
    assert changed == ABOUT_WALL_TIME
