"""SaslHandshake and SaslAuthenticate outside a login: on a listener without SASL, or after login.

Requests of a login are handled by `authentication.authenticator` (recorded live).
"""

from __future__ import annotations

from typing import Any, ClassVar

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from broker_proxy.apis.base import ClientRequest


class SaslHandshake:
    """Key 17."""

    api_key: ClassVar[ApiKey] = ApiKey.SASL_HANDSHAKE

    async def handle(self, request: ClientRequest, message: Any) -> Any:
        """Raise ILLEGAL_SASL_STATE."""
        raise ApiError(ErrorCode.ILLEGAL_SASL_STATE)


class SaslAuthenticate:
    """Key 36."""

    api_key: ClassVar[ApiKey] = ApiKey.SASL_AUTHENTICATE

    async def handle(self, request: ClientRequest, message: Any) -> Any:
        """Raise ILLEGAL_SASL_STATE."""
        raise ApiError(
            ErrorCode.ILLEGAL_SASL_STATE,
            "SaslAuthenticate request received after successful authentication",
        )
