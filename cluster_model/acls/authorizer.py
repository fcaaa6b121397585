"""The built-in authorizer. It decides like Kafka's AclAuthorizer (docs/kafka/acls.md#decision).

DENY takes precedence over ALLOW. Without a matching ACL, access is denied, unless the resource has
no ACLs and `allow.everyone.if.no.acl.found` is true. Super users may do everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bridgehead.authorizer import (
    AccessControlEntry,
    AclOperation,
    Acls,
    Action,
    Operation,
    Permission,
    Requester,
    ResourceType,
    Verdict,
)

CLASS_NAME: Final = "kafka.security.authorizer.AclAuthorizer"
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
_WILDCARD_PRINCIPAL: Final = "User:*"
_WILDCARD: Final = "*"
# For each operation, the operations whose ALLOW also allows it. A DENY has no such effect.
_IMPLIED_BY: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    "DESCRIBE": ("DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
}


class AclAuthorizer:
    """See Authorizer. Configured by `super.users` and `allow.everyone.if.no.acl.found`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises ValueError for an invalid `super.users`."""
        self._super_users = super_users_of(properties)
        self._allow_everyone = properties.get(ALLOW_EVERYONE, "").strip().lower() == "true"

    def authorize(self, requester: Requester, action: Action, acls: Acls) -> Verdict:
        principal = str(requester.principal)
        if principal in self._super_users:
            return _super_user(principal)
        resource = (
            f"ResourcePattern(resourceType={action.resource_type}, name={action.resource_name}, "
            f"patternType=LITERAL)"
        )
        entries = acls.matching(action.resource_type, action.resource_name)
        if not entries:
            allowed = self._allow_everyone
            text = f"No acl found for resource {resource}, authorized = {str(allowed).lower()}"
            return Verdict(allowed, text)
        denied = _first(entries, "DENY", principal, requester.host, (action.operation,))
        if denied is not None:
            return Verdict(False, _based_on(action.operation, resource, requester.host, denied))
        for operation in _IMPLIED_BY.get(action.operation, (action.operation,)):
            allowing = _first(entries, "ALLOW", principal, requester.host, (operation,))
            if allowing is not None:
                return Verdict(True, _based_on(operation, resource, requester.host, allowing))
        return Verdict(False)

    def authorize_by_resource_type(
        self, requester: Requester, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        """See Authorizer; docs/kafka/acls.md. As in Kafka, no operation implies another here."""
        principal = str(requester.principal)
        if principal in self._super_users:
            return _super_user(principal)
        named: dict[tuple[Permission, str], set[str]] = {}
        for pattern, entries in acls.of_type(resource_type):
            for permission in ("ALLOW", "DENY"):
                if _first(entries, permission, principal, requester.host, (operation,)) is not None:
                    named.setdefault((permission, pattern.pattern_type), set()).add(pattern.name)
        denied = named.get(("DENY", "LITERAL"), set())
        if _WILDCARD in denied:
            return Verdict(False)
        if self._allow_everyone:
            return Verdict(True)
        denied_prefixes = named.get(("DENY", "PREFIXED"), set())

        def is_dominated(name: str) -> bool:
            return any(name[:end] in denied_prefixes for end in range(1, len(name) + 1))

        literals = named.get(("ALLOW", "LITERAL"), set())
        return Verdict(
            _WILDCARD in literals
            or any(name not in denied and not is_dominated(name) for name in literals)
            or any(not is_dominated(name) for name in named.get(("ALLOW", "PREFIXED"), set()))
        )


def super_users_of(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the principals of `super.users`; raises ValueError for one without a type."""
    names = (part.strip() for part in properties.get(SUPER_USERS, "").split(";"))
    users = frozenset(name for name in names if name)
    for name in sorted(users):
        if not all(name.partition(":")):
            raise ValueError(f"{SUPER_USERS}: {name!r} is not a principal; write User:{name}.")
    return users


def _super_user(principal: str) -> Verdict:
    text = f"principal = {principal} is a super user, allowing operation without checking acls."
    return Verdict(True, text)


def _first(
    entries: Sequence[AccessControlEntry],
    permission: Permission,
    principal: str,
    host: str,
    operations: tuple[AclOperation, ...],
) -> AccessControlEntry | None:
    for entry in entries:
        if (
            entry.permission == permission
            and entry.principal in (principal, _WILDCARD_PRINCIPAL)
            and (entry.operation == "ALL" or entry.operation in operations)
            and entry.host in (host, _WILDCARD)
        ):
            return entry
    return None


def _based_on(operation: str, resource: str, host: str, entry: AccessControlEntry) -> str:
    return (
        f"operation = {operation} on resource = {resource} from host = {host} is "
        f"{entry.permission} based on acl = {entry.principal} has {entry.permission} permission "
        f"for operations: {entry.operation} from hosts: {entry.host}"
    )
