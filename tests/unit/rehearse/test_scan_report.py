"""The report of a scan: bounded, 80 columns, the same in JSON and JUnit, and its exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rehearse import dumping
from rehearse import scan as command
from rehearse.checks import RULES
from rehearse.cluster import Cluster
from rehearse.findings import Severity
from rehearse.scan_report import Report
from rehearse.seeds import SEEDS, Seed, healthy
from rehearse.sources.dump import read_key, write_dump
from rehearse.znodes import Hidden, Znode, ZnodeTree
from tests.unit.rehearse.test_seeds import BROKER, CONTROLLER

BY_NAME = {seed.name: seed for seed in SEEDS}
FILES = (BROKER, CONTROLLER)


def planted(*names: str) -> ZnodeTree:
    tree = healthy()
    for name in names:
        tree = BY_NAME[name].planted(tree)
    return tree


def report_of(*names: str, kafka: str = "3.9.1") -> Report:
    return Report.of("the source", Cluster(planted(*names), FILES), kafka)


def all_seeds() -> ZnodeTree:
    """Return a tree with many kinds of findings; some seeds take place of others."""
    return planted(*BY_NAME)


def test_lines_are_grouped_by_severity_and_fit_the_terminal() -> None:
    lines = list(Report.of("dump.jsonl", Cluster(all_seeds(), FILES), "3.9.1").lines())
    assert max(map(len, lines)) <= 80
    headings = [line for line in lines[2:] if line and not line.startswith(" ")]
    expected = [*(severity.value.capitalize() for severity in Severity), "Not checked"]
    assert headings[: len(expected)] == expected


def test_report_of_one_finding() -> None:
    assert "\n".join(report_of("migration_empty").lines()) == (
        "the source: 3 topics, 6 partitions, 3 registered brokers, zxid 0x200000113.\n"
        "Kafka 3.9.1.\n"
        "\n"
        "Blocks the migration\n"
        "  - /migration has no data; zookeeper-security-migration.sh creates it so.\n"
        "    [migration-empty] (KAFKA-19480)\n"
        "    /migration\n"
        "    Kafka 3.9.1 waits for ever, 3.9.2 keeps it. Kafka 3.9.1 waits in its first\n"
        "    state. Kafka 3.9.2 writes it again.\n"
        "    Its log says: Encountered zk migration fault\n"
        "    Remedy: Delete /migration.\n"
        "\n"
        "Not checked\n"
        "  - Logs on the brokers' disks, other programs' znodes, custom authorizers,\n"
        "    networks.\n"
        "\n"
        "Findings: 1 blocks the migration."
    )


def test_places_are_bounded_for_people_and_complete_in_json() -> None:
    configs = b'{"version":1,"config":{"retention.ms":"5"}}'
    ghosts = {f"/config/topics/vanished-{number:05}": configs for number in range(9_985)}
    tree = Seed("", "", "config-of-no-topic", ghosts).planted(healthy())
    report = Report.of("s", Cluster(tree, FILES), "3.9.1")
    lines = list(report.lines())
    assert len(lines) < 30
    assert "    and 9,980 more; --json lists all" in lines
    assert len(report.document()["findings"]) == 9_985
    assert len(ElementTree.tostring(report.junit())) < 30_000


def test_json_says_everything_of_a_finding() -> None:
    document = report_of("topic_ids_shared", kafka="3.9.2").document()
    assert document["counts"] == {"blocks": 0, "loses": 2, "changes": 0, "warns": 0}
    assert [finding["where"] for finding in document["findings"]] == [
        "/brokers/topics/audit",
        "/brokers/topics/orders",
    ]
    assert document["findings"][:1] == [
        {
            "rule": "topic-ids-shared",
            "severity": "loses",
            "outcomes": {"3.9.1": "lost", "3.9.2": "lost"},
            "what": "Several topics have the same id.",
            "where": "/brokers/topics/audit",
            "detail": "audit, orders have the id qf3oXkCLQ1yXwLr1zvO5uQ",
            "effect": "Only one of the topics is in KRaft. Nothing is logged.",
            "log": "",
            "issue": "",
            "known_from": "a live controller",
            "remedy": "Write into each topic's znode the id in partition.metadata of its log "
            "folders.",
        }
    ]


def test_junit_has_a_case_for_each_rule() -> None:
    suite = report_of("acl_unreadable", "state_missing").junit()
    cases = {case.get("name"): case for case in suite}
    assert list(cases) == [rule.id for rule in RULES]
    assert suite.get("failures") == "1"
    assert suite.get("tests") == str(len(RULES))
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert failed == ["acl-unreadable"]
    told = cases["state-missing"].find("system-out")
    assert told is not None
    assert "partition 1" in str(told.text)


def test_escapes_do_not_reach_the_terminal() -> None:
    configs = b'{"version":1,"config":{"retention.ms":"5"}}'
    put = {"/config/topics/\x1b]0;title\x07": configs, f"/config/topics/{'x' * 5_000}": configs}
    tree = Seed("", "", "config-of-no-topic", put).planted(healthy())
    report = Report.of("s", Cluster(tree, FILES), "3.9.1")
    text = "\n".join(report.lines())
    assert "\x1b" not in text
    assert "\\x1b]0;title\\x07" in text
    assert len(text) < 2_000
    ElementTree.fromstring(ElementTree.tostring(report.junit()))


@pytest.mark.parametrize(
    ("tree", "files", "sentence"),
    [
        (ZnodeTree({**healthy().znodes}, is_one_state=False), FILES, "was written to while"),
        (healthy(), (CONTROLLER,), "Brokers' properties: "),
        (healthy(), (BROKER,), "Controllers' properties: "),
        (
            ZnodeTree({p: z for p, z in healthy().znodes.items() if "/ids/" not in p}),
            FILES,
            "No broker is registered",
        ),
        (ZnodeTree({"/feature": Znode(b"{}")}), FILES, "does not tell the ACLs"),
        (
            ZnodeTree({**healthy().znodes, "/config/users/u": Znode(None, hidden=Hidden.LEFT_OUT)}),
            FILES,
            "The secrets of 1 znodes are not in the dump, such as /config/users/u",
        ),
    ],
)
def test_report_says_what_was_not_checked(tree: ZnodeTree, files: object, sentence: str) -> None:
    report = Report.of("s", Cluster(tree, files), "3.9.1")  # type: ignore[arg-type]
    assert [line for line in report.not_checked if sentence in line]
    assert not [line for line in report_of().not_checked if sentence in line]


@pytest.mark.parametrize(
    ("seed", "kafka", "code"),
    [
        (None, "3.9.1", 0),
        ("leader_absent", "3.9.1", 0),
        ("state_missing", "3.9.1", 0),
        ("config_of_no_topic", "3.9.1", 1),
        ("topic_ids_shared", "3.9.1", 1),
        ("quota_unknown", "3.9.1", 1),
        ("topic_without_id", "3.9.1", 1),
        ("migration_empty", "3.9.1", 1),
        ("migration_empty", "3.9.2", 0),
    ],
)
def test_exit_code_is_of_the_worst_finding(
    seed: str | None, kafka: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = read_key(tmp_path / "key", create=True)
    write_dump(planted(*[seed] if seed else []), tmp_path / "dump", key)
    source = [f"--dump={tmp_path / 'dump'}", f"--key={tmp_path / 'key'}", f"--kafka={kafka}"]
    junit = tmp_path / "junit.xml"
    assert command.main([*source, "--json", f"--junit={junit}"]) == code
    document = json.loads(capsys.readouterr().out)
    rules = {finding["rule"] for finding in document["findings"]} - {"tokens-without-key"}
    assert rules == ({BY_NAME[seed].rule} if seed else set())
    assert document["zxid"] == healthy().zxid
    failures = ElementTree.parse(junit).getroot().get("failures")
    assert failures == str(code)


def test_unreadable_source_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([f"--dump={tmp_path / 'none'}"]) == 4
    assert dumping.main([f"--snapshot={tmp_path}", f"--to={tmp_path / 'dump'}"]) == 4
    write_dump(healthy(), tmp_path / "dump")
    bad = tmp_path / "bad.properties"
    bad.write_bytes(b"a=\\u12")
    good = [f"--dump={tmp_path / 'dump'}"]
    assert command.main([*good, f"--server-properties={bad}"]) == 4
    assert command.main([*good, f"--junit={tmp_path / 'none' / 'junit.xml'}"]) == 4
    output = capsys.readouterr()
    assert output.out == ""
    lines = output.err.splitlines()
    assert len(lines) == 4
    assert re.fullmatch(r".*/none cannot be read: No such file or directory\.", lines[0])
    assert "has no snapshot.*: give a dataDir of ZooKeeper." in lines[1]
    assert "bad.properties: " in lines[2]
    assert "cannot be written" in lines[3]
