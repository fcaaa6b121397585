"""Compares the metadata of two moments item by item, and explains the differences.

Pure. A difference is explained by a finding of the scan, or by what Kafka's migration always does
(`ALWAYS`); else it is unexplained, and the rehearsal fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from rehearse.findings import Finding
from rehearse.metadata import Item, Items, Kind
from rehearse.znodes import ZnodeTree


class Fate(StrEnum):
    """What became of an item."""

    EQUAL = "equal"
    CHANGED = "changed"
    LOST = "lost"
    ADDED = "added"


class Difference(NamedTuple):
    """An item that is not equal. `why` is empty if nothing explains it."""

    item: Item
    fate: Fate
    before: str
    after: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two moments. `equal` has the number of equal items of each kind."""

    name: str
    equal: Mapping[Kind, int]
    differences: Sequence[Difference]

    def of_kind(self, kind: Kind, fate: Fate) -> int:
        """Return how many items of a kind have this fate."""
        if fate is Fate.EQUAL:
            return self.equal.get(kind, 0)
        return sum(d.item.kind is kind and d.fate is fate for d in self.differences)

    @property
    def unexplained(self) -> Sequence[Difference]:
        """The differences that nothing explains."""
        return [difference for difference in self.differences if not difference.why]


Explain = Callable[[Difference], str]


def compare(name: str, before: Items, after: Items, explain: Explain = lambda _: "") -> Comparison:
    """Compare the items of two moments."""
    equal: dict[Kind, int] = {}
    differences = []
    for item in sorted(before.keys() | after.keys()):
        old, new = before.get(item), after.get(item)
        if old == new:
            equal[item.kind] = equal.get(item.kind, 0) + 1
            continue
        fate = Fate.LOST if new is None else Fate.ADDED if old is None else Fate.CHANGED
        difference = Difference(item, fate, old or "", new or "")
        differences.append(difference._replace(why=explain(difference)))
    return Comparison(name, equal, differences)


def restarts(difference: Difference) -> str:
    """Explain what restarted brokers change: leaders, ISRs, epochs, and blocks of producer ids."""
    if difference.fate is Fate.CHANGED and difference.item.kind is Kind.LEADERSHIP:
        return "leaders, ISRs and epochs change when brokers restart or catch up"
    if difference.item.kind is Kind.PRODUCER_IDS and difference.fate is not Fate.LOST:
        return "brokers have reserved blocks of producer ids"
    return ""


def rewritten(difference: Difference) -> str:
    """Explain what differs in ZooKeeper although the controller wrote it from its own state."""
    item, before, after = difference.item, difference.before, difference.after
    if item.kind is Kind.LEADERSHIP and before.rpartition(", ")[0] == after.rpartition(", ")[0]:
        return "a restarted controller writes states again, which raises the znode's version"
    if item.kind is Kind.PRODUCER_IDS and difference.fate is Fate.CHANGED:
        return "ZooKeeper has the block after the one that KRaft will hand out next"
    return ""


def explained_by(findings: Iterable[Finding], others: Sequence[Explain] = ()) -> Explain:
    """Return what explains differences: findings about the same entity, then `others`."""
    places = [(finding, _entity(finding.place.where)) for finding in findings]

    def explain(difference: Difference) -> str:
        for finding, entity in places:
            if entity and _concerns(entity, difference.item):
                return f"{finding.rule.id}: {finding.rule.what}"
        return next((why for other in others if (why := other(difference))), "")

    return explain


_CONTAINERS: Final = {
    "/brokers/topics/": (Kind.TOPIC, Kind.PARTITION, Kind.LEADERSHIP, Kind.CONFIG),
    "/admin/delete_topics/": (Kind.TOPIC, Kind.PARTITION, Kind.LEADERSHIP, Kind.CONFIG),
    "/config/topics/": (Kind.CONFIG,),
    "/config/brokers/": (Kind.CONFIG,),
    "/config/users/": (Kind.QUOTA, Kind.SCRAM),
    "/config/clients/": (Kind.QUOTA, Kind.SCRAM),
    "/config/ips/": (Kind.QUOTA,),
    "/kafka-acl/": (Kind.ACL,),
    "/kafka-acl-extended/": (Kind.ACL,),
    "/delegation_token/tokens/": (Kind.TOKEN,),
    "/latest_producer_id_block": (Kind.PRODUCER_IDS,),
}


class _Entity(NamedTuple):
    kinds: Sequence[Kind]
    name: str


def _entity(path: str) -> _Entity | None:
    for root, kinds in _CONTAINERS.items():
        if path.startswith(root):
            parts = path.removeprefix(root).split("/")
            # An ACL's path has its type (and pattern) before the resource's name.
            name = parts[-1] if Kind.ACL in kinds else parts[0]
            return _Entity(kinds, name)
    return None


def _concerns(entity: _Entity, item: Item) -> bool:
    if item.kind not in entity.kinds:
        return False
    if item.kind in (Kind.TOPIC, Kind.PARTITION, Kind.LEADERSHIP):
        return item.name == entity.name or item.name.rpartition("-")[0] == entity.name
    return not entity.name or entity.name in item.name


class ZnodeChange(NamedTuple):
    """A znode that the controller removed or created. Its content is not shown."""

    path: str
    what: str


# The controller's own places, registrations, and notifications that are not metadata.
_NOT_METADATA: Final = (
    "/controller",
    "/controller_epoch",
    "/migration",
    "/brokers/ids",
    "/brokers/seqid",
    "/brokers/topics",
    "/config/changes",
    "/config/topics",
    "/feature",
    "/isr_change_notification",
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/delegation_token",
)


def changed_znodes(before: ZnodeTree, after: ZnodeTree) -> list[ZnodeChange]:
    """Return the znodes that exist no longer or are new, without those that always change.

    Changed contents are no changes here: the sync rewrites quotas with another order of keys. The
    comparison of items finds what they mean.
    """
    changes = []
    for path in sorted(before.znodes.keys() | after.znodes.keys()):
        if path in _NOT_METADATA or path.startswith(
            (
                *("/brokers/ids/", "/config/changes/", "/kafka-acl-changes/"),
                *("/kafka-acl-extended-changes/", "/delegation_token/token_changes"),
            )
        ):
            continue
        if path not in after:
            changes.append(ZnodeChange(path, "removed"))
        elif path not in before:
            changes.append(ZnodeChange(path, "created"))
    return changes
