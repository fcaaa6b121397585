"""An authorizer that lets brokers forward and denies everything else, imported by test nodes."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.authorizer import Acls, Action, Asker, Operation, ResourceType, Verdict


class BrokersOnly:
    """See bridgehead.authorizer."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Nothing is configured."""

    def authorize(self, asker: Asker, action: Action, acls: Acls) -> Verdict:
        """Allow what a broker needs to send an Envelope."""
        return Verdict(action.operation == "CLUSTER_ACTION")

    def authorize_by_resource_type(
        self, asker: Asker, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        """Allow nothing."""
        return Verdict(allowed=False)
