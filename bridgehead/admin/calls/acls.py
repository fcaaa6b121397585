"""ACLs (KIP-140, KIP-290) and KIP-4's ListAcls and AlterAcls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, Final, NamedTuple

from bridgehead.admin.errors import AdminError
from bridgehead.admin.requests import Batch, BrokerResponse, Plan, Request, one
from bridgehead.admin.results import Try
from bridgehead.kafka_wire.acl_codes import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from bridgehead.kafka_wire.api_key import ApiKey


class AclBinding(NamedTuple):
    """One ACL. `principal` is text such as `User:alice`; the host `*` is every host."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType


class AclBindingFilter(NamedTuple):
    """Selects ACLs. None and ANY match everything."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY

    @property
    def needs_patterns(self) -> bool:
        """True if the filter needs version 1 of the API, because version 0 has no pattern types."""
        return self.pattern_type not in (PatternType.ANY, PatternType.LITERAL)


EVERY_ACL: Final = AclBindingFilter()


class AclActionType(IntEnum):
    """What AlterAcls does with an ACL (KIP-4)."""

    DELETE = 0
    ADD = 1


class AclAction(NamedTuple):
    """An ACL to add to a resource, or to delete from it (KIP-4)."""

    action: AclActionType
    principal: str
    permission_type: AclPermissionType
    host: str
    operation: AclOperation


_PATTERNS = "a pattern type"


def describe_acls(filter: AclBindingFilter = EVERY_ACL) -> Plan[list[AclBinding]]:
    """Return the ACLs that match the filter.

    Raises:
        KafkaError: SECURITY_DISABLED if the brokers have no authorizer.
    """
    from bridgehead.kafka_wire.messages.describe_acls import DescribeAclsRequest

    message = DescribeAclsRequest(*filter)
    least = int(filter.needs_patterns)
    response = yield from one(
        Request(
            ApiKey.DESCRIBE_ACLS, lambda _: message, min_version=least, because=_PATTERNS * least
        )
    )
    response.check(response.message.error_code, response.message.error_message)
    return [
        _binding(resource.resource_type, resource.resource_name, resource.pattern_type, acl)
        for resource in response.message.resources
        for acl in resource.acls
    ]


def create_acls(bindings: Collection[AclBinding]) -> Plan[dict[AclBinding, AdminError | None]]:
    """Create ACLs; return the error of each ACL. Creating an ACL that exists is a success."""
    from bridgehead.kafka_wire.messages.create_acls import AclCreation, CreateAclsRequest

    def request(left: Mapping[AclBinding, AclBinding]) -> Request:
        prefixed = any(binding.pattern_type is not PatternType.LITERAL for binding in left)
        message = CreateAclsRequest([AclCreation(*binding) for binding in left])
        sent[:] = left
        return Request(
            ApiKey.CREATE_ACLS,
            lambda _: message,
            min_version=int(prefixed),
            because=_PATTERNS * prefixed,
        )

    def results(response: BrokerResponse) -> Iterator[tuple[AclBinding, Try[None]]]:
        for binding, result in zip(sent, response.message.results, strict=False):
            yield binding, response.done(result)

    sent: list[AclBinding] = []  # The results have no keys; they are in the order of the request.
    return (yield from Batch({binding: binding for binding in bindings}, request, results).errors())


def delete_acls(
    filters: Collection[AclBindingFilter],
) -> Plan[dict[AclBindingFilter, Try[list[Try[AclBinding]]]]]:
    """Delete the ACLs that match any of the filters; return the deleted ACLs of each filter."""
    from bridgehead.kafka_wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

    def request(left: Mapping[AclBindingFilter, AclBindingFilter]) -> Request:
        message = DeleteAclsRequest([DeleteAclsFilter(*binding_filter) for binding_filter in left])
        sent[:] = left
        least = int(any(binding_filter.needs_patterns for binding_filter in left))
        return Request(
            ApiKey.DELETE_ACLS, lambda _: message, min_version=least, because=_PATTERNS * least
        )

    def deleted(response: BrokerResponse, result: Any) -> list[Try[AclBinding]]:
        return [response.result(acl, _matching) for acl in result.matching_acls]

    def results(
        response: BrokerResponse,
    ) -> Iterator[tuple[AclBindingFilter, Try[list[Try[AclBinding]]]]]:
        for key, result in zip(sent, response.message.filter_results, strict=False):
            yield key, response.result(result, partial(deleted, response))

    sent: list[AclBindingFilter] = []
    return (yield from Batch({filter_: filter_ for filter_ in filters}, request, results).run())


def list_acls(
    principal: str | None = None, resource_type: ResourceType | None = None, resource_name: str = ""
) -> Plan[list[AclBinding]]:
    """Return the ACLs of a principal on a resource; None means any (KIP-4 ListAcls).

    Raises:
        UnsupportedVersionError: the listener's dialect is not `drafted`.
    """
    from bridgehead.kafka_wire.messages.drafted.list_acls import ListAclsRequest

    code = -1 if resource_type is None else resource_type
    message = ListAclsRequest(principal, code, resource_name)
    response = yield from one(Request(ApiKey.LIST_ACLS, lambda _: message, dialect="drafted"))
    response.check(response.message.error_code)
    return [
        _drafted_binding(resource, acl)
        for resource in response.message.responses
        for acl in resource.acls
    ]


def alter_acls(
    actions: Mapping[tuple[ResourceType, str], Sequence[AclAction]],
) -> Plan[dict[tuple[ResourceType, str], dict[AclAction, AdminError | None]]]:
    """Add and delete ACLs, deletions first; return the error of each action (KIP-4 AlterAcls).

    Raises:
        UnsupportedVersionError: the listener's dialect is not `drafted`.
    """
    from bridgehead.kafka_wire.messages.drafted import alter_acls as wire
    from bridgehead.kafka_wire.messages.drafted.list_acls import Acl

    def request(left: Mapping[tuple[ResourceType, str], Sequence[AclAction]]) -> Request:
        message = wire.AlterAclsRequest(
            [
                wire.AlterResourceAcls(
                    *resource,
                    [wire.AclAction(action.action, Acl(*action[1:])) for action in wanted],
                )
                for resource, wanted in left.items()
            ]
        )
        return Request(ApiKey.ALTER_ACLS, lambda _: message, dialect="drafted")

    def results(
        response: BrokerResponse,
    ) -> Iterator[tuple[Any, Try[dict[AclAction, AdminError | None]]]]:
        for row in response.message.responses:
            errors: dict[AclAction, AdminError | None] = {
                _action(result): response.error(result.error_code) for result in row.results
            }
            yield (ResourceType(row.resource_type), row.resource_name), Try.new_value(errors)

    outcomes = yield from Batch(actions, request, results).run()
    return {
        resource: dict.fromkeys(actions[resource], result.error) if result.error else result.get()
        for resource, result in outcomes.items()
    }


def _action(result: Any) -> AclAction:
    acl = result.acl
    return AclAction(
        AclActionType(result.action),
        acl.acl_principal,
        AclPermissionType(acl.acl_permission_type),
        acl.acl_host,
        AclOperation(acl.acl_operation),
    )


def _drafted_binding(resource: Any, acl: Any) -> AclBinding:
    return AclBinding(
        ResourceType(resource.resource_type),
        resource.resource_name,
        PatternType.LITERAL,
        acl.acl_principal,
        acl.acl_host,
        AclOperation(acl.acl_operation),
        AclPermissionType(acl.acl_permission_type),
    )


def _matching(acl: Any) -> AclBinding:
    return _binding(acl.resource_type, acl.resource_name, acl.pattern_type, acl)


def _binding(resource_type: int, name: str, pattern_type: int, acl: Any) -> AclBinding:
    return AclBinding(
        ResourceType(resource_type),
        name,
        PatternType(pattern_type),
        acl.principal,
        acl.host,
        AclOperation(acl.operation),
        AclPermissionType(acl.permission_type),
    )
