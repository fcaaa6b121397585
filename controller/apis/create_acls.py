"""CreateAcls, key 30, versions 0 to 3 (docs/kafka/acls.md#acl-apis). KIP-140, KIP-290.

The valid ACLs of one resource pattern are written together and fail together. Creating an ACL that
exists succeeds and writes nothing. As in Kafka, hosts and principal names are not validated; the
name of a resource may not be empty or contain `/`. If one ACL cannot be stored (`can_be_stored`),
every ACL of its pattern gets UNKNOWN_SERVER_ERROR.

Version notes:
    0: literal patterns only. 3: the same fields as 2; Kafka added it for the resource type USER,
    which every version accepts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from bridgehead.authorizer import ResourcePattern
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from cluster_model.acls.bindings import AclBinding
from cluster_model.acls.requests import (
    Creation,
    can_be_stored,
    has_filter_codes,
    parse_creation,
)
from cluster_model.image import MetadataImage
from controller.apis.acl_changes import pattern_element, whole_rejection, with_changes
from controller.apis.base import (
    AdminApi,
    ApiSettings,
    Decided,
    Decision,
    Outcome,
    RequestContext,
    Results,
)

_NOT_STORED = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)


@dataclass(frozen=True, slots=True)
class CreateAcls(AdminApi):
    """Decides CreateAcls requests. Without an authorizer every request is rejected."""

    has_authorizer: bool
    api_key: ClassVar[ApiKey] = ApiKey.CREATE_ACLS

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        return cls(settings.has_authorizer)

    def decide(
        self,
        context: RequestContext,
        request: CreateAclsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. An element is a pattern, or an invalid creation."""
        whole = whole_rejection(context, has_authorizer=self.has_authorizer)
        if whole is None and any(has_filter_codes(creation) for creation in request.creations):
            whole = _NOT_STORED
        decided: dict[str, Decided] = {}
        by_pattern: dict[ResourcePattern, list[AclBinding]] = {}
        for number, creation in enumerate(request.creations):
            read = _parsed(creation)
            element = _element(number, read)
            if whole is not None:
                decided[element] = Decided(element, whole)
            elif read.error is not None:
                outcome = Outcome(read.error.error, read.error.message)
                decided[element] = Decided(element, outcome)
            elif element not in committed and read.binding is not None:
                by_pattern.setdefault(read.binding.pattern, []).append(read.binding)
        for pattern, bindings in by_pattern.items():
            element = pattern_element(pattern)
            decided[element] = _added(element, pattern, bindings, image)
        return Decision(list(decided.values()))

    def response(
        self, context: RequestContext, request: CreateAclsRequest, results: Results
    ) -> CreateAclsResponse:
        """See AdminApi.response. The message of a success is empty, as in Kafka."""
        rows = []
        for number, creation in enumerate(request.creations):
            outcome = results.outcomes[_element(number, _parsed(creation))]
            text = "" if outcome.succeeded else outcome.message
            rows.append(AclCreationResult(outcome.error, text))
        return CreateAclsResponse(throttle_time_ms=0, results=rows)


def _parsed(creation: AclCreation) -> Creation:
    return parse_creation(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _element(number: int, read: Creation) -> str:
    if read.binding is None:
        return f"refused:{number}"
    return pattern_element(read.binding.pattern)


def _added(
    element: str, pattern: ResourcePattern, bindings: list[AclBinding], image: MetadataImage
) -> Decided:
    if not all(can_be_stored(binding) for binding in bindings):
        return Decided(element, _NOT_STORED)
    return with_changes(element, pattern, image, added=[binding.entry for binding in bindings])
