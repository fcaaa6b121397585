"""A rollback of something that cannot be rolled back is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.cluster.data_directory import write_json
from rehearse.rollback import main


@pytest.mark.parametrize(
    ("phase", "sentence"),
    [
        ("finalize", "there is no way back"),
        ("zookeeper", "back in ZooKeeper already"),
        (None, "has no rehearsal that reached a phase"),
    ],
)
def test_phase_without_a_way_back_is_named(
    phase: str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if phase is not None:
        write_json(tmp_path / "state.json", {"phase": phase, "facts": [], "before": []})
    assert main([str(tmp_path)]) == 4
    assert sentence in capsys.readouterr().err
