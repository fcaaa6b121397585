"""SaslHandshake, key 17, versions 0 and 1: what it says where no login is going on.

A login never comes here (`authentication.authenticator`): on a listener without SASL, and after a
login, there is nothing to agree on (recorded live).
"""

from __future__ import annotations

from typing import ClassVar

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from broker_proxy.apis.base import ClientRequest


class SaslHandshake:
    """See the module."""

    api_key: ClassVar[int] = 17

    async def answer(
        self, request: ClientRequest, message: SaslHandshakeRequest
    ) -> SaslHandshakeResponse:
        """Refuse, and name no mechanism."""
        raise ApiError(ErrorCode.ILLEGAL_SASL_STATE)
