"""The plain judge (in Python) finds every evidence mutant.

Each property finds a mutant that no other property finds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.properties import PROPERTY_SPECS
from tests.kill_matrix.evidence_mutants import EVIDENCE_MUTANTS, EvidenceMutant
from tests.kill_matrix.golden import violations_of_histories
from tests.kill_matrix.judging import verdict_on


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
