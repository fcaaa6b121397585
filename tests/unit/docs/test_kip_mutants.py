"""Each mutant of tests/kips changes one place, and names rows of docs/kips.md that have tests.

`make prove-kips` applies the mutants.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.kips.mutant import Mutant
from tests.kips.registry import MUTANTS, WITHOUT
from tools.kip_rows import ROOT, rows

BY_NUMBER = {row.number: row for row in rows()}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: "-".join(mutant.rows))
def test_each_mutant_changes_one_place_in_its_file(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, mutant.old
    assert mutant.new != mutant.old
    assert mutant.rows
    for number in mutant.rows:
        assert BY_NUMBER[number].tests, f"{number} names no test"
        assert BY_NUMBER[number].is_implemented


def test_a_row_has_a_mutant_or_a_reason() -> None:
    with_mutant = {number for mutant in MUTANTS for number in mutant.rows}
    without = Counter(number for each in WITHOUT for number in each.rows)
    assert not with_mutant & without.keys()
    assert set(without.values()) <= {1}
    implemented = {row.number for row in rows() if row.is_implemented}
    assert implemented <= with_mutant | without.keys()
