"""The ACLs of a cluster, and filters over them.

An entry (`AccessControlEntry`) belongs to a pattern (`ResourcePattern`); entries are grouped by
pattern, as in ZooKeeper. Filters are those of DescribeAcls and DeleteAcls
(docs/kafka/acls.md#acl-apis, KIP-290).
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
from cluster_model.acls.codes import (
    ANY_CODE,
    MATCH_CODE,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
)

WILDCARD: Final = "*"
Entries = tuple[AccessControlEntry, ...]


class AclBinding(NamedTuple):
    """One entry of one pattern."""

    pattern: ResourcePattern
    entry: AccessControlEntry


@dataclass(frozen=True, slots=True)
class AclSet:
    """All ACLs of an image; immutable. See `Acls`."""

    _by_type: Map[tuple[ResourceType, PatternType], Map[str, Entries]] = field(default_factory=Map)
    _longest: int = 0  # no prefix is longer; bounds the lookups for a long name

    def entries(self, pattern: ResourcePattern) -> Entries:
        """Return the entries of one pattern, in order of creation."""
        return self._by_type.get(pattern[:2], _NO_NAMES).get(pattern.name, ())

    def with_entries(
        self, pattern: ResourcePattern, entries: Sequence[AccessControlEntry]
    ) -> AclSet:
        """Return the set with these entries for a pattern; an empty list removes the pattern."""
        kind = pattern[:2]
        names = self._by_type.get(kind, _NO_NAMES)
        if entries:
            names = names.set(pattern.name, tuple(entries))
        elif pattern.name in names:
            names = names.delete(pattern.name)
        longest = max(self._longest, _prefix_length(pattern))
        return replace(self, _by_type=self._by_type.set(kind, names), _longest=longest)

    @classmethod
    def of(
        cls, entries_of_pattern: Mapping[ResourcePattern, Sequence[AccessControlEntry]]
    ) -> AclSet:
        """Build the set of these patterns."""
        by_type: dict[tuple[ResourceType, PatternType], dict[str, Entries]] = {}
        for pattern, entries in entries_of_pattern.items():
            if entries:
                by_type.setdefault(pattern[:2], {})[pattern.name] = tuple(entries)
        return cls(
            Map({kind: Map(names) for kind, names in by_type.items()}),
            max(map(_prefix_length, entries_of_pattern), default=0),
        )

    def __iter__(self) -> Iterator[tuple[ResourcePattern, Entries]]:
        """Yield every pattern with its entries."""
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
        """See Acls. As in Kafka: prefixed patterns, then `*`, then the literal name."""
        prefixed = self._by_type.get((resource_type, "PREFIXED"), _NO_NAMES)
        literal = self._by_type.get((resource_type, "LITERAL"), _NO_NAMES)
        entries: list[AccessControlEntry] = []
        if prefixed:
            for end in range(min(len(name), self._longest), 0, -1):
                entries += prefixed.get(name[:end], ())
        entries += literal.get(WILDCARD, ())
        if name != WILDCARD:
            entries += literal.get(name, ())
        return entries

    def of_type(self, resource_type: ResourceType) -> Iterator[tuple[ResourcePattern, Entries]]:
        for (found_type, pattern_type), names in self._by_type.items():
            if found_type == resource_type:
                for name, entries in names.items():
                    yield ResourcePattern(resource_type, pattern_type, name), entries


def _prefix_length(pattern: ResourcePattern) -> int:
    return len(pattern.name) if pattern.pattern_type == "PREFIXED" else 0


_NO_NAMES: Final[Map[str, Entries]] = Map()
NO_ACLS: Final = AclSet()


@dataclass(frozen=True, slots=True)
class AclFilter:
    """A filter of DescribeAcls or DeleteAcls; a field that is None matches everything.

    `impossible` is set when the filter has an undefined code. The filter then matches nothing.
    """

    resource_type: ResourceType | None
    name: str | None
    pattern_type: PatternType | Literal["MATCH"] | None
    principal: str | None
    host: str | None
    operation: AclOperation | None
    permission: Permission | None
    impossible: bool = False

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        """Return whether the filter matches the pattern, regardless of its entries."""
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

    def matches_entry(self, entry: AccessControlEntry) -> bool:
        """Return whether the filter matches an entry of a matching pattern."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (None, entry.operation)
            and self.permission in (None, entry.permission)
        )

    def patterns(self, acls: AclSet) -> Iterator[tuple[ResourcePattern, Entries]]:
        """Yield the matching patterns, by lookup if the filter names exactly one."""
        one = self._only_pattern()
        if one is None:
            yield from (
                (pattern, entries) for pattern, entries in acls if self.matches_pattern(pattern)
            )
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
    """Return the filter for these protocol codes."""
    patterns: dict[int, PatternType | Literal["MATCH"]] = {**PATTERN_TYPES, MATCH_CODE: "MATCH"}
    codes: Iterable[tuple[int, Mapping[int, object]]] = (
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
        impossible=any(
            code != ANY_CODE and code not in names_of_codes for code, names_of_codes in codes
        ),
    )
