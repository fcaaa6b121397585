"""DescribeAcls, key 29, versions 0 to 3 (docs/kafka/acls.md#acl-apis). KIP-140, KIP-290.

The answer comes from this broker's ACLs. They may be slightly older than the controller's.

Version notes:
    0: literal patterns only, in the filter and in the response.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from bridgehead.slices import sliced
from broker_proxy.client_request import AuthorizeFor, ClientRequest
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.acls.bindings import AclSet
from cluster_model.acls.codes import (
    OPERATION_CODES,
    PATTERN_TYPE_CODES,
    PERMISSION_CODES,
    RESOURCE_TYPE_CODES,
)
from cluster_model.acls.requests import NO_AUTHORIZER_ON_BROKER, parse_filter


@dataclass(frozen=True, slots=True)
class DescribeAcls:
    """Answers DescribeAcls requests. Without an authorizer the answer is SECURITY_DISABLED."""

    acls: Callable[[], AclSet]
    authorize_for: AuthorizeFor
    has_authorizer: bool
    denial: Callable[[ClientRequest], str] | None = None  # for the quirk denial-dumps-request
    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_ACLS

    async def handle(self, request: ClientRequest, message: DescribeAclsRequest) -> Any:
        """Return the matching ACLs, grouped by pattern. No match gives an empty list, no error."""
        if not self.authorize_for(request)("DESCRIBE", "CLUSTER", CLUSTER_NAME):
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            # With the quirk, the text shows Kafka's Request object.
            text = self.denial(request) if self.denial is not None else error.default_text
            raise ApiError(error, text)
        if not self.has_authorizer:
            raise ApiError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER_ON_BROKER)
        wanted = parse_filter(message)
        resources = []
        async for pattern, entries in sliced(wanted.patterns(self.acls())):
            matching = [
                AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=OPERATION_CODES[entry.operation],
                    permission_type=PERMISSION_CODES[entry.permission],
                )
                for entry in entries
                if wanted.matches_entry(entry)
            ]
            if matching:
                resources.append(
                    DescribeAclsResource(
                        resource_type=RESOURCE_TYPE_CODES[pattern.resource_type],
                        resource_name=pattern.name,
                        pattern_type=PATTERN_TYPE_CODES[pattern.pattern_type],
                        acls=matching,
                    )
                )
        return DescribeAclsResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, error_message="", resources=resources
        )
