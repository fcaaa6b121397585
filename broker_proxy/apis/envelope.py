"""Envelope, key 58: one that a Kafka client sends to a listener.

Our brokers have a channel of their own for Envelopes. A client's own Envelope is treated as Kafka
treats it (kafka-semantics 1.5, whose numbers stand in the comments): it is closed without a word
but on the listener between brokers; there its sender needs CLUSTER_ACTION on Cluster, the broker
has to be the controller, and then what is inside is executed for the principal and host it names.
In the drafted dialect everybody is refused: KIP-590 §EnvelopeRequest Handling, whoever is no fellow
broker is CLUSTER_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import ClassVar, Protocol

from bridgehead.kafka_wire.codec import decode_request
from bridgehead.kafka_wire.errors import ApiError, ErrorCode
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from bridgehead.kafka_wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.request_checks import check_request
from broker_proxy.apis.base import AuthorizeFor, ClientRequest, ClosedUnansweredError
from broker_proxy.routing import SHIPPED, Route
from cluster_model.authorization import CLUSTER_NAME
from cluster_model.host_text import host_text
from cluster_model.principal import KafkaPrincipal
from envelope.principal_serde import PrincipalDeserializationError, PrincipalSerde

_DRAFTED = "drafted"


class Refused(Protocol):
    """Where refusals are counted and told."""

    def __call__(self, request: ClientRequest, error: ErrorCode, reason: str) -> None:
        """Note that an Envelope was refused, and why."""
        ...


class Envelope:
    """See the module."""

    api_key: ClassVar[int] = 58

    def __init__(
        self,
        *,
        between_brokers: str | None,
        authorize_for: AuthorizeFor,
        is_controller: Callable[[], bool],
        serde: PrincipalSerde,
        ask: Callable[[ClientRequest], Awaitable[bytes | None]],
        refused: Refused,
    ) -> None:
        """`between_brokers` is the one listener that takes Envelopes; None: there is none.

        `ask` executes what was inside and returns header and body of its answer.
        """
        self._between_brokers = between_brokers
        self._authorize_for = authorize_for
        self._is_controller = is_controller
        self._serde = serde
        self._ask = ask
        self._refused = refused

    async def answer(self, request: ClientRequest, message: EnvelopeRequest) -> EnvelopeResponse:
        """Open it, have it executed and wrap the answer; or refuse."""
        if request.connection.dialect == _DRAFTED:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        try:
            inner = self._open(request, message)
        except _RefusedError as refused:
            self._refused(request, refused.error, refused.reason)
            return EnvelopeResponse(error_code=refused.error)
        answer = await self._ask(inner)
        if answer is None:
            return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        return EnvelopeResponse(response_data=answer)

    def _open(self, request: ClientRequest, message: EnvelopeRequest) -> ClientRequest:
        listener = request.connection.listener_name
        if listener != self._between_brokers:  # 1, 2
            raise ClosedUnansweredError(f"an Envelope on listener {listener}")
        may = self._authorize_for(request)
        if not may("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):  # 3
            who = request.connection.principal
            raise _RefusedError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"{who} lacks CLUSTER_ACTION on Cluster"
            )
        if not self._is_controller():  # 4
            raise _RefusedError(ErrorCode.NOT_CONTROLLER, "not in office")
        try:
            principal = self._serde.deserialize(message.request_principal or b"")  # 5
        except PrincipalDeserializationError as wrong:
            raise _RefusedError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(wrong)) from None
        if len(message.client_host_address) not in (4, 16):  # 6
            raise _RefusedError(
                ErrorCode.INVALID_REQUEST, "the client's address has neither 4 nor 16 bytes"
            )
        header, at = _read_inner(message.request_data)
        return _as_of(request, principal, message, header, at)


class _RefusedError(Exception):
    def __init__(self, error: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.error = error
        self.reason = reason


def _read_inner(data: bytes) -> tuple[RequestHeader, int]:
    """Return the inner header, and where the body begins that was found to be good."""
    try:
        header, at = decode_request_header(data)  # 7
        if SHIPPED.get(header.api_key) is not Route.FORWARD:  # 8
            raise _RefusedError(
                ErrorCode.INVALID_REQUEST, f"API {header.api_key} is not eligible for forwarding"
            )
        request = decode_request(header.api_key, header.api_version, data, at)  # 9
        check_request(header.api_key, header.api_version, request)
    except WireError as wrong:
        raise _RefusedError(ErrorCode.UNSUPPORTED_VERSION, str(wrong)) from None
    return header, at


def _as_of(
    request: ClientRequest,
    principal: KafkaPrincipal,
    message: EnvelopeRequest,
    header: RequestHeader,
    at: int,
) -> ClientRequest:
    """Return the inner request as one of the client that the Envelope names (kafka-semantics 1.4).

    Listener and protocol are those of the Envelope's connection; the software is not known.
    """
    address = message.client_host_address
    return ClientRequest(
        request_id=f"{request.request_id}.inner",
        header=header,
        header_bytes=message.request_data[:at],
        body=message.request_data[at:],
        connection=dataclasses.replace(
            request.connection,
            principal=principal,
            client_address=address,
            client_host=host_text(address),
            software_name="",
            software_version="",
        ),
        received_ns=request.received_ns,
    )
