"""ACLs: the rules of a cluster, what finds them, and the codes of the protocol.

A rule (`AccessControlEntry`) hangs on a pattern (`ResourcePattern`); rules are kept by pattern, as
ZooKeeper keeps them. Filters are those of DescribeAcls and DeleteAcls (kafka-semantics 3.8,
KIP-290).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from immutables import Map

from bridgehead.authorizer import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from cluster_model.authorization import OPERATION_CODES

WILDCARD: Final = "*"
UNKNOWN_CODE: Final = 0
ANY_CODE: Final = 1

RESOURCE_TYPE_CODES: Final[Mapping[ResourceType, int]] = {
    "TOPIC": 2,
    "GROUP": 3,
    "CLUSTER": 4,
    "TRANSACTIONAL_ID": 5,
    "DELEGATION_TOKEN": 6,
    "USER": 7,
}
PATTERN_TYPE_CODES: Final[Mapping[PatternType, int]] = {"LITERAL": 3, "PREFIXED": 4}
PERMISSION_CODES: Final[Mapping[Permission, int]] = {"DENY": 2, "ALLOW": 3}
MATCH_CODE: Final = 2
RESOURCE_TYPES: Final[Mapping[int, ResourceType]] = {c: w for w, c in RESOURCE_TYPE_CODES.items()}
PATTERN_TYPES: Final[Mapping[int, PatternType]] = {c: w for w, c in PATTERN_TYPE_CODES.items()}
PERMISSIONS: Final[Mapping[int, Permission]] = {c: w for w, c in PERMISSION_CODES.items()}
OPERATIONS: Final[Mapping[int, AclOperation]] = {c: w for w, c in OPERATION_CODES.items()}

Entries = tuple[AccessControlEntry, ...]


class AclBinding(NamedTuple):
    """One rule on one pattern."""

    pattern: ResourcePattern
    entry: AccessControlEntry


@dataclass(frozen=True, slots=True)
class AclSet:
    """All ACLs as of one moment; immutable, so that it can be part of an image. See `Acls`."""

    _by_type: Map[tuple[ResourceType, PatternType], Map[str, Entries]] = field(default_factory=Map)

    def entries(self, pattern: ResourcePattern) -> Entries:
        """Return the rules of one pattern, in the order in which they were made."""
        return self._by_type.get(pattern[:2], _NO_NAMES).get(pattern.name, ())

    def with_entries(
        self, pattern: ResourcePattern, entries: Sequence[AccessControlEntry]
    ) -> AclSet:
        """Return the set in which a pattern has these rules; none removes the pattern."""
        kind = pattern[:2]
        names = self._by_type.get(kind, _NO_NAMES)
        if entries:
            names = names.set(pattern.name, tuple(entries))
        elif pattern.name in names:
            names = names.delete(pattern.name)
        return replace(self, _by_type=self._by_type.set(kind, names))

    @classmethod
    def of(cls, found: Mapping[ResourcePattern, Sequence[AccessControlEntry]]) -> AclSet:
        """Return a set of these patterns, built at once."""
        by_type: dict[tuple[ResourceType, PatternType], dict[str, Entries]] = {}
        for pattern, entries in found.items():
            if entries:
                by_type.setdefault(pattern[:2], {})[pattern.name] = tuple(entries)
        return cls(Map({kind: Map(names) for kind, names in by_type.items()}))

    def __iter__(self) -> Iterator[tuple[ResourcePattern, Entries]]:
        """Yield every pattern with its rules."""
        for (resource_type, pattern_type), names in self._by_type.items():
            for name, entries in names.items():
                yield ResourcePattern(resource_type, pattern_type, name), entries

    def __len__(self) -> int:
        """Return the number of patterns."""
        return sum(len(names) for names in self._by_type.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AclSet) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]

    def matching(self, resource_type: ResourceType, name: str) -> Sequence[AccessControlEntry]:
        """See Acls. Prefixed patterns come first, then `*`, then the literal name, as in Kafka."""
        prefixed = self._by_type.get((resource_type, "PREFIXED"), _NO_NAMES)
        literal = self._by_type.get((resource_type, "LITERAL"), _NO_NAMES)
        found: list[AccessControlEntry] = []
        if prefixed:
            for end in range(len(name), 0, -1):
                found += prefixed.get(name[:end], ())
        found += literal.get(WILDCARD, ())
        if name != WILDCARD:
            found += literal.get(name, ())
        return found

    def of_type(self, resource_type: ResourceType) -> Iterator[tuple[ResourcePattern, Entries]]:
        """See Acls."""
        for (found_type, pattern_type), names in self._by_type.items():
            if found_type == resource_type:
                for name, entries in names.items():
                    yield ResourcePattern(resource_type, pattern_type, name), entries


_NO_NAMES: Final[Map[str, Entries]] = Map()
NO_ACLS: Final = AclSet()


@dataclass(frozen=True, slots=True)
class AclFilter:
    """What DescribeAcls and DeleteAcls look for; None is anything.

    A code that Kafka does not define finds nothing, which `impossible` says.
    """

    resource_type: ResourceType | None
    name: str | None
    pattern_type: PatternType | Literal["MATCH"] | None
    principal: str | None
    host: str | None
    operation: AclOperation | None
    permission: Permission | None
    impossible: bool = False

    def covers(self, pattern: ResourcePattern) -> bool:
        """True when the pattern is among those meant; its rules are another question."""
        if self.impossible or self.resource_type not in (None, pattern.resource_type):
            return False
        if self.pattern_type not in (None, "MATCH", pattern.pattern_type):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern_type != "MATCH":
            return False
        if pattern.pattern_type == "LITERAL":
            return pattern.name == WILDCARD
        return self.name.startswith(pattern.name)

    def takes(self, entry: AccessControlEntry) -> bool:
        """True when a rule on a pattern that is meant is meant as well."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (None, entry.operation)
            and self.permission in (None, entry.permission)
        )

    def patterns(self, acls: AclSet) -> Iterator[tuple[ResourcePattern, Entries]]:
        """Yield what is covered, without looking at all there is where the filter names one."""
        one = self._only_pattern()
        if one is None:
            yield from ((pattern, entries) for pattern, entries in acls if self.covers(pattern))
        elif not self.impossible and (entries := acls.entries(one)):
            yield one, entries

    def _only_pattern(self) -> ResourcePattern | None:
        if self.resource_type is None or self.name is None:
            return None
        if self.pattern_type is None or self.pattern_type == "MATCH":
            return None
        return ResourcePattern(self.resource_type, self.pattern_type, self.name)


def filter_of_codes(
    resource_type: int,
    name: str | None,
    pattern_type: int,
    principal: str | None,
    host: str | None,
    operation: int,
    permission: int,
) -> AclFilter:
    """Read a filter of the protocol."""
    patterns: dict[int, PatternType | Literal["MATCH"]] = {**PATTERN_TYPES, MATCH_CODE: "MATCH"}
    asked: Iterable[tuple[int, Mapping[int, object]]] = (
        (resource_type, RESOURCE_TYPES),
        (pattern_type, patterns),
        (operation, OPERATIONS),
        (permission, PERMISSIONS),
    )
    return AclFilter(
        RESOURCE_TYPES.get(resource_type),
        name,
        patterns.get(pattern_type),
        principal,
        host,
        OPERATIONS.get(operation),
        PERMISSIONS.get(permission),
        impossible=any(code != ANY_CODE and code not in known for code, known in asked),
    )
