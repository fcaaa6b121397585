"""The judge returns exactly the verdicts and sentences that each golden history pins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from judge import properties
from judge.evidence.reading import EvidenceError, read_sealed
from judge.evidence.shapes import EVENT_SHAPES, faults_of
from judge.history import History
from judge.properties import PROPERTIES, PROPERTY_SPECS
from judge.verdicts import judge
from tests import golden_histories
from tests.kill_matrix.evidence_mutants import EVIDENCE_MUTANTS, EvidenceMutant
from tests.kill_matrix.golden import verdict_on, violations_of_histories


@pytest.mark.parametrize("name", golden_histories.names())
def test_golden_history_gets_its_verdicts(name: str, tmp_path: Path) -> None:
    golden = golden_histories.load(name)
    folder = golden_histories.expand(golden, tmp_path)
    if "rejected" in golden["expect"]:
        with pytest.raises(EvidenceError) as rejected:
            read_sealed(folder)
        assert golden["expect"]["rejected"] in str(rejected.value)
        return
    evidence = read_sealed(folder)
    quarantined = [
        [account.path, number, list(reasons)]
        for account in evidence.accounts
        for number, reasons in account.quarantined
    ]
    assert quarantined == golden.get("quarantine", [])
    judgements = judge(History(evidence))
    violations = [violation for judgement in judgements for violation in judgement.violations]
    verdicts = golden_histories.verdicts([judgement.row for judgement in judgements], violations)
    assert verdicts == golden_histories.pinned(golden)


def test_name_of_a_history_is_used_once() -> None:
    """YAML would keep only the last of two histories with the same name."""
    texts = [path.read_text(encoding="utf-8") for path in golden_histories.FOLDER.glob("*.yaml")]
    written = [name for text in texts for name in re.findall(r"^(\w+):", text, re.MULTILINE)]
    assert sorted(written) == golden_histories.names()


def test_every_property_has_a_file() -> None:
    files = {path.stem for path in golden_histories.FOLDER.glob("*.yaml")}
    assert {spec.name for spec in PROPERTY_SPECS} <= files


def test_histories_pass_and_fail() -> None:
    verdicts = [
        golden_histories.load(name)["expect"].get("run") for name in golden_histories.names()
    ]
    assert len(verdicts) >= 30
    assert verdicts.count("PASS") >= 8


def test_every_property_has_a_history_that_violates_it() -> None:
    violated = set()
    for name in golden_histories.names():
        expect = golden_histories.load(name)["expect"]
        rows = {name: row for name, row in expect.items() if name not in ("run", "rejected")}
        violated |= {of for of, row in rows.items() if len(row) > 2}
    assert violated == {spec.id for spec in PROPERTY_SPECS}


# The plain judge (in Python) finds every evidence mutant.


@pytest.mark.parametrize("mutant", EVIDENCE_MUTANTS, ids=lambda mutant: mutant.title)
def test_judge_finds_the_mutant(mutant: EvidenceMutant, tmp_path: Path) -> None:
    assert verdict_on(mutant, tmp_path) == (mutant.violates, mutant.run)


def test_no_mutant_passes() -> None:
    assert "PASS" not in {mutant.run for mutant in EVIDENCE_MUTANTS}


def test_each_property_finds_a_mutant_that_no_other_property_finds() -> None:
    mutants = [
        *(mutant.violates for mutant in EVIDENCE_MUTANTS),
        *violations_of_histories().values(),
    ]
    alone = {violated[0] for violated in mutants if len(violated) == 1}
    assert alone == {spec.id for spec in PROPERTY_SPECS}


# A wrong field of a line is found even after a correct line was accepted.

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


# The registry lists every module of a property, and ids and names are written once.


def test_every_module_is_a_property_named_like_its_file() -> None:
    (folder,) = properties.__path__
    files = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert files == {spec.name for spec in PROPERTY_SPECS}
    for property_ in PROPERTIES:
        assert property_.SPEC.name == str(property_.__name__).rpartition(".")[2]  # type: ignore[attr-defined]
    assert len({spec.id for spec in PROPERTY_SPECS}) == len(PROPERTIES)
