"""Transaction logs are decoded while ZooKeeper writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.evidence.following import LogFollower, follow
from judge.transaction_log import read_log
from tests.unit.project.test_tidy import ROOT

SAMPLE = ROOT / "tests" / "data" / "zookeeper_transactions.bin"


@pytest.fixture
def content() -> bytes:
    return SAMPLE.read_bytes()


def log_of(folder: Path) -> Path:
    (folder / "version-2").mkdir(parents=True)
    return folder / "version-2" / "log.1"


@pytest.mark.parametrize("step", [1, 37, 4_096])
def test_a_log_that_grows_gives_each_transaction_once(
    content: bytes, step: int, tmp_path: Path
) -> None:
    """A record that is written in parts is decoded when it is complete."""
    expected = list(read_log(SAMPLE))
    path = log_of(tmp_path)
    follower = LogFollower([tmp_path], first_zxid=0)
    transactions = []
    sizes = [*range(0, len(content), max(step, len(content) // 400)), len(content)]
    for size in sizes:
        path.write_bytes(content[:size] + bytes(64))
        transactions += follower.new()
    assert transactions == expected
    assert len(transactions) > 3


def test_a_transaction_counts_when_most_members_have_it(content: bytes, tmp_path: Path) -> None:
    expected = list(read_log(SAMPLE))
    members = [tmp_path / str(number) for number in (1, 2, 3)]
    logs = [log_of(member) for member in members]
    follower = LogFollower(members, first_zxid=0)
    logs[0].write_bytes(content)
    assert follower.new() == []
    logs[2].write_bytes(content)
    assert follower.new() == expected
    logs[1].write_bytes(content)
    assert follower.new() == [], "no transaction counts twice"


def test_transactions_of_earlier_runs_are_left_out(content: bytes, tmp_path: Path) -> None:
    expected = list(read_log(SAMPLE))
    log_of(tmp_path).write_bytes(content)
    follower = LogFollower([tmp_path], first_zxid=expected[1].zxid)
    assert follower.new() == expected[2:]


def test_a_stranger_cannot_name_the_logs_that_are_followed(content: bytes, tmp_path: Path) -> None:
    """A copied run.json may name any folder; only a person, or the cluster's folder, is trusted."""
    victim, of_cluster = tmp_path / "victim", tmp_path / "cluster" / "zookeeper"
    for folder in (victim, of_cluster):
        log_of(folder).write_bytes(content)
    run = tmp_path / "cluster" / "evidence" / "run=r"
    run.mkdir(parents=True)
    counts = []
    for named, argument in ((victim, []), (of_cluster, []), (victim, [str(victim)])):
        described = {"run_id": "r", "started_ms": 1, "brokers": 1, "log_folders": [str(named)]}
        (run / "run.json").write_text(json.dumps(described))
        lines = [line for line in follow(run, lambda: False, argument) if line.strip()]
        counts.append(len(lines))
    assert counts[0] == 0
    assert counts[1] == counts[2] == len(list(read_log(SAMPLE)))
