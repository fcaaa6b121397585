"""ListAcls of KIP-4, key 10002, version 0; not flexible. Codes are those of Kafka's ACL APIs."""

from __future__ import annotations

from dataclasses import dataclass

from bridgehead.kafka_wire.schema import INT8, INT16, STRING, Array, wire


@dataclass(slots=True)
class ListAclsRequest:
    """The request. A null principal and a resource type of -1 mean any."""

    principal: str | None = wire(STRING, nullable="0+", default=None)
    resource_type: int = wire(INT8, default=-1)
    resource_name: str = wire(STRING)


@dataclass(slots=True)
class Acl:
    """An ACL without its resource."""

    acl_principal: str = wire(STRING)
    acl_permission_type: int = wire(INT8)
    acl_host: str = wire(STRING)
    acl_operation: int = wire(INT8)


@dataclass(slots=True)
class ResourceAcls:
    """An element of `responses` of the response."""

    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    acls: list[Acl] = wire(Array(Acl))


@dataclass(slots=True)
class ListAclsResponse:
    """The response."""

    responses: list[ResourceAcls] = wire(Array(ResourceAcls))
    error_code: int = wire(INT16)
