"""Parses ACL requests into bindings and filters. Error messages are Kafka's."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.acls.bindings import (
    ANY_CODE,
    MATCH_CODE,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    AclBinding,
    AclFilter,
    filter_of_codes,
)
from cluster_model.acls.znodes import is_valid_znode_name

NO_AUTHORIZER: Final = "No Authorizer is configured."
NO_AUTHORIZER_ON_BROKER: Final = "No Authorizer is configured on the broker"
_CLUSTER_CODE: Final = 4


class Creation(NamedTuple):
    """A parsed creation: either a binding or an error."""

    binding: AclBinding | None
    error: ApiError | None


def has_filter_codes(creation: Any) -> bool:
    """Return whether a creation has the code ANY or MATCH, which fails the whole request."""
    return (
        ANY_CODE in (creation.resource_type, creation.operation, creation.permission_type)
        or creation.resource_pattern_type in (ANY_CODE, MATCH_CODE)
    )  # fmt: skip


def parse_creation(creation: Any) -> Creation:
    """Validate one creation, in Kafka's order (docs/kafka/acls.md#acl-apis)."""
    name = creation.resource_name
    if creation.resource_type == _CLUSTER_CODE and name != CLUSTER_NAME:
        return _error(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        return _error("Invalid empty resource name")
    resource_type = RESOURCE_TYPES.get(creation.resource_type)
    pattern_type = PATTERN_TYPES.get(creation.resource_pattern_type)
    operation = OPERATIONS.get(creation.operation)
    permission = PERMISSIONS.get(creation.permission_type)
    if resource_type is None or pattern_type is None or operation is None or permission is None:
        return _error("Failed to create ACL")
    if "/" in name:
        return _error("Failed to create ACL")
    pattern = ResourcePattern(resource_type, pattern_type, name)
    entry = AccessControlEntry(creation.principal, creation.host, operation, permission)
    return Creation(AclBinding(pattern, entry), None)


def can_be_stored(binding: AclBinding) -> bool:
    """Return whether Kafka can write this ACL; if not, all creations on its pattern fail."""
    return ":" in binding.entry.principal and is_valid_znode_name(binding.pattern.name)


def parse_filter(codes: Any) -> AclFilter:
    """Return the filter of a DeleteAcls element or of a DescribeAcls request."""
    return filter_of_codes(
        codes.resource_type_filter,
        codes.resource_name_filter,
        codes.pattern_type_filter,
        codes.principal_filter,
        codes.host_filter,
        codes.operation,
        codes.permission_type,
    )


def _error(text: str) -> Creation:
    return Creation(None, ApiError(ErrorCode.INVALID_REQUEST, text))
