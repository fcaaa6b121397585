"""What `error_responses` says of the APIs about groups, transactions and their coordinators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages import (
    describe_groups,
    find_coordinator,
    list_groups,
)


def _find_coordinator(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    nobody: dict[str, Any] = {
        "error_code": error,
        "error_message": error.default_text,
        "node_id": -1,
        "port": -1,
    }
    if version < 4:
        return find_coordinator.FindCoordinatorResponse(**nobody)
    return find_coordinator.FindCoordinatorResponse(
        coordinators=[
            find_coordinator.Coordinator(key=key, **nobody) for key in request.coordinator_keys
        ]
    )


def _describe_groups(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return describe_groups.DescribeGroupsResponse(
        groups=[
            describe_groups.DescribedGroup(error_code=error, group_id=group_id)
            for group_id in request.groups
        ]
    )


def _list_groups(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return list_groups.ListGroupsResponse(error_code=error)


GROUP_ERROR_RESPONSES: Final[Mapping[int, Callable[[Any, int, ErrorCode, str | None], Any]]] = {
    10: _find_coordinator,
    15: _describe_groups,
    16: _list_groups,
}
