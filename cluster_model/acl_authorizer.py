"""The default authorizer: Kafka's AclAuthorizer, decided on ACLs alone (kafka-semantics 6).

A refusal goes before every permission; whoever no ACL speaks of is refused, unless the resource
has no ACL at all and `allow.everyone.if.no.acl.found` says otherwise. Super users are not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from bridgehead.authorizer import (
    AccessControlEntry,
    AclOperation,
    Acls,
    Action,
    Asker,
    Operation,
    Permission,
    ResourceType,
    Verdict,
)

CLASS_NAME: Final = "kafka.security.authorizer.AclAuthorizer"
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
_EVERYBODY: Final = "User:*"
_ANYWHERE: Final = "*"
# What an ALLOW of another operation permits as well; a DENY refuses only what it says.
_IMPLIED_BY: Final[Mapping[Operation, tuple[Operation, ...]]] = {
    "DESCRIBE": ("DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"),
    "DESCRIBE_CONFIGS": ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
}


class AclAuthorizer:
    """See Authorizer. Knows nothing but two of the broker's properties."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Raises ValueError, with a sentence, for super users that cannot be read."""
        self._super_users = super_users_of(properties)
        self._allow_everyone = properties.get(ALLOW_EVERYONE, "").strip().lower() == "true"

    def authorize(self, asker: Asker, action: Action, acls: Acls) -> Verdict:
        """See Authorizer."""
        who = str(asker.principal)
        if who in self._super_users:
            return _super_user(who)
        shown = (
            f"ResourcePattern(resourceType={action.resource_type}, name={action.resource_name}, "
            f"patternType=LITERAL)"
        )
        entries = acls.matching(action.resource_type, action.resource_name)
        if not entries:
            allowed = self._allow_everyone
            text = f"No acl found for resource {shown}, authorized = {str(allowed).lower()}"
            return Verdict(allowed, text)
        denied = _first(entries, "DENY", who, asker.host, (action.operation,))
        if denied is not None:
            return Verdict(False, _based_on(action.operation, shown, asker.host, denied))
        for operation in _IMPLIED_BY.get(action.operation, (action.operation,)):
            allowing = _first(entries, "ALLOW", who, asker.host, (operation,))
            if allowing is not None:
                return Verdict(True, _based_on(operation, shown, asker.host, allowing))
        return Verdict(False)

    def authorize_by_resource_type(
        self, asker: Asker, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        """See Authorizer; kafka-semantics 6.6. Implications do not count here, as in Kafka."""
        who = str(asker.principal)
        if who in self._super_users:
            return _super_user(who)
        named: dict[tuple[Permission, str], set[str]] = {}
        for pattern, entries in acls.of_type(resource_type):
            for permission in ("ALLOW", "DENY"):
                if _first(entries, permission, who, asker.host, (operation,)) is not None:
                    named.setdefault((permission, pattern.pattern_type), set()).add(pattern.name)
        denied = named.get(("DENY", "LITERAL"), set())
        if _ANYWHERE in denied:
            return Verdict(False)
        if self._allow_everyone:
            return Verdict(True)
        denied_prefixes = named.get(("DENY", "PREFIXED"), set())

        def is_dominated(name: str) -> bool:
            return any(name[:end] in denied_prefixes for end in range(1, len(name) + 1))

        literals = named.get(("ALLOW", "LITERAL"), set())
        return Verdict(
            _ANYWHERE in literals
            or any(name not in denied and not is_dominated(name) for name in literals)
            or any(not is_dominated(name) for name in named.get(("ALLOW", "PREFIXED"), set()))
        )


def super_users_of(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the principals of `super.users`; raises ValueError for one without a type."""
    names = (part.strip() for part in properties.get(SUPER_USERS, "").split(";"))
    users = frozenset(name for name in names if name)
    for name in sorted(users):
        if not all(name.partition(":")):
            raise ValueError(f"{SUPER_USERS}: {name!r} is no principal: write User:{name}.")
    return users


def _super_user(who: str) -> Verdict:
    text = f"principal = {who} is a super user, allowing operation without checking acls."
    return Verdict(True, text)


def _first(
    entries: Sequence[AccessControlEntry],
    permission: Permission,
    who: str,
    host: str,
    operations: tuple[AclOperation, ...],
) -> AccessControlEntry | None:
    for entry in entries:
        if (
            entry.permission == permission
            and entry.principal in (who, _EVERYBODY)
            and (entry.operation == "ALL" or entry.operation in operations)
            and entry.host in (host, _ANYWHERE)
        ):
            return entry
    return None


def _based_on(operation: str, shown: str, host: str, entry: AccessControlEntry) -> str:
    return (
        f"operation = {operation} on resource = {shown} from host = {host} is {entry.permission} "
        f"based on acl = {entry.principal} has {entry.permission} permission for operations: "
        f"{entry.operation} from hosts: {entry.host}"
    )
