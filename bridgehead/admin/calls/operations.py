"""The operations of ACLs with Kafka's names and codes, and the sets of operations in responses."""

from __future__ import annotations

from enum import IntEnum

_NOT_REQUESTED = -(2**31)


class AclOperation(IntEnum):
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

    @classmethod
    def _missing_(cls, value: object) -> AclOperation:
        return cls.UNKNOWN


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations of a bit field (KIP-430); None if they were not requested."""
    if bits == _NOT_REQUESTED:
        return None
    return frozenset(each for each in AclOperation if bits >> each & 1)
