"""SaslHandshake and SaslAuthenticate outside of a login: always ILLEGAL_SASL_STATE.

They arrive here on a listener without SASL, or after the login has ended. During a login
`authentication.authenticator` handles them. The responses were recorded from Kafka.
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
