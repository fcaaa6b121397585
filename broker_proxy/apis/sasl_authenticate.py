"""SaslAuthenticate, key 36, versions 0 to 2: what it says where no login is going on.

See `sasl_handshake`.
"""

from __future__ import annotations

from typing import ClassVar

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from broker_proxy.apis.base import ClientRequest


class SaslAuthenticate:
    """See the module."""

    api_key: ClassVar[int] = 36

    async def answer(
        self, request: ClientRequest, message: SaslAuthenticateRequest
    ) -> SaslAuthenticateResponse:
        """Refuse; the bytes are looked at by nobody."""
        raise ApiError(
            ErrorCode.ILLEGAL_SASL_STATE,
            "SaslAuthenticate request received after successful authentication",
        )
