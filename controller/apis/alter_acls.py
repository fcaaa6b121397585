"""AlterAcls of KIP-4, key 10003, version 0: deletes and adds ACLs of many resources.

KIP-4 §Alter ACLs Request. The client needs the right to every operation on Cluster. The deletions
of a resource are applied before its additions, all in one write. A resource that occurs twice is
rejected. An invalid action does not fail the other actions. All patterns are literal. Deleting a
missing ACL or adding an existing one is no error. If the authorizer fails, every action of the
request gets UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from bridgehead.authorizer import AccessControlEntry, ResourcePattern
from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
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
from cluster_model.acls.authorization import (
    CLUSTER_NAME,
    CLUSTER_OPERATIONS,
    Authorize,
    AuthorizerFailedError,
)
from cluster_model.acls.bindings import AclBinding
from cluster_model.acls.codes import PATTERN_TYPE_CODES
from cluster_model.acls.requests import can_be_stored, parse_creation
from cluster_model.image import MetadataImage
from controller.apis.acl_changes import with_changes
from controller.apis.base import (
    DONE,
    AdminApi,
    ApiSettings,
    Decided,
    Decision,
    Outcome,
    RequestContext,
    Results,
)

_FOUND_TWICE: Final = Outcome(
    ErrorCode.INVALID_REQUEST, "Found multiple entries for this resource."
)


@dataclass(frozen=True, slots=True)
class AlterAcls(AdminApi):
    """Decides AlterAcls requests. Without an authorizer every request is rejected."""

    has_authorizer: bool
    api_key: ClassVar[ApiKey] = ApiKey.ALTER_ACLS

    @classmethod
    def build(cls, settings: ApiSettings) -> Self:
        return cls(settings.has_authorizer)

    def decide(
        self,
        context: RequestContext,
        request: AlterAclsRequest,
        image: MetadataImage,
        committed: Mapping[str, Outcome],
    ) -> Decision:
        """See AdminApi.decide. An element is a resource."""
        whole = None
        try:
            may_alter = _has_all_rights(context.authorize)
        except AuthorizerFailedError:
            whole, may_alter = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR), True
        if not may_alter:
            whole = Outcome(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        elif not self.has_authorizer:
            whole = Outcome(ErrorCode.SECURITY_DISABLED)
        decided = []
        for element, same in _by_resource(request).items():
            if element in committed:
                continue
            if whole is not None:
                decided.append(Decided(element, whole))
            elif len(same) > 1:
                decided.append(Decided(element, _FOUND_TWICE))
            else:
                decided.append(_altered(element, same[0], image))
        return Decision(decided)

    def response(
        self, context: RequestContext, request: AlterAclsRequest, results: Results
    ) -> AlterAclsResponse:
        """See AdminApi.response.

        A duplicate resource is listed once, with the first action of its first entry.
        """
        responses = []
        for element, same in _by_resource(request).items():
            resource, outcome = same[0], results.outcomes[element]
            actions = resource.actions if len(same) == 1 else resource.actions[:1]
            rows = []
            for action in actions:
                error = outcome.error
                if outcome.succeeded:
                    _, error = _read(resource, action)
                rows.append(AclResult(action=action.action, acl=action.acl, error_code=error))
            responses.append(
                AlterResourceAclsResult(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    results=rows,
                )
            )
        return AlterAclsResponse(responses=responses)


def _has_all_rights(authorize: Authorize) -> bool:
    """True if the client may perform every operation on Cluster. Raises AuthorizerFailedError."""
    return all(
        authorize(operation, "CLUSTER", CLUSTER_NAME, may_raise=True)
        for operation in CLUSTER_OPERATIONS
    )


def _by_resource(request: AlterAclsRequest) -> dict[str, Sequence[AlterResourceAcls]]:
    alterations: dict[str, list[AlterResourceAcls]] = {}
    for alteration in request.requests:
        alterations.setdefault(f"{alteration.resource_type}:{alteration.resource_name}", []).append(
            alteration
        )
    return dict(alterations)


def _read(resource: AlterResourceAcls, action: AclAction) -> tuple[AclBinding | None, ErrorCode]:
    """Return the ACL of one action and NONE; for an invalid action, None and the error."""
    acl = action.acl
    binding, rejection = parse_creation(
        resource.resource_type,
        resource.resource_name,
        PATTERN_TYPE_CODES["LITERAL"],
        acl.acl_principal,
        acl.acl_host,
        acl.acl_operation,
        acl.acl_permission_type,
    )
    if binding is None or rejection is not None or action.action not in (DELETE, ADD):
        return None, ErrorCode.INVALID_REQUEST
    if not can_be_stored(binding):
        return None, ErrorCode.UNKNOWN_SERVER_ERROR
    return binding, ErrorCode.NONE


def _altered(element: str, resource: AlterResourceAcls, image: MetadataImage) -> Decided:
    pattern: ResourcePattern | None = None
    deleted: set[AccessControlEntry] = set()
    added: list[AccessControlEntry] = []
    for action in resource.actions:
        binding, _ = _read(resource, action)
        if binding is None:
            continue
        pattern = binding.pattern
        if action.action == DELETE:
            deleted.add(binding.entry)
        else:
            added.append(binding.entry)
    if pattern is None:
        return Decided(element, DONE)
    return with_changes(element, pattern, image, deleted=deleted, added=added)
