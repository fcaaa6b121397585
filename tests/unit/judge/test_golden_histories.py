"""The judge returns exactly the verdicts and sentences that each golden history pins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from judge.evidence.reading import read_sealed
from judge.evidence.run_files import EvidenceError
from judge.history import History
from judge.properties import PROPERTY_SPECS
from judge.verdicts import judge
from tests import golden_histories


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
