"""DeleteAcls, key 31, versions 0 to 3; flexible from 2.

Version notes:
    1: The request adds `filters.pattern_type_filter`. The response adds
       `filter_results.matching_acls.pattern_type`.
    2: First flexible version.
    3: Same fields as 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class DeleteAclsFilter:
    """An element of `filters` of the request."""

    resource_type_filter: int = wire(INT8)
    resource_name_filter: str | None = wire(STRING, nullable="0+")
    pattern_type_filter: int = wire(INT8, versions="1+", default=3)
    principal_filter: str | None = wire(STRING, nullable="0+")
    host_filter: str | None = wire(STRING, nullable="0+")
    operation: int = wire(INT8)
    permission_type: int = wire(INT8)


@dataclass(slots=True)
class DeleteAclsRequest:
    """The request."""

    filters: list[DeleteAclsFilter] = wire(Array(DeleteAclsFilter))


@dataclass(slots=True)
class DeleteAclsMatchingAcl:
    """An element of `filter_results.matching_acls` of the response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    pattern_type: int = wire(INT8, versions="1+", default=3)
    principal: str = wire(STRING)
    host: str = wire(STRING)
    operation: int = wire(INT8)
    permission_type: int = wire(INT8)


@dataclass(slots=True)
class DeleteAclsFilterResult:
    """An element of `filter_results` of the response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = wire(Array(DeleteAclsMatchingAcl))


@dataclass(slots=True)
class DeleteAclsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    filter_results: list[DeleteAclsFilterResult] = wire(Array(DeleteAclsFilterResult))
