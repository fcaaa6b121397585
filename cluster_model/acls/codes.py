"""The words of authorizers (`bridgehead.authorizer`) and their codes in the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from bridgehead.authorizer import AclOperation, Operation, PatternType, Permission, ResourceType
from bridgehead.kafka_wire import acl_codes

ANY_CODE: Final = 1  # of every kind
MATCH_CODE: Final = int(acl_codes.PatternType.MATCH)
CLUSTER_CODE: Final = int(acl_codes.ResourceType.CLUSTER)

_OPERATION_WORDS: Final[tuple[AclOperation, ...]] = ("ALL", *get_args(Operation))

RESOURCE_TYPE_CODES: Final[Mapping[ResourceType, int]] = {
    word: int(acl_codes.ResourceType[word]) for word in get_args(ResourceType)
}
PATTERN_TYPE_CODES: Final[Mapping[PatternType, int]] = {
    word: int(acl_codes.PatternType[word]) for word in get_args(PatternType)
}
OPERATION_CODES: Final[Mapping[AclOperation, int]] = {
    word: int(acl_codes.AclOperation[word]) for word in _OPERATION_WORDS
}
PERMISSION_CODES: Final[Mapping[Permission, int]] = {
    word: int(acl_codes.AclPermissionType[word]) for word in get_args(Permission)
}
RESOURCE_TYPES: Final[Mapping[int, ResourceType]] = {c: w for w, c in RESOURCE_TYPE_CODES.items()}
PATTERN_TYPES: Final[Mapping[int, PatternType]] = {c: w for w, c in PATTERN_TYPE_CODES.items()}
OPERATIONS: Final[Mapping[int, AclOperation]] = {c: w for w, c in OPERATION_CODES.items()}
PERMISSIONS: Final[Mapping[int, Permission]] = {c: w for w, c in PERMISSION_CODES.items()}
