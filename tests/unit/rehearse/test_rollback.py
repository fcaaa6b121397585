"""A rollback of something that cannot be rolled back is one sentence."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from bridgehead.cluster.data_directory import write_json
from rehearse.evidence import ACKNOWLEDGED, KRAFT, ZOOKEEPER, Evidence, Facts
from rehearse.metadata import Item, Kind
from rehearse.participants import Participants
from rehearse.rollback import Rollback, _epoch_problem, main


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
        write_json(tmp_path / "state.json", {"phase": phase, "reported": 3, "before": []})
    assert main([str(tmp_path)]) == 4
    assert sentence in capsys.readouterr().err


def test_rollback_counts_on_from_the_phases_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it writes must not be looked for in the reports of the run."""
    run = Evidence.create(tmp_path, brokers=1)
    run.report("hybrid", {KRAFT: {}})
    run.close()
    state = {"phase": "hybrid", "reported": run.phase_number, "before": []}
    write_json(tmp_path / "state.json", state)
    participants = MagicMock(plan=MagicMock(brokers=[], controllers=[3000]), controllers=[3000])
    monkeypatch.setattr(Participants, "open", lambda *_, **__: participants)
    options = Namespace(run=tmp_path, trap=None, again=False, node_command="", patience=60.0)
    rollback = Rollback(options, print)
    topic: Facts = {Item(Kind.TOPIC, "rehearsal-1"): "*"}
    rollback.evidence.write("CreateTopics", ACKNOWLEDGED, topic)
    assert rollback.evidence.judge().row.judged == 0
    again = Rollback(options, print)
    again.evidence.report("rollback from hybrid", {ZOOKEEPER: {}})
    assert again.evidence.judge().row.violations == 1


def test_epochs_above_the_next_controllers_are_a_problem() -> None:
    assert _epoch_problem([3, 12, 15, 15], 11).startswith(
        "3 of 4 partitions have an epoch of up to 15"
    )
    assert not _epoch_problem([3, 11], 11)
