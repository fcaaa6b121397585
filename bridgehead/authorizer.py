"""The interface of authorizers: plug in your own, as with Kafka's authorizer.class.name.

An authorizer is a class that every node can import, named by its dotted path:

    authorizer.class.name=my_package.my_module.MyAuthorizer

Each node creates an instance with the broker's properties. It calls a method for each right that
a request needs. The methods must be pure functions of their arguments: they return the same
verdict on every broker and do not block. The rights of a large request are checked in a second
thread, so a method may be called by two threads at the same time. If a method raises an exception,
the operation is denied; only AlterAcls on a drafted listener returns UNKNOWN_SERVER_ERROR instead.
The cluster stores ACLs even if the authorizer does not use them.

    class OnlyAliceCreates:
        def __init__(self, properties: Mapping[str, str]) -> None: ...

        def authorize(self, requester: Requester, action: Action, acls: Acls) -> Verdict:
            allowed = action.operation != "CREATE" or str(requester.principal) == "User:alice"
            return Verdict(allowed)

        def authorize_by_resource_type(
            self,
            requester: Requester,
            operation: Operation,
            resource_type: ResourceType,
            acls: Acls,
        ) -> Verdict:
            return Verdict(operation != "CREATE" or str(requester.principal) == "User:alice")
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

Operation = Literal[
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
]
ResourceType = Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
# ALL stands for every operation. Only ACLs have it, never a request.
AclOperation = Operation | Literal["ALL"]
Permission = Literal["ALLOW", "DENY"]
PatternType = Literal["LITERAL", "PREFIXED"]


class ResourcePattern(NamedTuple):
    """The resources that ACLs apply to. A literal `*` stands for every resource of the type."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str


class AccessControlEntry(NamedTuple):
    """One ACL of a pattern. `principal` may be `User:*`. `host` is an address or `*`."""

    principal: str
    host: str
    operation: AclOperation
    permission: Permission


class Acls(Protocol):
    """A snapshot of the cluster's ACLs."""

    def matching(self, resource_type: ResourceType, name: str) -> Sequence[AccessControlEntry]:
        """Return the ACLs of every pattern that matches one resource."""
        ...

    def of_type(
        self, resource_type: ResourceType
    ) -> Iterable[tuple[ResourcePattern, Sequence[AccessControlEntry]]]:
        """Yield every pattern of one type of resource, with its ACLs."""
        ...


class Principal(Protocol):
    """An authenticated client. Its text is `type:name`, for example `User:alice`."""

    @property
    def type(self) -> str:
        """Usually `User`."""
        ...

    @property
    def name(self) -> str:
        """The authenticated name. It is case-sensitive."""
        ...

    @property
    def token_authenticated(self) -> bool:
        """True if the client authenticated with a delegation token of the principal."""
        ...


@dataclass(frozen=True, slots=True)
class Requester:
    """A request and its client. The client is never the broker that forwarded the request."""

    principal: Principal
    host: str  # the client's address
    api_key: int
    api_version: int
    client_id: str | None
    listener_name: str
    security_protocol: str


@dataclass(frozen=True, slots=True)
class Action:
    """An operation on one resource. `resource_name` is a name, never a pattern."""

    operation: Operation
    resource_type: ResourceType
    resource_name: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Allowed or not. The authorizer's logger writes `reason` at DEBUG."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides whether a client may perform an operation."""

    def authorize(self, requester: Requester, action: Action, acls: Acls) -> Verdict:
        """Decide on one resource."""
        ...

    def authorize_by_resource_type(
        self, requester: Requester, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        """Decide whether the operation is allowed on at least one resource of a type."""
        ...
