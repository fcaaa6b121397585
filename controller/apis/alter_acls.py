"""AlterAcls of KIP-4, key 10003, version 0: rules of many resources are deleted and added.

KIP-4 §Alter ACLs Request. Needs every right on the cluster. Of one resource the deletions come
first, so that what is added stays; it is written at once. A resource that comes twice is refused
with a single code; an action that makes no sense is refused alone. Patterns are literal: there
were no others. Deleting what is not there is a success, as adding what is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.error_responses import error_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.create_acls import AclCreation
from bridgehead.kafka_wire.messages.drafted.alter_acls import (
    ADD,
    DELETE,
    AclAction,
    AclResult,
    AlterAclsRequest,
    AlterAclsResponse,
    AlterResourceAcls,
    AlterResourceAclsResult,
)
from cluster_model.acl_requests import can_be_stored, read_creation
from cluster_model.acls import PATTERN_TYPE_CODES, AclBinding
from cluster_model.authorization import CLUSTER_NAME, CLUSTER_OPERATIONS, Authorize
from cluster_model.image import MetadataImage
from cluster_model.records import AclRecord
from controller.apis.base import DONE, Decided, Decision, Outcome, RequestContext


@dataclass(frozen=True, slots=True)
class AlterAcls:
    """See the module. Without an authorizer there are no ACLs."""

    has_authorizer: bool
    api_key: ClassVar[int] = 10003

    def decide(
        self,
        context: RequestContext,
        request: AlterAclsRequest,
        image: MetadataImage,
        settled: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. An element is a resource."""
        whole = None
        if not _may_do_all(context.authorize):
            whole = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        elif not self.has_authorizer:
            whole = Outcome(ErrorCode.SECURITY_DISABLED)
        decided = []
        for element, asked in _by_resource(request).items():
            if element in settled:
                continue
            if whole is not None:
                decided.append(Decided(element, whole))
            elif len(asked) > 1:
                decided.append(Decided(element, Outcome(ErrorCode.INVALID_REQUEST)))
            else:
                decided.append(_altered(element, asked[0], image))
        return Decision(decided)

    def conflict(self, element: str) -> Outcome:
        """Somebody else wrote the resource's rules at the same moment."""
        return Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

    def answer(
        self,
        context: RequestContext,
        request: AlterAclsRequest,
        outcomes: Mapping[str, Outcome],
        image: MetadataImage,
        unfinished: frozenset[str],
    ) -> AlterAclsResponse:
        """See AdminApi.answer. A resource that came twice stands there once, with one code."""
        responses = []
        for element, asked in _by_resource(request).items():
            resource, outcome = asked[0], outcomes[element]
            actions = resource.actions if len(asked) == 1 else resource.actions[:1]
            results = []
            for each in actions:
                error = outcome.error
                if outcome.succeeded:
                    _, error = _read(resource, each)
                results.append(AclResult(action=each.action, acl=each.acl, error_code=error))
            responses.append(
                AlterResourceAclsResult(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    results=results,
                )
            )
        return AlterAclsResponse(responses=responses)

    def refuse(
        self, request: AlterAclsRequest, version: int, error: ErrorCode, message: str | None
    ) -> Any:
        """See AdminApi.refuse."""
        return error_response(self.api_key, request, version, error, message)


def _may_do_all(authorize: Authorize) -> bool:
    """KIP-4's All on the cluster: whoever may do everything there."""
    return all(authorize(each, "CLUSTER", CLUSTER_NAME) for each in CLUSTER_OPERATIONS)


def _by_resource(request: AlterAclsRequest) -> dict[str, Sequence[AlterResourceAcls]]:
    found: dict[str, list[AlterResourceAcls]] = {}
    for each in request.requests:
        found.setdefault(f"{each.resource_type}:{each.resource_name}", []).append(each)
    return dict(found)


def _read(resource: AlterResourceAcls, asked: AclAction) -> tuple[AclBinding | None, ErrorCode]:
    """Judge one action by itself."""
    creation = AclCreation(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        resource_pattern_type=PATTERN_TYPE_CODES["LITERAL"],
        principal=asked.acl.acl_principal,
        host=asked.acl.acl_host,
        operation=asked.acl.acl_operation,
        permission_type=asked.acl.acl_permission_type,
    )
    binding, refusal = read_creation(creation)
    if binding is None or refusal is not None or asked.action not in (DELETE, ADD):
        return None, ErrorCode.INVALID_REQUEST
    if not can_be_stored(binding):
        return None, ErrorCode.UNKNOWN_SERVER_ERROR
    return binding, ErrorCode.NONE


def _altered(element: str, resource: AlterResourceAcls, image: MetadataImage) -> Decided:
    pattern: ResourcePattern | None = None
    deleted: set[AccessControlEntry] = set()
    added: list[AccessControlEntry] = []
    for asked in resource.actions:
        binding, _ = _read(resource, asked)
        if binding is None:
            continue
        pattern = binding.pattern
        if asked.action == DELETE:
            deleted.add(binding.entry)
        else:
            added.append(binding.entry)
    if pattern is None:
        return Decided(element, DONE)
    there = image.acls.entries(pattern)
    left = [entry for entry in there if entry not in deleted]
    wanted = tuple(dict.fromkeys((*left, *added)))
    if wanted == there:
        return Decided(element, DONE)
    return Decided(element, DONE, (AclRecord(pattern, wanted),))
