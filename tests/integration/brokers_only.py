"""An authorizer for test nodes. It allows only CLUSTER_ACTION, which brokers need to forward."""

from __future__ import annotations

from collections.abc import Mapping

from bridgehead.authorizer import Acls, Action, Operation, Requester, ResourceType, Verdict


class BrokersOnly:
    """See bridgehead.authorizer."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Ignore the properties."""

    def authorize(self, requester: Requester, action: Action, acls: Acls) -> Verdict:
        """Allow what a broker needs to send an Envelope."""
        return Verdict(action.operation == "CLUSTER_ACTION")

    def authorize_by_resource_type(
        self, requester: Requester, operation: Operation, resource_type: ResourceType, acls: Acls
    ) -> Verdict:
        """Allow nothing."""
        return Verdict(allowed=False)
