"""Requests of this broker itself to the active controller, such as AlterPartition.

They are forwarded like clients' requests: each keeps its identity on every resend and is executed
once.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from broker_proxy.apis.base import ClientConnectionInfo, ClientRequest
from broker_proxy.forwarding import Forwarded
from broker_proxy.forwarding_retry import Step
from cluster_model.client import Client


class ControllerRequests:
    """Sends requests as this broker. `forward` is ForwardingManager.forward."""

    def __init__(
        self,
        forward: Callable[[ClientRequest, bytes], Awaitable[Forwarded]],
        broker: Client,
        request_prefix: str,
    ) -> None:
        self._forward = forward
        self._broker = broker
        self._prefix = request_prefix
        self._numbers = itertools.count(1)

    async def send(self, key: ApiKey, version: int, message: Any) -> Any | None:
        """Return the response; None if the controller did not answer within request.timeout.ms."""
        number = next(self._numbers)
        header = RequestHeader(key, version, number, self._broker.client_id)
        request = ClientRequest(
            request_id=f"{self._prefix}.{key.name.lower()}.{number}",
            header=header,
            header_bytes=encode_request_header(header),
            body=encode_request(key, version, message),
            connection=ClientConnectionInfo("", self._broker),
            client=self._broker,
            received_ns=0,
            made_by_broker=True,
        )
        forwarded = await self._forward(request, request.body)
        if forwarded.step is not Step.RELAY or forwarded.response is None:
            return None
        _, at = decode_response_header(key, version, forwarded.response)
        return decode_response(key, version, forwarded.response, at)
