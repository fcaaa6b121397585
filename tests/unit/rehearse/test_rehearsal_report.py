"""What users see of a rehearsal: terminal, page, next steps."""

from __future__ import annotations

import html
from pathlib import Path

import orjson
import pytest

from bridgehead.cluster.errors import ClusterError
from judge.verdicts import Verdict, VerdictRow
from rehearse.cluster import ServerProperties
from rehearse.compare import compare
from rehearse.faults import FaultResult, parse_faults
from rehearse.load import PhaseLoad
from rehearse.metadata import Item, Kind
from rehearse.phases import DriverState, Transition
from rehearse.report.document import Phase, Report
from rehearse.report.next_steps import next_steps
from rehearse.report.page import page_of
from rehearse.report.terminal import lines_of

_EVIL = "orders<script>alert(1)</script>"


def _report() -> Report:
    item, other = Item(Kind.TOPIC, _EVIL), Item(Kind.ACL, "Allow User:a from * Read on Topic 'x'")
    phase = Phase(
        "hybrid",
        1_700_000_000.0,
        1_700_000_009.0,
        [
            Transition(1_700_000_001.0, DriverState.ZK_MIGRATION),
            Transition(1_700_000_004.5, DriverState.SYNC_KRAFT_TO_ZK),
            Transition(1_700_000_005.0, DriverState.DUAL_WRITE),
        ],
        gap_s=4.25,
        comparisons=[compare("ZooKeeper → KRaft", {item: "a", other: "b"}, {other: "b"})],
        load=PhaseLoad("hybrid", 77, {"STALE_CONTROLLER_EPOCH": 3}, 4.5, 1.5),
    )
    return Report(
        "127.0.0.1:2181/kafka",
        "3.9.2",
        "3.8",
        "hybrid",
        [4, 5],
        [3000],
        phases=[phase],
        faults=[
            FaultResult("hybrid:kill-broker", "ZK_MIGRATION", "DUAL_WRITE, /controller of 7", 9, 2)
        ],
        memory_mib={"controller 3000": 195},
    )


def _row(verdict: str, judged: int = 5, violations: int = 0, why: str = "") -> VerdictRow:
    return VerdictRow(
        property="D12",
        name="migrated_write_is_kept",
        verdict=Verdict(verdict),
        judged=judged,
        violations=violations,
        decides=True,
        why=why,
    )


def test_terminal_has_80_columns_and_every_part() -> None:
    lines = list(lines_of(_report(), Path("out")))
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for part in (
        *("ZK_MIGRATION", "3.50 s", "No controller for 4.25 s", "1 lost", "1 equal", "77 writes"),
        *("3 STALE_CONTROLLER_EPOCH", "UNEXPLAINED", "hybrid:kill-broker", "controller 3000 195"),
    ):
        assert part in text


@pytest.mark.parametrize(
    ("after", "others", "text"),
    [
        (0x5_0000_0009, 0, "; 0 are of others"),
        (0x5_0000_000E, 5, "; 5 are of others"),
        (0x6_0000_0009, None, "; an unknown number are of others"),  # ZooKeeper has another leader
    ],
)
def test_report_tells_the_own_transactions_from_those_of_others(
    after: int, others: int | None, text: str
) -> None:
    report = _report()
    report.zxid_before, report.zxid_after = 0x5_0000_0007, after
    assert report.others_wrote == others
    assert text in " ".join(" ".join(lines_of(report, Path("out"))).split())


def test_page_is_self_contained_and_escapes_names() -> None:
    page = page_of(_report())
    assert "<script>alert" not in page
    assert "orders&lt;script&gt;" in page
    assert "http" not in page
    assert "src=" not in page


def test_unexplained_difference_or_lost_write_is_not_good() -> None:
    report = _report()
    assert not report.is_good
    report.phases[0].comparisons = []
    assert report.is_good
    for verdict in Verdict:
        report.verdict = _row(verdict)
        assert report.is_good is (verdict in (Verdict.PASS, Verdict.NODATA))


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (("PASS", 31, 0, ""), "PASS D12: KRaft's log and ZooKeeper had all acknowledged writes"),
        (("NODATA", 0, 0, "none"), "NODATA D12: no write of a load was acknowledged."),
        (("UNKNOWN", 31, 0, "2 of 9 events missing"), "UNKNOWN D12: 2 of 9 events missing."),
        (("FAIL", 31, 2, "x"), "FAIL D12: in 2 of 31 comparisons"),
    ],
)
def test_verdict_on_acknowledged_writes_is_a_sentence(
    row: tuple[str, int, int, str], sentence: str
) -> None:
    report = _report()
    report.verdict, report.lost = _row(*row), ["topic <b>: gone"] * row[2]
    page, text = page_of(report), " ".join(" ".join(lines_of(report, Path("out"))).split())
    assert sentence in html.unescape(page)
    assert sentence in text
    assert ("topic &lt;b&gt;: gone" in page) is ("topic <b>: gone" in text) is (row[2] > 0)


def test_report_file_has_all_of_it(tmp_path: Path) -> None:
    _report().write(tmp_path)
    document = orjson.loads((tmp_path / "report.json").read_bytes())
    assert document["schema_version"] == 1
    assert document["phases"][0]["comparisons"][0]["differences"][0]["item"] == {
        "kind": "topic",
        "name": _EVIL,
    }


def test_next_steps_change_each_given_file_and_repeat_no_value() -> None:
    values = {
        "broker.id": "4",
        "zookeeper.connect": "zk:2181",
        "inter.broker.protocol.version": "3.7",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "listener.name.x.plain.sasl.jaas.config": 'password="sesame"',
    }
    steps = next_steps("finalize", ["do this"], [ServerProperties("b4.properties", values)], "3.8")
    assert steps[0] == "First: do this"
    for line in (
        "+ inter.broker.protocol.version=3.8",
        "+ zookeeper.metadata.migration.enable=true",
        "+ node.id=4",
        "- zookeeper.connect",
        "+ authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    ):
        assert line in steps
    assert "sesame" not in "\n".join(steps)
    assert not any(step.startswith("+") for step in next_steps(None, [], [], "3.8"))


def test_faults_are_parsed() -> None:
    (fault,) = parse_faults(["ZK_MIGRATION:kill-controller"])
    assert str(fault) == "ZK_MIGRATION:kill-controller"
    for text in (
        "hybrid",
        "hybrid:kill",
        "hybrid:kill-cat",
        "now:kill-broker",
        "hybrid:eat-broker",
    ):
        with pytest.raises(ClusterError, match="is not a fault"):
            parse_faults([text])
