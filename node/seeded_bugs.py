"""The bugs of an authorizer that tests seed, to show that they are caught. Production has none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bridgehead.authorizer import (
    AccessControlEntry,
    Acls,
    Action,
    Asker,
    Authorizer,
    Operation,
    ResourcePattern,
    ResourceType,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class AllowBeforeDeny:
    """Asks first whether anything allows, and only then whether anything denies."""

    authorizer: Authorizer

    def authorize(self, asker: Asker, action: Action, acls: Acls) -> Verdict:
        """See Authorizer."""
        verdict = self.authorizer.authorize(asker, action, _WithoutDenials(acls))
        return verdict if verdict.allowed else self.authorizer.authorize(asker, action, acls)

    def authorize_by_resource_type(
        self, asker: Asker, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        """See Authorizer."""
        return self.authorizer.authorize_by_resource_type(asker, operation, resource_type, acls)


@dataclass(frozen=True, slots=True)
class _WithoutDenials:
    acls: Acls

    def matching(self, resource_type: ResourceType, name: str) -> Sequence[AccessControlEntry]:
        """See Acls."""
        found = self.acls.matching(resource_type, name)
        return [entry for entry in found if entry.permission == "ALLOW"]

    def of_type(
        self, resource_type: ResourceType
    ) -> Iterable[tuple[ResourcePattern, Sequence[AccessControlEntry]]]:
        """See Acls."""
        return self.acls.of_type(resource_type)
