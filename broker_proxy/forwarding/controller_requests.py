"""The requests that this broker itself makes to the active controller, such as AlterPartition.

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
from broker_proxy.client_request import ClientConnectionInfo, ClientRequest
from broker_proxy.forwarding.manager import Forwarded
from broker_proxy.forwarding.retry import NextStep
from cluster_model.client import Client

Forward = Callable[[ClientRequest, bytes], Awaitable[Forwarded]]  # ForwardingManager.forward
# Executes a write on a broker below KIP-590's bridge release, without the controller. Takes the
# request and the part of its message that this broker has not answered yet. Returns the response
# message and the zxid of the write. Raises the same errors as a LocalApi.
WriteDirectly = Callable[[ClientRequest, Any], Awaitable[tuple[Any, int]]]


def broker_request(
    request_id: str,
    header: RequestHeader,
    message: Any,
    client: Client,
    *,
    cause: ClientRequest | None = None,
    made_by_broker: bool = True,
    is_as_broker: bool = True,
) -> ClientRequest:
    """Return a request that this broker makes as `client`, ready to be forwarded.

    `cause` is the client's request that made the new request necessary. Without `made_by_broker`
    the controller treats the new request like a client's. `is_as_broker`: `client` is this broker.
    """
    return ClientRequest(
        request_id=request_id,
        header=header,
        header_bytes=encode_request_header(header),
        body=encode_request(header.api_key, header.api_version, message, client.dialect),
        connection=ClientConnectionInfo("", client) if cause is None else cause.connection,
        client=client,
        received_ns=0 if cause is None else cause.received_ns,
        made_by_broker=made_by_broker,
        is_as_broker=is_as_broker,
    )


def response_of(request: ClientRequest, forwarded: Forwarded) -> Any | None:
    """Return the controller's response to a request; None if there is none.

    Raises:
        WireError: the response is malformed.
    """
    if forwarded.step is not NextStep.RELAY or forwarded.response is None:
        return None
    key, version = request.header.api_key, request.header.api_version
    _, at = decode_response_header(key, version, forwarded.response)
    return decode_response(key, version, forwarded.response, at, dialect=request.client.dialect)


class ControllerRequests:
    """Sends requests as this broker. `forward` is ForwardingManager.forward."""

    def __init__(self, forward: Forward, broker: Client, request_prefix: str) -> None:
        self._forward = forward
        self._broker = broker
        self._prefix = request_prefix
        self._numbers = itertools.count(1)

    async def send(self, key: ApiKey, version: int, message: Any) -> Any | None:
        """Return the response; None if there is none, for example after request.timeout.ms.

        Raises:
            WireError: the response is malformed.
        """
        number = next(self._numbers)
        header = RequestHeader(key, version, number, self._broker.client_id)
        request_id = f"{self._prefix}.{key.name.lower()}.{number}"
        request = broker_request(request_id, header, message, self._broker)
        return response_of(request, await self._forward(request, request.body))
