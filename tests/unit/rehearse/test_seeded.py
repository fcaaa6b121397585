"""What became of a seed, from the items and znodes before and after."""

from __future__ import annotations

from rehearse.checks import scan
from rehearse.cluster import Cluster
from rehearse.compare import compare
from rehearse.findings import Outcome
from rehearse.metadata import Item, Items, Kind, items_of_znodes
from rehearse.report.document import Phase, Report
from rehearse.run import note_seen, row_of
from rehearse.seeded import Played, outcome_of
from rehearse.seeds import SEEDS, Seed, healthy
from rehearse.znodes import Znode, ZnodeTree


def _seed(name: str) -> Seed:
    return next(seed for seed in SEEDS if seed.name == name)


def _without(tree: ZnodeTree, path: str) -> ZnodeTree:
    kept = {p: z for p, z in tree.znodes.items() if p != path and not p.startswith(f"{path}/")}
    return ZnodeTree(kept)


def _outcome(name: str, *, lost: str = "", removed: str = "", changed: str = "") -> Outcome:
    """Play a controller that loses items, removes a znode, and changes an item."""
    seed = _seed(name)
    before = seed.planted(healthy())
    migrated: Items = {
        item: "other" if str(item) == changed else value
        for item, value in items_of_znodes(before).items()
        if not lost or lost not in item.name
    }
    after = _without(before, removed) if removed else before
    return outcome_of(seed, before, migrated, after)


def test_item_that_is_nowhere_is_deleted() -> None:
    path = "/brokers/topics/payments"
    assert _outcome("deletion_queued", lost="payments", removed=path) is Outcome.DELETED
    assert _outcome("deletion_queued", lost="payments") is Outcome.LOST
    assert _outcome("deletion_queued") is Outcome.KEPT


def test_item_with_another_value_is_changed() -> None:
    assert _outcome("replica_repeated") is Outcome.KEPT
    assert _outcome("replica_repeated", changed="partition audit-0") is Outcome.CHANGED


def test_znode_without_items_is_looked_for() -> None:
    assert _outcome("acl_unreadable") is Outcome.LOST
    path = "/kafka-acl/Topic/payments"
    assert _outcome("acl_unreadable", removed=path) is Outcome.DELETED


def test_empty_migration_that_the_controller_fills_is_kept() -> None:
    """Kafka 3.9.2 migrates, and writes its progress there."""
    seed = _seed("migration_empty")
    before = seed.planted(healthy())
    progress = Znode(b'{"version":0,"kraft_metadata_offset":63,"kraft_controller_id":3000}')
    after = ZnodeTree({**before.znodes, "/migration": progress})
    assert outcome_of(seed, before, items_of_znodes(before), after) is Outcome.KEPT
    assert outcome_of(seed, before, items_of_znodes(before), before) is Outcome.LOST


def _played(
    observed: Outcome, *, seen: str = "", why: str = "", expected: Outcome = Outcome.DELETED
) -> Played:
    """Return a seed that was played, and what its report says."""
    seed = _seed("acl_unreadable")
    findings = scan(Cluster(seed.planted(healthy())))
    report = Report("", "3.9.1", "3.9", "hybrid", (), (), why=why)
    report.findings = [row_of(finding, "3.9.1") for finding in findings]
    for row in report.findings:
        row.seen = seen
    return Played(seed, expected, observed, report, is_comparable=True, seconds=1.0)


def test_seed_agrees_only_if_controller_scan_and_report_do() -> None:
    assert _played(Outcome.DELETED, seen="removed: /kafka-acl/Topic/payments").agrees
    assert not _played(Outcome.DELETED).agrees, "the report says nothing"
    assert not _played(Outcome.LOST, seen="x", expected=Outcome.LOST).agrees, "another rule"
    other = _played(Outcome.DELETED, seen="x")
    other.report.findings.clear()
    assert not other.agrees, "the scan does not name it"
    unexplained = _played(Outcome.DELETED, seen="x")
    difference = compare("x", {Item(Kind.TOPIC, "orders"): "1"}, {})
    unexplained.report.phases.append(Phase("hybrid", 0.0, comparisons=[difference]))
    assert not unexplained.agrees, "something else is lost, too"


def test_report_of_a_migration_that_ended_names_the_finding_with_its_log() -> None:
    seed = _seed("assignment_empty")
    findings = scan(Cluster(seed.planted(healthy())))
    findings = [finding for finding in findings if finding.rule.id == seed.rule]
    rows = [row_of(finding, "3.9.1") for finding in findings]
    report = Report("", "3.9.1", "3.9", "hybrid", (), (), findings=rows, outcome="dies")
    report.why = "Aborting: java.lang.NumberFormatException"
    note_seen(report, findings)
    assert [row.seen for row in rows] == [""]
    report.why = "Aborting: java.lang.IndexOutOfBoundsException: 0"
    note_seen(report, findings)
    assert [row.seen for row in rows] == ["the migration dies"]
