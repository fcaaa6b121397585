"""`make prove-bugs`: the judge finds each bug that is seeded into nodes (some minutes)."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.kafka_bugs import KAFKA_BUGS
from chaos.other_bugs import OTHER_BUGS
from chaos.seeded_bug import SeededBug, reproduce


@pytest.mark.timeout(400)
@pytest.mark.parametrize("bug", [*KAFKA_BUGS, *OTHER_BUGS], ids=lambda bug: ",".join(bug.bugs))
def test_the_judge_finds_the_bug(bug: SeededBug, tmp_path: Path) -> None:
    assert set(bug.found_by) <= set(reproduce(bug, tmp_path / "run"))
