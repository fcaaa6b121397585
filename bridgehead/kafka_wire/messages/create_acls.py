"""CreateAcls, key 30, versions 0 to 3; flexible from 2.

Version notes:
    1: The request adds `creations.resource_pattern_type`.
    2: First flexible version.
    3: Same fields as 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, INT32, STRING, Array, wire


@dataclass(slots=True)
class AclCreation:
    """An element of `creations` of the request."""

    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    resource_pattern_type: int = wire(INT8, versions="1+", default=3)
    principal: str = wire(STRING)
    host: str = wire(STRING)
    operation: int = wire(INT8)
    permission_type: int = wire(INT8)


@dataclass(slots=True)
class CreateAclsRequest:
    """The request."""

    creations: list[AclCreation] = wire(Array(AclCreation))


@dataclass(slots=True)
class AclCreationResult:
    """An element of `results` of the response."""

    error_code: int = wire(INT16)
    error_message: str | None = wire(STRING, nullable="0+")


@dataclass(slots=True)
class CreateAclsResponse:
    """The response."""

    throttle_time_ms: int = wire(INT32)
    results: list[AclCreationResult] = wire(Array(AclCreationResult))
