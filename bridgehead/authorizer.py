"""Who may do what: the interface of an authorizer, and the words in which it is asked.

An authorizer of your own is a class that can be imported by every node, named by its dotted path:

    authorizer.class.name=my_package.my_module.MyAuthorizer

It is built once, with the broker's properties, and asked for every element of every request. It
must be a pure function of what it is given: the same answer on every broker, no waiting. What it
raises counts as a refusal. ACLs are kept by the cluster whatever the authorizer makes of them.

    class OnlyAliceCreates:
        def __init__(self, properties: Mapping[str, str]) -> None: ...

        def authorize(self, asker: Asker, action: Action, acls: Acls) -> Verdict:
            return Verdict(action.operation != "CREATE" or str(asker.principal) == "User:alice")

        def authorize_by_resource_type(
            self, asker: Asker, operation: Operation, resource_type: ResourceType, acls: Acls
        ) -> Verdict:
            return Verdict(operation != "CREATE" or str(asker.principal) == "User:alice")
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
# What an ACL can say, beyond what can be asked.
AclOperation = Operation | Literal["ALL"]
Permission = Literal["ALLOW", "DENY"]
PatternType = Literal["LITERAL", "PREFIXED"]


class ResourcePattern(NamedTuple):
    """Which resources ACLs are about. The literal `*` is every resource of the type."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str


class AccessControlEntry(NamedTuple):
    """One rule: `User:alice` or `User:*`; a host's address as text, or `*`."""

    principal: str
    host: str
    operation: AclOperation
    permission: Permission


class Acls(Protocol):
    """The cluster's ACLs, as of one moment."""

    def matching(self, resource_type: ResourceType, name: str) -> Sequence[AccessControlEntry]:
        """Return the rules of every pattern that covers one resource."""
        ...

    def of_type(
        self, resource_type: ResourceType
    ) -> Iterable[tuple[ResourcePattern, Sequence[AccessControlEntry]]]:
        """Yield every pattern of one type of resource, with its rules."""
        ...


class Principal(Protocol):
    """Who asks. Its text is `type:name`, for example `User:alice`."""

    @property
    def type(self) -> str:
        """Mostly `User`."""
        ...

    @property
    def name(self) -> str:
        """As it was authenticated; case counts."""
        ...

    @property
    def token_authenticated(self) -> bool:
        """True when a delegation token stood in for the principal's own credentials."""
        ...


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and with what kind of request. Also of a forwarded request: the client."""

    principal: Principal
    host: str  # the client's address as text, never the forwarding broker's
    api_key: int
    api_version: int
    client_id: str | None
    listener_name: str
    security_protocol: str


@dataclass(frozen=True, slots=True)
class Action:
    """What is asked. `resource_name` is a name, never a pattern."""

    operation: Operation
    resource_type: ResourceType
    resource_name: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Allowed or not. `reason`, where there is one, goes to the authorizer's log (DEBUG)."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides. See the module."""

    def authorize(self, asker: Asker, action: Action, acls: Acls) -> Verdict:
        """Decide on one resource."""
        ...

    def authorize_by_resource_type(
        self, asker: Asker, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        """Decide whether there is any resource of a type on which the operation is allowed."""
        ...
