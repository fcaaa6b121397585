"""Envelope, key 58, sent by a Kafka client to a listener.

Our brokers use the gRPC channel instead. The sender of an Envelope needs CLUSTER_ACTION on Cluster,
and this broker must be the active controller. It then executes the inner request for the client in
the Envelope. In the shipped dialect Envelopes are handled as in Kafka: on the control-plane
listener or, without one, on the inter-broker listener; any other listener closes the connection. In
the drafted dialect the right is the only condition (KIP-590 §EnvelopeRequest Handling). The numbers
in comments refer to the list in docs/kafka/forwarding.md#checks-on-the-controller.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, NamedTuple, Protocol

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import SPECS, Route
from bridgehead.kafka_wire.codec import decode_request
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
)
from bridgehead.kafka_wire.messages import envelope as shipped
from bridgehead.kafka_wire.messages.drafted import envelope as drafted
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from broker_proxy.client_request import AuthorizeFor, ClientRequest, ClosedWithoutResponseError
from cluster_model.acls.authorization import CLUSTER_NAME
from cluster_model.host_text import host_text
from cluster_model.principal import KafkaPrincipal
from envelope.principal_serde import PrincipalDeserializationError, PrincipalSerde

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NAME_CHARACTERS_MAX: Final = 300  # a listener's name must fit into a log line
_ROUTES: Final = {
    "shipped": (Route.FORWARD,),
    "drafted": (Route.FORWARD, Route.ON_CONTROLLER),
}
_Request = shipped.EnvelopeRequest | drafted.EnvelopeRequest
_Response = shipped.EnvelopeResponse | drafted.EnvelopeResponse


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

    async def handle(self, request: ClientRequest, message: _Request) -> _Response:
        """Execute the inner request and wrap its response."""
        is_drafted = isinstance(message, drafted.EnvelopeRequest)
        try:
            inner = self._open(request, message)
        except _RejectedError as rejection:
            self._rejected(request, rejection.error, rejection.reason)
            return _failure(rejection.error, is_drafted=is_drafted)
        response = await self._execute(inner)
        if response is None:
            return _failure(ErrorCode.UNSUPPORTED_VERSION, is_drafted=is_drafted)
        if not is_drafted:
            return shipped.EnvelopeResponse(response_data=response)
        _, at = decode_response_header(inner.header.api_key, inner.header.api_version, response)
        return drafted.EnvelopeResponse(response[:at], response[at:])

    def _open(self, request: ClientRequest, message: _Request) -> ClientRequest:
        listener = request.client.listener_name
        is_shipped = isinstance(message, shipped.EnvelopeRequest)
        if is_shipped and listener != self._between_brokers:  # 1, 2
            raise ClosedWithoutResponseError(f"an Envelope on listener {listener}")
        authorize = self._authorize_for(request)
        if not authorize("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):  # 3
            sender = request.client.principal
            raise _RejectedError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{sender} lacks CLUSTER_ACTION on Cluster"
            )
        if not self._is_controller():  # 4
            raise _RejectedError(ErrorCode.NOT_CONTROLLER, "this node is not the active controller")
        if isinstance(message, drafted.EnvelopeRequest):
            serialized = message.principal_info
        else:
            serialized = message.request_principal or b""
        try:
            principal = self._serde.deserialize(serialized)  # 5
        except PrincipalDeserializationError as error:
            raise _RejectedError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
        return _inner_request(request, principal, _content(request, message))


class _RejectedError(Exception):
    def __init__(self, error: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.error = error
        self.reason = reason


class _Content(NamedTuple):
    """The inner request of an Envelope, and where its client is connected."""

    host: str
    listener_name: str
    security_protocol: str
    header: RequestHeader
    header_bytes: bytes
    body: bytes


def _failure(error: ErrorCode, *, is_drafted: bool) -> _Response:
    response = drafted.EnvelopeResponse if is_drafted else shipped.EnvelopeResponse
    return response(error_code=error)


def _content(request: ClientRequest, message: _Request) -> _Content:
    """Check the fields of an Envelope, and return them.

    In the shipped dialect an Envelope has no listener and no security protocol, so the request has
    those of the Envelope's connection (docs/kafka/forwarding.md).
    """
    if isinstance(message, drafted.EnvelopeRequest):
        host = _checked_host(message)
        header, _ = _read_inner("drafted", message.request_header, message.request_data)
        return _Content(
            host,
            message.listener_name,
            message.security_protocol,
            header,
            message.request_header,
            message.request_data,
        )
    if len(message.client_host_address) not in (4, 16):  # 6
        raise _RejectedError(
            ErrorCode.INVALID_REQUEST, "the client's address has neither 4 nor 16 bytes"
        )
    data = message.request_data
    header, at = _read_inner("shipped", data)
    return _Content(
        host_text(message.client_host_address),
        request.client.listener_name,
        request.client.security_protocol,
        header,
        data[:at],
        data[at:],
    )


def _checked_host(message: drafted.EnvelopeRequest) -> str:
    """Check what the sender says about its client's connection; return the client's address."""
    listener, reason = message.listener_name, ""
    if len(listener) > _NAME_CHARACTERS_MAX or not listener.isprintable():
        reason = "the listener's name is too long or not printable"
    elif message.security_protocol not in _PROTOCOLS:
        reason = f"the security protocol is none of {', '.join(_PROTOCOLS)}"
    else:
        try:
            return host_text(ipaddress.ip_address(message.client_host_ip).packed)  # 6
        except ValueError:
            reason = "the client's address is not an IP address"
    raise _RejectedError(ErrorCode.INVALID_REQUEST, reason)


def _read_inner(
    dialect: str, header_bytes: bytes, body: bytes | None = None
) -> tuple[RequestHeader, int]:
    """Check the inner request; return its header and the offset of the bytes after it.

    If `body` is None, it follows the header.
    """
    try:
        header, at = decode_request_header(header_bytes, dialect)  # 7
        spec = SPECS[dialect].get(header.api_key)
        if spec is None or spec.route not in _ROUTES[dialect]:  # 8
            raise _RejectedError(
                ErrorCode.INVALID_REQUEST, f"API {header.api_key} is not eligible for forwarding"
            )
        data, begin = (header_bytes, at) if body is None else (body, 0)
        request = decode_request(header.api_key, header.api_version, data, begin, dialect)  # 9
        check_request(header.api_key, header.api_version, request)
    except WireError as error:
        raise _RejectedError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from None
    return header, at


def _inner_request(
    request: ClientRequest, principal: KafkaPrincipal, content: _Content
) -> ClientRequest:
    """Return the inner request, for the client in the Envelope. Its software name is unknown."""
    client = dataclasses.replace(
        request.client,
        principal=principal,
        host=content.host,
        listener_name=content.listener_name,
        security_protocol=content.security_protocol,
        client_id=content.header.client_id,
        software_name="",
        software_version="",
    )
    return ClientRequest(
        request_id=f"{request.request_id}.inner",
        header=content.header,
        header_bytes=content.header_bytes,
        body=content.body,
        connection=request.connection,
        client=client,
        received_ns=request.received_ns,
    )
