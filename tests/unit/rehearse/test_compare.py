"""Items of two moments, and the findings that explain their differences."""

from __future__ import annotations

import pytest

from rehearse.checks import RULES, scan
from rehearse.cluster import Cluster
from rehearse.compare import (
    Fate,
    ZnodeChange,
    changed_znodes,
    compare,
    explained_by,
    restarts,
    rewritten,
    seen_of,
)
from rehearse.findings import Finding, Place
from rehearse.metadata import Item, Kind, items_of_znodes
from rehearse.seeds import SEEDS, healthy
from rehearse.znodes import Znode, ZnodeTree

_RULE = next(rule for rule in RULES if rule.id == "config-of-no-topic")


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


@pytest.mark.parametrize(
    ("where", "item"),
    [
        ("/config/topics/order", "config topic orders retention.ms"),
        ("/config/brokers/2", "config topic 2 retention.ms"),
        ("/config/users/al", "quota user 'alice' request_percentage"),
        ("/config/users/alice", "quota client-id 'x', user 'alice' request_percentage"),
        ("/config/users/alice/clients/x", "quota user 'alice' request_percentage"),
        ("/config/users/al", "SCRAM credential alice SCRAM-SHA-256"),
        ("/config/ips/10.1.2.3", "quota user '10.1.2.3' request_percentage"),
        ("/kafka-acl/Topic/orders", "ACL Allow User:a from * Read on Topic 'orders' (prefixed)"),
        ("/kafka-acl/Topic/order", "ACL Allow User:a from * Read on Topic 'orders' (literal)"),
        ("/kafka-acl/Group/orders", "ACL Allow User:a from * Read on Topic 'orders' (literal)"),
        ("/brokers/topics/orders/partitions/1/state", "leadership orders-0"),
        ("/brokers/topics/orders", "leadership orders-a-0"),
    ],
)
def test_finding_explains_nothing_about_its_neighbours(where: str, item: str) -> None:
    assert not _explains(where, item)


@pytest.mark.parametrize(
    ("where", "item"),
    [
        ("/config/topics/orders", "config topic orders retention.ms"),
        ("/config/brokers/<default>", "config broker <default> log.cleaner.threads"),
        ("/config/users/bob%40x", "quota user 'bob@x' request_percentage"),
        ("/config/users/bob%40x/clients/a", "quota client-id 'a', user 'bob@x' producer_byte_rate"),
        ("/config/users/<default>", "quota user <default> consumer_byte_rate"),
        ("/config/clients/carol", "SCRAM credential carol SCRAM-SHA-512"),
        ("/kafka-acl/Planet", "ACL Allow User:a from * Read on Planet 'mars' (literal)"),
        ("/kafka-acl-extended/Odd", "ACL Allow User:a from * Read on Topic 'x' (odd)"),
        (
            "/kafka-acl-extended/prefixed/Group/g",
            "ACL Deny User:a from * Read on Group 'g' (prefixed)",
        ),
        ("/brokers/topics/orders/partitions/1/state", "leadership orders-1"),
        ("/brokers/topics/orders-a", "leadership orders-a-0"),
        ("/latest_producer_id_block", "producer ids"),
        ("/migration", "topic orders"),
    ],
)
def test_finding_explains_what_is_in_its_znode(where: str, item: str) -> None:
    assert _explains(where, item)


def _explains(where: str, text: str) -> bool:
    """Return whether a finding at this place explains an item's loss."""
    kind = next(kind for kind in Kind if text.startswith(kind))
    item = Item(kind, text.removeprefix(kind).strip())
    finding = Finding(RULES[0], Place(where))
    return not compare("x", {item: "1"}, {}, explained_by([finding])).unexplained


def test_report_says_what_became_of_a_finding() -> None:
    finding = Finding(_RULE, Place("/config/users/report writer"))
    item = Item(Kind.QUOTA, "user 'report writer' producer_byte_rate")
    other = Item(Kind.QUOTA, "user 'report' producer_byte_rate")
    comparison = compare("x", {item: "1", other: "2"}, {}, explained_by([finding]))
    changes = [
        ZnodeChange("/config/users/report%20writer", "created"),
        ZnodeChange("/config/users/report", "removed"),
    ]
    seen = seen_of(finding, [comparison], changes, [f"x {_RULE.log} y"])
    assert seen == ("1 × quota lost, created: /config/users/report%20writer, the log names it")
    assert seen_of(finding, [], [], ["another line"]) == ""


def test_znode_with_another_version_of_its_json_is_rewritten() -> None:
    path = "/delegation_token/tokens/t"
    before = _tree(**{path: b'{"version":1,"owner":"a"}'})
    same = _tree(**{path: b'{"owner":"a", "version":1}'})
    other = _tree(**{path: b'{"version":3,"owner":"a"}'})
    assert changed_znodes(before, same) == []
    assert changed_znodes(before, other) == [ZnodeChange(path, "rewritten in another version")]


def test_restart_explains_leaders_but_no_lost_partition() -> None:
    item = Item(Kind.LEADERSHIP, "orders-1")
    changed = compare("x", {item: "leader 1"}, {item: "leader 2"}, restarts)
    lost = compare("x", {item: "leader 1"}, {}, restarts)
    assert (len(changed.unexplained), len(lost.unexplained)) == (0, 1)
    moved = Item(Kind.PARTITION, "orders-1")
    assert compare("x", {moved: "replicas 1"}, {moved: "replicas 2"}, restarts).unexplained


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("leader 1, leader epoch 6, ISR 1,2,3, partition epoch 8", "several changes"),
        ("leader 1, leader epoch 6, ISR 1,2,3, partition epoch 10", "a restarted controller"),
        ("leader 1, leader epoch 6, ISR 1,2, partition epoch 8", ""),
        ("leader 2, leader epoch 6, ISR 1,2,3, partition epoch 10", ""),
    ],
)
def test_only_the_version_of_a_written_state_may_differ(written: str, reason: str) -> None:
    item = Item(Kind.LEADERSHIP, "orders-1")
    kraft = {item: "leader 1, leader epoch 6, ISR 1,2,3, partition epoch 9"}
    (difference,) = compare("x", kraft, {item: written}, rewritten).differences
    assert difference.why.startswith(reason)
    assert bool(difference.why) is bool(reason)


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
