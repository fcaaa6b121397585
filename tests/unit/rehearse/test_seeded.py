"""What became of a seed, from the items and znodes before and after."""

from __future__ import annotations

from rehearse.findings import Outcome
from rehearse.metadata import Items, items_of_znodes
from rehearse.seeded import outcome_of
from rehearse.seeds import SEEDS, Seed, healthy
from rehearse.znodes import ZnodeTree


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
