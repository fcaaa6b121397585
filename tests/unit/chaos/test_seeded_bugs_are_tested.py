"""Each seeded bug of a node is used by a test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from chaos.bugs import BUGS
from chaos.bugs.bug import FOUND_BY_RUNS, Bug
from chaos.reproduction import of_bugs, of_scenarios
from judge.properties import PROPERTY_SPECS
from tests.kill_matrix.without_seeded_bug import WITHOUT_SEEDED_BUG

TESTS: Final = Path(__file__).parents[2]


def test_each_seeded_bug_has_a_name_of_its_own_and_says_what_it_does() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert all(bug.does.endswith(".") and len(bug.does.split()) >= 4 for bug in BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_test_exists_and_uses_the_bug(bug: Bug) -> None:
    file, _, function = bug.test.partition("::")
    source = (TESTS / file).read_text(encoding="utf-8")
    assert re.search(rf"^(async )?def {function}\(", source, re.MULTILINE)
    if bug.test == FOUND_BY_RUNS:
        assert bug.name in {name for run in (*of_bugs(), *of_scenarios()) for name in run.bugs}
    else:
        assert re.search(rf"\b{bug.name}\b", source)


def test_each_property_has_a_seeded_bug_or_a_reason() -> None:
    violated = {name for bug in BUGS for name in re.findall(r"\b[A-Z]\d+", bug.found_by)}
    assert violated | set(WITHOUT_SEEDED_BUG) == {spec.id for spec in PROPERTY_SPECS}
    assert not violated & set(WITHOUT_SEEDED_BUG)
