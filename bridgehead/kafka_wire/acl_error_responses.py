"""The answers of the ACL APIs when a whole request fails (kafka-semantics 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages import create_acls, delete_acls, describe_acls


def _describe_acls(_request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return describe_acls.DescribeAclsResponse(error_code=error, error_message=message)


def _create_acls(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    results = [create_acls.AclCreationResult(error, message) for _ in request.creations]
    return create_acls.CreateAclsResponse(results=results)


def _delete_acls(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    results = [delete_acls.DeleteAclsFilterResult(error, message, []) for _ in request.filters]
    return delete_acls.DeleteAclsResponse(filter_results=results)


ACL_ERROR_RESPONSES: Final[Mapping[int, Callable[[Any, int, ErrorCode, str | None], Any]]] = {
    29: _describe_acls,
    30: _create_acls,
    31: _delete_acls,
}
