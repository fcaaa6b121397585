"""ListAcls of KIP-4, key 10002, version 0: the rules of a principal, of a resource, or all rules.

See KIP-4 §List ACLs Request. Every broker answers from its own copy of the ACLs. A principal may
list its own ALLOW rules without any permission. Any other request needs permission for every
operation on Cluster. Only literal patterns are listed, because KIP-4 predates the other pattern
types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.drafted.list_acls import (
    Acl,
    ListAclsRequest,
    ListAclsResponse,
    ResourceAcls,
)
from bridgehead.slices import sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from cluster_model.acls.authorization import CLUSTER_NAME, CLUSTER_OPERATIONS
from cluster_model.acls.bindings import AclSet
from cluster_model.acls.codes import OPERATION_CODES, PERMISSION_CODES, RESOURCE_TYPE_CODES

_ANY: Final = -1


@dataclass(frozen=True, slots=True)
class ListAcls:
    """Answers ListAcls requests. Without an authorizer the answer is SECURITY_DISABLED."""

    acls: Callable[[], AclSet]
    authorize_for: AuthorizeFor
    has_authorizer: bool
    api_key: ClassVar[ApiKey] = ApiKey.LIST_ACLS

    async def handle(self, request: ClientRequest, message: ListAclsRequest) -> Any:
        """Return the matching rules by resource. No match gives an empty list, no error."""
        may_see_all = self._may_see_all(request)
        if not may_see_all and message.principal != str(request.client.principal):
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if not self.has_authorizer:
            raise ApiError(ErrorCode.SECURITY_DISABLED)
        responses = []
        async for pattern, entries in sliced(self.acls()):
            code = RESOURCE_TYPE_CODES[pattern.resource_type]
            is_requested = message.resource_type == _ANY or (
                (message.resource_type, message.resource_name) == (code, pattern.name)
            )
            if pattern.pattern_type != "LITERAL" or not is_requested:
                continue
            listed = [
                Acl(
                    acl_principal=entry.principal,
                    acl_permission_type=PERMISSION_CODES[entry.permission],
                    acl_host=entry.host,
                    acl_operation=OPERATION_CODES[entry.operation],
                )
                for entry in entries
                if message.principal in (None, entry.principal)
                and (may_see_all or entry.permission == "ALLOW")
            ]
            if listed:
                responses.append(
                    ResourceAcls(resource_type=code, resource_name=pattern.name, acls=listed)
                )
        return ListAclsResponse(responses=responses, error_code=ErrorCode.NONE)

    def _may_see_all(self, request: ClientRequest) -> bool:
        """True if the client may perform every operation on Cluster (KIP-4: All)."""
        authorize = self.authorize_for(request)
        return all(
            authorize(operation, "CLUSTER", CLUSTER_NAME, log_if_denied=False)
            for operation in CLUSTER_OPERATIONS
        )
