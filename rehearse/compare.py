"""Compares the metadata of two moments item by item, and explains the differences.

Pure. A difference is explained by a finding of the scan, or by what Kafka's migration always does
(`ALWAYS`); else it is unexplained, and the rehearsal fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import unquote

import orjson

from rehearse import metadata
from rehearse.copying import MIGRATION
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
    item = difference.item
    before, _, kraft_epoch = difference.before.rpartition(" ")
    after, _, version = difference.after.rpartition(" ")
    if item.kind is Kind.LEADERSHIP and before == after:
        if int(version) > int(kraft_epoch):
            return "a restarted controller writes states again, which raises the znode's version"
        return "several changes of a partition are one write to ZooKeeper, so its version is lower"
    if item.kind is Kind.PRODUCER_IDS and difference.fate is Fate.CHANGED:
        return "ZooKeeper has the block after the one that KRaft will hand out next"
    return ""


def explained_by(findings: Iterable[Finding], others: Sequence[Explain] = ()) -> Explain:
    """Return what explains differences: findings about the same entity, then `others`."""
    places = [(finding.rule, finding.place.where) for finding in findings]

    def explain(difference: Difference) -> str:
        for rule, where in places:
            if _has(where, difference.item):
                return f"{rule.id}: {rule.what}"
        return next((why for other in others if (why := other(difference))), "")

    return explain


_OF_TOPIC: Final = (Kind.TOPIC, Kind.PARTITION, Kind.LEADERSHIP, Kind.CONFIG)
_CONTAINERS: Final = {
    "/brokers/topics/": _OF_TOPIC,
    "/admin/delete_topics/": _OF_TOPIC,
    "/config/topics/": (Kind.CONFIG,),
    "/config/brokers/": (Kind.CONFIG,),
    "/config/users/": (Kind.QUOTA, Kind.SCRAM),
    "/config/clients/": (Kind.QUOTA, Kind.SCRAM),
    "/config/ips/": (Kind.QUOTA,),
    "/kafka-acl/": (Kind.ACL,),
    "/kafka-acl-extended/": (Kind.ACL,),
    "/delegation_token/tokens/": (Kind.TOKEN,),
    "/latest_producer_id_block": (Kind.PRODUCER_IDS,),
    MIGRATION: tuple(Kind),  # a leftover: Kafka deletes everything
}
_ENTITY_TYPES: Final = {
    "/config/users/": "user",
    "/config/clients/": "client-id",
    "/config/ips/": "ip",
}


def _has(path: str, item: Item) -> bool:
    """Return whether an item is in a znode, or belongs to the topic that it has."""
    for root, kinds in _CONTAINERS.items():
        if path.startswith(root) and item.kind in kinds:
            return root == MIGRATION or _is_in(root, path.removeprefix(root).split("/"), item)
    return False


def _is_in(root: str, parts: Sequence[str], item: Item) -> bool:
    name = parts[0]
    match item.kind:
        case Kind.PARTITION | Kind.LEADERSHIP:
            topic, _, index = item.name.rpartition("-")
            return topic == name and parts[2:3] in ([], [index])
        case Kind.CONFIG:
            entity_type = "broker" if root == "/config/brokers/" else "topic"
            return item.name.startswith(metadata.config(entity_type, name, "", "")[0].name)
        case Kind.QUOTA:
            pairs = [(_ENTITY_TYPES[root], name), *[("client-id", client) for client in parts[2:3]]]
            entities = [(kind, metadata.entity_of(entity)) for kind, entity in pairs]
            return item.name.startswith(metadata.quota(entities, "", 0.0)[0].name)
        case Kind.SCRAM:
            return item.name.rpartition(" ")[0] == (metadata.entity_of(name) or name)
        case Kind.ACL:
            # The path may end at the pattern or at the resource's type, if these are unknown.
            pattern, names = ("literal", parts) if root == "/kafka-acl/" else (name, parts[1:])
            resource = " ".join([*names[:1], *map(repr, names[1:2])])
            return f" on {resource}" in item.name and item.name.endswith(f"({pattern.lower()})")
        case Kind.PRODUCER_IDS:
            return True
        case _:
            return item.name == name


class ZnodeChange(NamedTuple):
    """A znode that the controller removed, created or rewrote. Its content is not shown."""

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
    """Return the znodes that are gone, new, or have another version, without Kafka's own.

    Other changed contents are no changes here: the sync rewrites quotas with another order of keys.
    The comparison of items finds what they mean.
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
        elif _version(before.data(path)) != _version(after.data(path)):
            changes.append(ZnodeChange(path, "rewritten in another version"))
    return changes


def _version(data: bytes | None) -> object:
    """Return the version of a znode's JSON; None if it has none."""
    try:
        content = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError:
        return None
    return content.get("version") if isinstance(content, dict) else None


def seen_of(
    finding: Finding,
    comparisons: Sequence[Comparison],
    changes: Iterable[ZnodeChange],
    log: Iterable[str],
) -> str:
    """Return what a migration that completed did with a finding; empty if nothing is to be seen.

    `log` has the lines of the controller that name lost or changed items.
    """
    where, rule = finding.place.where, finding.rule
    parts: list[str] = []
    for comparison in comparisons:
        fates = Counter(
            f"{difference.item.kind} {difference.fate}"
            for difference in comparison.differences
            if difference.why.startswith(f"{rule.id}: ") and _has(where, difference.item)
        )
        parts += [f"{count:,} × {fate}" for fate, count in fates.items()]
        if parts:  # later comparisons say the same from another side
            break
    parts += [f"{change.what}: {change.path}" for change in changes if _is_about(change, where)]
    if rule.log and any(rule.log in line for line in log):
        parts.append("the log names it")
    return ", ".join(parts)


def _is_about(change: ZnodeChange, where: str) -> bool:
    """Return whether a change is one of this znode, or creates one for the same name."""
    if change.what != "created":
        return change.path == where
    name = where.rpartition("/")[2]
    return unquote(change.path.rpartition("/")[2]) == unquote(name)
