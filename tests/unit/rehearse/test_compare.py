"""Items of two moments, and the findings that explain their differences."""

from __future__ import annotations

from rehearse.checks import scan
from rehearse.cluster import Cluster
from rehearse.compare import Fate, changed_znodes, compare, explained_by, restarts
from rehearse.load import missing
from rehearse.metadata import Item, Kind, items_of_znodes
from rehearse.seeds import SEEDS, healthy
from rehearse.znodes import Znode, ZnodeTree


def _tree(**changes: bytes) -> ZnodeTree:
    znodes = dict(healthy().znodes)
    znodes |= {path: Znode(data) for path, data in changes.items()}
    return ZnodeTree(znodes)


def test_healthy_cluster_has_every_kind_of_item() -> None:
    kinds = {item.kind for item in items_of_znodes(healthy())}
    assert kinds == set(Kind)


def test_every_difference_is_named_once() -> None:
    orders, audit, new = (Item(Kind.TOPIC, name) for name in ("orders", "audit", "new"))
    comparison = compare("x", {orders: "1", audit: "2"}, {orders: "7", new: "3"})
    fates = {str(d.item): (d.fate, d.before, d.after) for d in comparison.differences}
    assert fates == {
        "topic orders": (Fate.CHANGED, "1", "7"),
        "topic audit": (Fate.LOST, "2", ""),
        "topic new": (Fate.ADDED, "", "3"),
    }
    assert len(comparison.unexplained) == 3
    assert compare("x", {orders: "1"}, {orders: "1"}).equal == {Kind.TOPIC: 1}


def test_only_the_place_of_a_finding_is_explained() -> None:
    seed = next(seed for seed in SEEDS if seed.name == "deletion_queued")
    planted = seed.planted(healthy())
    before = items_of_znodes(planted)
    after = {
        item: value
        for item, value in before.items()
        if "payments" not in item.name and item != Item(Kind.TOPIC, "audit")
    }
    explain = explained_by(scan(Cluster(planted)), [restarts])
    comparison = compare("x", before, after, explain)
    assert [str(difference.item) for difference in comparison.unexplained] == ["topic audit"]
    payments = next(d for d in comparison.differences if d.item.name == "payments")
    assert payments.why.startswith("deletion-queued: ")


def test_restart_explains_leaders_but_no_lost_partition() -> None:
    item = Item(Kind.LEADERSHIP, "orders-1")
    changed = compare("x", {item: "leader 1"}, {item: "leader 2"}, restarts)
    lost = compare("x", {item: "leader 1"}, {}, restarts)
    assert (len(changed.unexplained), len(lost.unexplained)) == (0, 1)
    moved = Item(Kind.PARTITION, "orders-1")
    assert compare("x", {moved: "replicas 1"}, {moved: "replicas 2"}, restarts).unexplained


def test_removed_and_created_znodes_are_found_and_the_controllers_own_are_not() -> None:
    before = _tree()
    after = _tree(
        **{
            "/config/topics/back": b"{}",
            "/controller": b"{}",
            "/brokers/ids/1": b"",
            "/migration": b"",
        }
    )
    assert changed_znodes(before, after) == [("/config/topics/back", "created")]
    assert changed_znodes(after, before) == [("/config/topics/back", "removed")]


def test_acknowledged_writes_are_looked_for() -> None:
    topic, config = Item(Kind.TOPIC, "new"), Item(Kind.CONFIG, "topic new retention.ms")
    credential, gone = Item(Kind.SCRAM, "u SCRAM-SHA-256"), Item(Kind.TOPIC, "gone")
    facts = {topic: "*", config: "77", credential: "*, 5000 iterations", gone: None}
    present = {topic: "an id", config: "77", credential: "sha256:ab, 5000 iterations"}
    assert not missing(facts, present, "here")
    wrong = {config: "78", credential: "sha256:ab, 4096 iterations", gone: "an id"}
    lost = {str(row.item): row.actual for row in missing(facts, wrong, "here")}
    assert lost == {
        "topic new": "no such item",
        "config topic new retention.ms": "78",
        "SCRAM credential u SCRAM-SHA-256": "sha256:ab, 4096 iterations",
        "topic gone": "an id",
    }
