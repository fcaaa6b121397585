"""ACLs as requests say them: codes and texts into bindings, each refusal in Kafka's words."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from cluster_model.acl_znodes import fits_a_path
from cluster_model.acls import (
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
from cluster_model.authorization import CLUSTER_NAME

NO_AUTHORIZER: Final = "No Authorizer is configured."
NO_AUTHORIZER_ON_BROKER: Final = "No Authorizer is configured on the broker"
_CLUSTER_CODE: Final = 4


class Creation(NamedTuple):
    """One creation, as far as it is good by itself. `refusal` is None for a good one."""

    binding: AclBinding | None
    refusal: ApiError | None


def means_any(creation: Any) -> bool:
    """True for what may stand in a filter only; it fails the whole request, as in Kafka."""
    return (
        ANY_CODE in (creation.resource_type, creation.operation, creation.permission_type)
        or creation.resource_pattern_type in (ANY_CODE, MATCH_CODE)
    )  # fmt: skip


def read_creation(creation: Any) -> Creation:
    """Judge one creation by itself, in Kafka's order (kafka-semantics 3.8)."""
    name = creation.resource_name
    if creation.resource_type == _CLUSTER_CODE and name != CLUSTER_NAME:
        return _refused(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        return _refused("Invalid empty resource name")
    resource_type = RESOURCE_TYPES.get(creation.resource_type)
    pattern_type = PATTERN_TYPES.get(creation.resource_pattern_type)
    operation = OPERATIONS.get(creation.operation)
    permission = PERMISSIONS.get(creation.permission_type)
    if resource_type is None or pattern_type is None or operation is None or permission is None:
        return _refused("Failed to create ACL")
    if "/" in name:
        return _refused("Failed to create ACL")
    pattern = ResourcePattern(resource_type, pattern_type, name)
    entry = AccessControlEntry(creation.principal, creation.host, operation, permission)
    return Creation(AclBinding(pattern, entry), None)


def can_be_stored(binding: AclBinding) -> bool:
    """False where Kafka fails while it writes: all creations on that pattern fail with it."""
    return ":" in binding.entry.principal and fits_a_path(binding.pattern.name)


def read_filter(asked: Any) -> AclFilter:
    """Return what an element of DeleteAcls, or a DescribeAcls request, looks for."""
    return filter_of_codes(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def _refused(text: str) -> Creation:
    return Creation(None, ApiError(ErrorCode.INVALID_REQUEST, text))
