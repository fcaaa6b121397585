"""The znodes of ACLs, as Kafka's AclAuthorizer writes them (docs/kafka/znodes.md#acl-znodes).

One class per kind of znode, as in `cluster_model.znodes.layout`. Names are not escaped: a resource
whose name is not a valid znode name cannot have ACLs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

import orjson

from bridgehead.authorizer import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from cluster_model.acls.bindings import Entries
from cluster_model.acls.codes import OPERATIONS, PERMISSIONS
from cluster_model.znode_names import is_valid_znode_name
from cluster_model.znodes.values import (
    TEXT_BYTES_MAX,
    decoding,
    json_object,
    list_of,
    object_of,
    text,
)

_PARENTS: Final[dict[PatternType, str]] = {
    "LITERAL": "/kafka-acl",
    "PREFIXED": "/kafka-acl-extended/prefixed",
}
# Replaces the entries of an invalid znode. They may have contained a DENY, so this entry denies
# everyone except super users. Deleting it, or creating an entry for the pattern, repairs the znode.
UNREADABLE: Final[Entries] = (AccessControlEntry("User:*", "*", "ALL", "DENY"),)


def camel_case(word: str) -> str:
    """Return `DESCRIBE_CONFIGS` as `DescribeConfigs`, Kafka's form in znodes and logs."""
    return "".join(part.capitalize() for part in word.split("_"))


_TYPE_NAMES: Final[dict[ResourceType, str]] = {w: camel_case(w) for w in get_args(ResourceType)}
_OPERATIONS: Final[dict[str, AclOperation]] = {camel_case(w): w for w in OPERATIONS.values()}
_PERMISSIONS: Final[dict[str, Permission]] = {camel_case(w): w for w in PERMISSIONS.values()}


class AclZnode:
    """ACLs of a pattern: /kafka-acl/<Type>/<name> or /kafka-acl-extended/prefixed/<Type>/<name>."""

    @staticmethod
    def parents() -> Iterator[tuple[ResourceType, PatternType, str]]:
        """Yield the parent path of each kind of pattern."""
        for pattern_type, parent in _PARENTS.items():
            for resource_type, name in _TYPE_NAMES.items():
                yield resource_type, pattern_type, f"{parent}/{name}"

    @staticmethod
    def path(pattern: ResourcePattern) -> str:
        """Return the path of one pattern."""
        parent = _PARENTS[pattern.pattern_type]
        return f"{parent}/{_TYPE_NAMES[pattern.resource_type]}/{pattern.name}"

    @staticmethod
    def encode(entries: Sequence[AccessControlEntry]) -> bytes:
        """Return the content, version 1; a pattern without entries has no znode."""
        acls = [
            {
                "principal": entry.principal,
                "permissionType": camel_case(entry.permission),
                "host": entry.host,
                "operation": camel_case(entry.operation),
            }
            for entry in entries
        ]
        return orjson.dumps({"acls": acls, "version": 1})

    @staticmethod
    def decode(path: str, data: bytes | None) -> Entries:
        """Return the entries; without data there are none."""
        if not data:
            return ()
        with decoding(path):
            value = json_object(data, path)
            if value["version"] != 1:
                raise ValueError("the version is not 1")
            # Without duplicates, in the stored order.
            return tuple(dict.fromkeys(_entry(acl) for acl in list_of(value["acls"])))

    @staticmethod
    def can_name_a_resource(name: str) -> bool:
        """Return whether a resource can have this name, or this prefix of its name."""
        return len(name.encode()) <= TEXT_BYTES_MAX


def _entry(acl: Any) -> AccessControlEntry:
    acl = object_of(acl)
    return AccessControlEntry(
        text(acl["principal"]),
        text(acl["host"]),
        _OPERATIONS[text(acl["operation"])],
        _PERMISSIONS[text(acl["permissionType"])],
    )


class AclChangeZnode:
    """Change notifications in /kafka-acl-changes (literal) or /kafka-acl-extended-changes."""

    literal: Final = "/kafka-acl-changes"
    extended: Final = "/kafka-acl-extended-changes"
    parents: Final = (literal, extended)
    word: Final = "acl_changes_"

    @classmethod
    def prefix(cls, pattern: ResourcePattern) -> str:
        """Return the path of a sequential znode, without the number."""
        parent = cls.literal if pattern.pattern_type == "LITERAL" else cls.extended
        return f"{parent}/{cls.word}"

    @staticmethod
    def encode(pattern: ResourcePattern) -> bytes:
        """Return the content: text for a literal pattern, JSON for a prefixed one."""
        if pattern.pattern_type == "LITERAL":
            return f"{pattern.resource_type}:{pattern.name}".encode()
        return orjson.dumps(
            {
                "version": 1,
                "resourceType": pattern.resource_type,
                "name": pattern.name,
                "patternType": pattern.pattern_type,
            }
        )

    @classmethod
    def decode(cls, parent: str, data: bytes | None) -> ResourcePattern:
        """Return the pattern; its resource type may have any spelling that Kafka accepts."""
        with decoding(parent):
            pattern_type: PatternType = "LITERAL"
            if parent == cls.literal:
                word, _, name = (data or b"").decode().partition(":")
            else:
                value = json_object(data, parent)
                word, name, pattern_type = (
                    value["resourceType"],
                    value["name"],
                    value["patternType"],
                )
            if pattern_type not in _PARENTS or not is_valid_znode_name(text(name)):
                raise ValueError("no znode has ACLs of this pattern")
            return ResourcePattern(_resource_type(word), pattern_type, name)


def _resource_type(word: str) -> ResourceType:
    spelled = {name.upper(): resource_type for resource_type, name in _TYPE_NAMES.items()}
    return spelled[word.replace("_", "").upper()]


# Kafka's AclAuthorizer creates these paths. Without an authorizer they do not exist.
ACL_PATHS: Final = (
    *(path for _, _, path in AclZnode.parents()),
    *AclChangeZnode.parents,
)
