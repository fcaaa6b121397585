"""DescribeAcls, key 29, versions 0 to 3; flexible from 2.

Version notes:
    1: The request adds `pattern_type_filter`. The response adds `resources.pattern_type`.
    2: First flexible version.
    3: Same fields as 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class DescribeAclsRequest:
    """The request."""

    resource_type_filter: int = wire(INT8)
    resource_name_filter: str | None = wire(STRING, nullable="0+")
    pattern_type_filter: int = wire(INT8, versions="1+", default=3)
    principal_filter: str | None = wire(STRING, nullable="0+")
    host_filter: str | None = wire(STRING, nullable="0+")
    operation: int = wire(INT8)
    permission_type: int = wire(INT8)


@dataclass(slots=True)
class AclDescription:
    """An element of `resources.acls` of the response."""

    principal: str = wire(STRING)
    host: str = wire(STRING)
    operation: int = wire(INT8)
    permission_type: int = wire(INT8)


@dataclass(slots=True)
class DescribeAclsResource:
    """An element of `resources` of the response."""

    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    pattern_type: int = wire(INT8, versions="1+", default=3)
    acls: list[AclDescription] = wire(Array(AclDescription))


@dataclass(slots=True)
class DescribeAclsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")
    resources: list[DescribeAclsResource] = wire(Array(DescribeAclsResource))
