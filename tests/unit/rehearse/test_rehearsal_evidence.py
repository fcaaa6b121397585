"""The evidence of a rehearsal and its rollback, judged as the commands judge it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridgehead.cluster.errors import ClusterError
from judge.evidence.run_lookup import read_run
from judge.verdicts import Verdict
from rehearse.evidence import ACKNOWLEDGED, KRAFT, SENT, ZOOKEEPER, Evidence, Facts
from rehearse.metadata import Item, Items, Kind

_TOPIC, _GONE = Item(Kind.TOPIC, "rehearsal-1"), Item(Kind.TOPIC, "rehearsal-0")
_CONFIG = Item(Kind.CONFIG, "topic rehearsal-1 retention.ms")
_WRITTEN: Items = {_TOPIC: "an id", _CONFIG: "10001"}


def _written(evidence: Evidence, api: str, facts: Facts) -> None:
    evidence.write(api, SENT, facts)
    evidence.write(api, ACKNOWLEDGED, facts)


def _rehearsed(folder: Path, written_back: Items) -> Evidence:
    """Write before the migration and in hybrid; KRaft has it, ZooKeeper `written_back`."""
    evidence = Evidence.create(folder, brokers=3)
    _written(evidence, "CreateTopics", {_TOPIC: "*", _GONE: "*"})
    evidence.phase_number += 1
    _written(evidence, "IncrementalAlterConfigs", {_CONFIG: "10001"})
    _written(evidence, "DeleteTopics", {_GONE: None})
    evidence.held("hybrid", KRAFT, _WRITTEN)
    evidence.held("hybrid", ZOOKEEPER, written_back)
    return evidence


def _rolled_back(folder: Path, zookeeper: Items) -> Evidence:
    evidence = Evidence.open(folder, phase_number=1)
    evidence.phase_number += 1
    evidence.held("rollback from hybrid", ZOOKEEPER, zookeeper)
    return evidence


def test_rehearsal_and_its_rollback_are_one_run(tmp_path: Path) -> None:
    row, violations = _rehearsed(tmp_path, _WRITTEN).judge()
    assert (row.verdict, row.judged, violations) == (Verdict.PASS, 6, ())
    row, violations = _rolled_back(tmp_path, _WRITTEN).judge()
    assert (row.verdict, row.judged, violations) == (Verdict.PASS, 9, ())
    writes = [e for e in read_run(tmp_path).clients if e["kind"] == "metadata_write"]
    assert [event["api_key"] for event in writes] == [19, 19, 44, 44, 20, 20]


def test_config_that_is_not_written_back_is_found(tmp_path: Path) -> None:
    row, violations = _rehearsed(tmp_path, {_TOPIC: "an id"}).judge()
    assert row.verdict is Verdict.FAIL
    assert [violation.sentence for violation in violations] == [
        "config topic rehearsal-1 retention.ms: 10001 was acknowledged, but after hybrid, "
        "ZooKeeper has none"
    ]


def test_topic_that_a_rollback_loses_or_revives_is_found(tmp_path: Path) -> None:
    _rehearsed(tmp_path, _WRITTEN).close()
    row, violations = _rolled_back(tmp_path, {_GONE: "an id", _CONFIG: "10001"}).judge()
    assert row.verdict is Verdict.FAIL
    after = "was acknowledged, but after rollback from hybrid, ZooKeeper has"
    assert sorted(violation.sentence for violation in violations) == [
        f"topic rehearsal-0: its deletion {after} an id",
        f"topic rehearsal-1: its creation {after} none",
    ]


def test_request_without_acknowledgement_is_not_judged(tmp_path: Path) -> None:
    evidence = Evidence.create(tmp_path, brokers=3)
    _written(evidence, "CreateTopics", {_TOPIC: "*"})
    evidence.write("DeleteTopics", SENT, {_TOPIC: None})
    evidence.phase_number += 1
    evidence.held("hybrid", KRAFT, {})
    row, _ = evidence.judge()
    assert (row.verdict, row.judged) == (Verdict.NODATA, 0)


def test_long_report_is_read_as_one(tmp_path: Path) -> None:
    items = {Item(Kind.TOPIC, f"rehearsal-{number}"): "an id" for number in range(1_203)}
    evidence = Evidence.create(tmp_path, brokers=3)
    _written(evidence, "CreateTopics", dict.fromkeys(items, "*"))
    evidence.held("hybrid", KRAFT, items)
    row, _ = evidence.judge()
    assert (row.verdict, row.judged) == (Verdict.PASS, 1_203)
    assert sum(event["kind"] == "metadata_held" for event in read_run(tmp_path).clients) == 3


def test_killed_rehearsal_has_no_verdict(tmp_path: Path) -> None:
    """Its events have no end: a request may have been sent without a trace."""
    _rehearsed(tmp_path, _WRITTEN)
    row, _ = _rolled_back(tmp_path, _WRITTEN).judge()
    assert row.verdict is Verdict.UNKNOWN
    assert "its end is not recorded" in row.why


def test_evidence_that_somebody_removed_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"is not a folder.* Run the rehearsal again\."):
        Evidence.open(tmp_path, phase_number=1)
