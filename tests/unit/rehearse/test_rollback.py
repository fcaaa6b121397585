"""A rollback of something that cannot be rolled back is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.cluster.data_directory import write_json
from rehearse.rollback import _epoch_problem, main


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
        write_json(tmp_path / "state.json", {"phase": phase, "before": []})
    assert main([str(tmp_path)]) == 4
    assert sentence in capsys.readouterr().err


def test_epochs_above_the_next_controllers_are_a_problem() -> None:
    assert _epoch_problem([3, 12, 15, 15], 11).startswith(
        "3 of 4 partitions have an epoch of up to 15"
    )
    assert not _epoch_problem([3, 11], 11)
