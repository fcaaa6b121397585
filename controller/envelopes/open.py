"""The checks of an Envelope, in Kafka's order. KIP-590 §EnvelopeRequest Handling.

The comments number the checks as docs/kafka/forwarding.md#checks-on-the-controller does. An
Envelope's response has no error message, so the reason of a failed check is only in the
controller's event log and node log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bridgehead.kafka_wire.apis import SPECS, Route
from bridgehead.kafka_wire.codec import decode_request
from bridgehead.kafka_wire.errors import ErrorCode, WireError
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from bridgehead.kafka_wire.request_checks import check_request
from cluster_model.client import Client
from cluster_model.host_text import host_text
from controller.apis.base import AdminApi
from controller.services import Sender
from envelope.messages import Envelope, RequestIdentity
from envelope.principal_serde import PrincipalDeserializationError, PrincipalSerde


@dataclass(frozen=True, slots=True)
class OpenedEnvelope:
    """The request of an Envelope that passed every check, and its client."""

    header: RequestHeader
    client: Client
    api: AdminApi
    request: Any


@dataclass(frozen=True, slots=True)
class RejectedEnvelope:
    """An Envelope that failed a check. `reason` is for the log."""

    error: ErrorCode
    reason: str


OpenEnvelope = Callable[[Envelope, Sender], OpenedEnvelope | RejectedEnvelope]


def check_sender(
    sender: Sender, identity: RequestIdentity, is_authorized: Callable[[Sender], bool]
) -> RejectedEnvelope | None:
    """Make check 3: the sender needs CLUSTER_ACTION on Cluster, and must use its own identity.

    With another broker's identity it could read that broker's replies or suppress its requests.
    """
    error, hello = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, sender.hello
    if not is_authorized(sender):
        return RejectedEnvelope(error, f"{sender.principal} lacks CLUSTER_ACTION on Cluster")
    if identity[:2] != (hello.broker_id, hello.incarnation):
        reason = f"it has the identity of broker {identity.broker_id}, not {hello.broker_id}"
        if identity.broker_id == hello.broker_id:
            reason = f"it has another incarnation of broker {hello.broker_id} than the stream"
        return RejectedEnvelope(error, reason)
    return None


def open_envelope(
    envelope: Envelope, serde: PrincipalSerde, apis: Mapping[int, AdminApi]
) -> OpenedEnvelope | RejectedEnvelope:
    """Make checks 5 to 9. The caller has made check 4: this controller is active."""
    try:
        principal = serde.deserialize(envelope.principal)  # 5
    except PrincipalDeserializationError as error:
        return RejectedEnvelope(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error))
    if len(envelope.client_address) not in (4, 16):  # 6
        reason = "the client's address has neither 4 nor 16 bytes"
        return RejectedEnvelope(ErrorCode.INVALID_REQUEST, reason)
    if envelope.dialect not in SPECS:
        return RejectedEnvelope(ErrorCode.INVALID_REQUEST, f"unknown dialect {envelope.dialect!r}")
    try:
        header, _ = decode_request_header(envelope.request_header, envelope.dialect)  # 7
    except WireError as error:
        return RejectedEnvelope(ErrorCode.UNSUPPORTED_VERSION, str(error))
    spec = SPECS[envelope.dialect].get(header.api_key)
    api = apis.get(header.api_key)
    routes = (Route.FORWARD, Route.ON_CONTROLLER)
    if spec is None or spec.route not in routes or api is None:  # 8
        reason = f"API {header.api_key} is not eligible for forwarding"
        return RejectedEnvelope(ErrorCode.INVALID_REQUEST, reason)
    try:
        request = decode_request(  # 9
            header.api_key, header.api_version, envelope.request_data, dialect=envelope.dialect
        )
        check_request(header.api_key, header.api_version, request)
    except WireError as error:
        return RejectedEnvelope(ErrorCode.UNSUPPORTED_VERSION, str(error))
    client = Client(
        host=host_text(envelope.client_address),
        listener_name=envelope.listener_name,
        security_protocol=envelope.security_protocol,
        principal=principal,
        dialect=envelope.dialect,
        client_id=header.client_id,
    )
    return OpenedEnvelope(header, client, api, request)
