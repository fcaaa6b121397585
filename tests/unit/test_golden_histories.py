"""The plain judge gives every golden history exactly the verdicts that are pinned with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.reading import EvidenceError, read_sealed
from chaos.history import History
from chaos.properties import PROPERTIES
from chaos.verdicts import Verdict, judge, worst
from event_log.promises import PROMISES
from tests import golden_histories


def _given(golden: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the judge says, in the form in which it is pinned."""
    try:
        evidence = read_sealed(golden_histories.expand(golden, folder))
    except EvidenceError as refused:
        return {"refused": str(refused)}
    quarantined = [
        [account.path, number, list(reasons)]
        for account in evidence.accounts
        for number, reasons in account.quarantined
    ]
    assert quarantined == golden.get("quarantine", [])
    judgements = list(judge(History(evidence), PROPERTIES))
    given: dict[str, Any] = {"run": worst(judgements).value}
    for each in judgements:
        keys = sorted(violation.key for violation in each.violations)
        row = [each.verdict.value, each.judged]
        given[each.property.id] = [*row, keys] if keys else row
    return given


@pytest.mark.parametrize("name", golden_histories.names())
def test_a_golden_history_gets_its_verdicts(name: str, tmp_path: Path) -> None:
    """Verdict, rows judged and the key of every violation, of every property."""
    golden = golden_histories.load(name)
    expected = golden["expect"]
    given = _given(golden, tmp_path)
    if "refused" in expected:
        assert expected["refused"] in given["refused"]
    else:
        assert given == expected


def test_there_are_enough_of_them() -> None:
    """Good and bad ones."""
    verdicts = [
        golden_histories.load(name)["expect"].get("run") for name in golden_histories.names()
    ]
    assert len(verdicts) >= 30
    assert verdicts.count("PASS") >= 8


def test_every_property_is_caught_in_the_act() -> None:
    """A property that no history makes fail is decoration."""
    caught = set()
    for name in golden_histories.names():
        expect = golden_histories.load(name)["expect"]
        rows = {name: row for name, row in expect.items() if name not in ("run", "refused")}
        caught |= {of for of, row in rows.items() if len(row) > 2}
    assert caught == {promise.id for promise in PROMISES}


def test_the_registry_and_the_judge_name_the_same_properties() -> None:
    """In the same order, so that both judges' tables read alike."""
    assert [each.id for each in PROPERTIES] == [promise.id for promise in PROMISES]
    assert {each.value for each in Verdict} >= {promise.breach for promise in PROMISES}
