"""Envelope, key 58, sent by a Kafka client to a listener.

Our brokers use the gRPC channel instead. A client's Envelope is handled as in Kafka. On the
control-plane listener or, without one, the inter-broker listener, the sender needs CLUSTER_ACTION
on Cluster, and this broker must be the active controller. It then executes the inner request for
the principal and host in the Envelope. On any other listener the broker closes the connection. In
the drafted dialect only brokers may send an Envelope, so a client gets CLUSTER_AUTHORIZATION_FAILED
(KIP-590 §EnvelopeRequest Handling). The numbers in comments refer to the list in
docs/kafka/forwarding.md#checks-on-the-controller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import ClassVar, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import API_SPECS, Route
from bridgehead.kafka_wire.codec import decode_request
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from bridgehead.kafka_wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from broker_proxy.client_request import AuthorizeFor, ClientRequest, ClosedWithoutResponseError
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.host_text import host_text
from cluster_model.principal import KafkaPrincipal
from envelope.principal_serde import PrincipalDeserializationError, PrincipalSerde

_DRAFTED = "drafted"


class Rejected(Protocol):
    """Counts and logs rejected Envelopes."""

    def __call__(self, request: ClientRequest, error: ErrorCode, reason: str) -> None:
        """Record a rejected Envelope and the reason."""


class EnvelopeApi:
    """Answers Envelope requests."""

    api_key: ClassVar[ApiKey] = ApiKey.ENVELOPE

    def __init__(
        self,
        *,
        between_brokers: str | None,
        authorize_for: AuthorizeFor,
        is_controller: Callable[[], bool],
        serde: PrincipalSerde,
        execute: Callable[[ClientRequest], Awaitable[bytes | None]],
        rejected: Rejected,
    ) -> None:
        """`between_brokers` is the only listener that accepts Envelopes; None: no listener does.

        `execute` runs the inner request. It returns the response with its header, or None if the
        broker would disconnect a client that sent the inner request itself.
        """
        self._between_brokers = between_brokers
        self._authorize_for = authorize_for
        self._is_controller = is_controller
        self._serde = serde
        self._execute = execute
        self._rejected = rejected

    async def handle(self, request: ClientRequest, message: EnvelopeRequest) -> EnvelopeResponse:
        """Execute the inner request and wrap its response."""
        if request.client.dialect == _DRAFTED:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        try:
            inner = self._open(request, message)
        except _RejectedError as rejection:
            self._rejected(request, rejection.error, rejection.reason)
            return EnvelopeResponse(error_code=rejection.error)
        response = await self._execute(inner)
        if response is None:
            return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        return EnvelopeResponse(response_data=response)

    def _open(self, request: ClientRequest, message: EnvelopeRequest) -> ClientRequest:
        listener = request.client.listener_name
        if listener != self._between_brokers:  # 1, 2
            raise ClosedWithoutResponseError(f"an Envelope on listener {listener}")
        authorize = self._authorize_for(request)
        if not authorize("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):  # 3
            sender = request.client.principal
            raise _RejectedError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{sender} lacks CLUSTER_ACTION on Cluster"
            )
        if not self._is_controller():  # 4
            raise _RejectedError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
        try:
            principal = self._serde.deserialize(message.request_principal or b"")  # 5
        except PrincipalDeserializationError as error:
            raise _RejectedError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
        if len(message.client_host_address) not in (4, 16):  # 6
            raise _RejectedError(
                ErrorCode.INVALID_REQUEST, "the client's address has neither 4 nor 16 bytes"
            )
        header, at = _read_inner(message.request_data)
        return _inner_request(request, principal, message, header, at)


class _RejectedError(Exception):
    def __init__(self, error: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.error = error
        self.reason = reason


def _read_inner(data: bytes) -> tuple[RequestHeader, int]:
    """Check the inner request; return its header and the offset of its body."""
    try:
        header, at = decode_request_header(data)  # 7
        spec = API_SPECS.get(header.api_key)
        if spec is None or spec.route is not Route.FORWARD:  # 8
            raise _RejectedError(
                ErrorCode.INVALID_REQUEST, f"API {header.api_key} is not eligible for forwarding"
            )
        request = decode_request(header.api_key, header.api_version, data, at)  # 9
        check_request(header.api_key, header.api_version, request)
    except WireError as error:
        raise _RejectedError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
    return header, at


def _inner_request(
    request: ClientRequest,
    principal: KafkaPrincipal,
    message: EnvelopeRequest,
    header: RequestHeader,
    at: int,
) -> ClientRequest:
    """Return the inner request, for the client in the Envelope (docs/kafka/forwarding.md).

    It has the listener and security protocol of the Envelope's connection. The client's software
    name is unknown.
    """
    client = dataclasses.replace(
        request.client,
        principal=principal,
        host=host_text(message.client_host_address),
        client_id=header.client_id,
        software_name="",
        software_version="",
    )
    return ClientRequest(
        request_id=f"{request.request_id}.inner",
        header=header,
        header_bytes=message.request_data[:at],
        body=message.request_data[at:],
        connection=request.connection,
        client=client,
        received_ns=request.received_ns,
    )
