"""Codes in the ACL APIs, and the operations in `authorized_operations` of other responses.

docs/kafka/acls.md, KIP-140, KIP-290, KIP-430. A code that a later release adds is UNKNOWN. An ACL
has neither UNKNOWN nor ANY nor MATCH.
"""

from __future__ import annotations

from typing import Final

from bridgehead.kafka_wire.codes import ExtensibleCode

_NOT_REQUESTED: Final = -(2**31)


class ResourceType(ExtensibleCode):
    """The type of an ACL's resource, with Kafka's codes. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(ExtensibleCode):
    """How the resource name of an ACL matches. ANY and MATCH are for filters only.

    MATCH finds every ACL that applies to the resource with the name in the filter (KIP-290).
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(ExtensibleCode):
    """What a principal does with a resource. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class AclPermissionType(ExtensibleCode):
    """Whether an ACL allows or denies. ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations of a bit field (KIP-430); None if they were not requested."""
    if bits == _NOT_REQUESTED:
        return None
    return frozenset(operation for operation in AclOperation if bits >> operation & 1)
