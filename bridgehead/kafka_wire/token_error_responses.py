"""What `error_responses` says of the delegation token APIs (kafka-semantics 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)

_NO_TIME: Final = -1
_TYPE, _NAME = "User", "ANONYMOUS"


def _create(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return create_delegation_token.CreateDelegationTokenResponse(
        error_code=error,
        principal_type=_TYPE,
        principal_name=_NAME,
        token_requester_principal_type=_TYPE,
        token_requester_principal_name=_NAME,
        issue_timestamp_ms=_NO_TIME,
        expiry_timestamp_ms=_NO_TIME,
        max_timestamp_ms=_NO_TIME,
    )


def _renew(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return renew_delegation_token.RenewDelegationTokenResponse(error_code=error)


def _expire(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return expire_delegation_token.ExpireDelegationTokenResponse(error_code=error)


def _describe(request: Any, version: int, error: ErrorCode, message: str | None) -> Any:
    return describe_delegation_token.DescribeDelegationTokenResponse(error_code=error)


TOKEN_ERROR_RESPONSES: Final[Mapping[int, Callable[[Any, int, ErrorCode, str | None], Any]]] = {
    38: _create,
    39: _renew,
    40: _expire,
    41: _describe,
}
