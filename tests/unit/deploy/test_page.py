"""The page of a compose project follows its run, and only reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgehead.cluster.errors import ClusterError
from bridgehead.ui.vocabulary import NUMBERS
from deploy.page import followed
from judge.transaction_log import read_log
from tests import golden_histories
from tests.unit.project.test_tidy import ROOT

SAMPLE = ROOT / "tests" / "data" / "zookeeper_transactions.bin"


def test_the_page_follows_events_and_the_logs_of_all_members(tmp_path: Path) -> None:
    run = golden_histories.expand(golden_histories.load("forwarded_creation"), tmp_path / "run=x")
    (run / "zookeeper" / "commits.jsonl").unlink()
    described = json.loads((run / "manifest.json").read_text())["run"]
    (run / "run.json").write_text(json.dumps(described))
    for member in ("1", "2", "3"):
        (tmp_path / "logs" / member / "version-2").mkdir(parents=True)
    for member in ("1", "3"):  # most members have it
        (tmp_path / "logs" / member / "version-2" / "log.1").write_bytes(SAMPLE.read_bytes())
    served = followed(run, tmp_path / "logs")
    try:
        assert (served.live, served.may_act, served.reader.zookeeper_members) == (True, False, 3)
        served.reader.poll()
        served.reader.collector.release()
        kinds = list(served.reader.collector.rows.columns["kind"])
        assert kinds.count(NUMBERS["transaction"]) == len(list(read_log(SAMPLE)))
        assert NUMBERS["received"] in kinds
    finally:
        served.reader.close()


def test_a_project_without_a_run_has_no_page(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    with pytest.raises(ClusterError, match="does not describe a run"):
        followed(tmp_path / "run=none", tmp_path / "logs")
