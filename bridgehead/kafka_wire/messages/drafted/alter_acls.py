"""AlterAcls of KIP-4, key 10003, version 0; not flexible. Codes are those of Kafka's ACL APIs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bridgehead.kafka_wire.messages.drafted.list_acls import Acl
from bridgehead.kafka_wire.schema import INT8, INT16, STRING, Array, wire

DELETE: Final = 0
ADD: Final = 1


@dataclass(slots=True)
class AclAction:
    """An element of `requests.actions` of the request."""

    action: int = wire(INT8)
    acl: Acl = wire(Acl)


@dataclass(slots=True)
class AlterResourceAcls:
    """An element of `requests` of the request."""

    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    actions: list[AclAction] = wire(Array(AclAction))


@dataclass(slots=True)
class AlterAclsRequest:
    """The request."""

    requests: list[AlterResourceAcls] = wire(Array(AlterResourceAcls))


@dataclass(slots=True)
class AclResult:
    """An element of `responses.results` of the response."""

    action: int = wire(INT8)
    acl: Acl = wire(Acl)
    error_code: int = wire(INT16)


@dataclass(slots=True)
class AlterResourceAclsResult:
    """An element of `responses` of the response."""

    resource_type: int = wire(INT8)
    resource_name: str = wire(STRING)
    results: list[AclResult] = wire(Array(AclResult))


@dataclass(slots=True)
class AlterAclsResponse:
    """The response."""

    responses: list[AlterResourceAclsResult] = wire(Array(AlterResourceAclsResult))
