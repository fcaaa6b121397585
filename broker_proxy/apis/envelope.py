"""Envelope, key 58, on a client listener of the drafted dialect: always refused.

KIP-590 §EnvelopeRequest Handling: whoever is no fellow broker is CLUSTER_AUTHORIZATION_FAILED. Our
brokers have a channel of their own for Envelopes, so nobody who sends one here is a broker.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from broker_proxy.apis.base import ClientRequest


class Envelope:
    """See the module."""

    api_key: ClassVar[int] = 58

    async def answer(self, request: ClientRequest, message: Any) -> Any:
        """Refuse. What is in the Envelope is not looked at."""
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
