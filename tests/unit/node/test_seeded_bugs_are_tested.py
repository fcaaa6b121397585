"""Each seeded bug of a node is used by a test."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Final

import pytest

from chaos import kafka_bugs, other_bugs
from chaos.seeded_bug import bugs_of_scenarios
from judge.properties import PROPERTY_SPECS
from node.seeded_bugs import SEEDED_BUGS
from tests.kill_matrix.seeded_bug_tests import (
    SEEDED_BUG_TESTS,
    WITHOUT_SEEDED_BUG,
    SeededBugTest,
)

TESTS: Final = Path(__file__).parents[2]


def test_each_seeded_bug_has_a_test() -> None:
    assert sorted(each.bug for each in SEEDED_BUG_TESTS) == sorted(SEEDED_BUGS)


@pytest.mark.parametrize("tested", SEEDED_BUG_TESTS, ids=lambda tested: tested.bug)
def test_the_test_exists_and_its_module_names_the_bug(tested: SeededBugTest) -> None:
    file, _, function = tested.test.partition("::")
    source = (TESTS / file).read_text(encoding="utf-8")
    assert re.search(rf"^(async )?def {function}\(", source, re.MULTILINE)
    if "KAFKA_BUGS" in source:  # one test covers every bug in the registries below
        for registry in (kafka_bugs, other_bugs):
            source += inspect.getsource(registry)
        source += " ".join(name for bug in bugs_of_scenarios() for name in bug.bugs)
    assert re.search(rf"\b{tested.bug}\b", source)


def test_each_property_has_a_seeded_bug_or_a_reason() -> None:
    found = {
        each for tested in SEEDED_BUG_TESTS for each in re.findall(r"\b[A-Z]\d+", tested.found_by)
    }
    assert found | set(WITHOUT_SEEDED_BUG) == {each.id for each in PROPERTY_SPECS}
    assert not found & set(WITHOUT_SEEDED_BUG)
