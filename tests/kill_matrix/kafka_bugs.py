"""`make prove-bugs`: the judge finds each bug of Kafka that is seeded into nodes (some minutes)."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.kafka_bugs import KAFKA_BUGS, KafkaBug, reproduce


@pytest.mark.timeout(400)
@pytest.mark.parametrize("bug", KAFKA_BUGS, ids=lambda bug: bug.issue)
def test_the_judge_finds_the_bug(bug: KafkaBug, tmp_path: Path) -> None:
    assert set(bug.found_by) <= set(reproduce(bug, tmp_path / "run"))
