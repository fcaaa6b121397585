"""The checks on an Envelope, in Kafka's order, up to the point where the request may be decided.

KIP-590 §EnvelopeRequest Handling; kafka-semantics 1.5, whose numbers stand in the comments. The
answer to a failed check is a code only: an Envelope's answer has no room for a text, which goes
into the event instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bridgehead.kafka_wire.codec import decode_request
from bridgehead.kafka_wire.dialects import SPECS
from bridgehead.kafka_wire.errors import ErrorCode, WireError
from bridgehead.kafka_wire.headers import RequestHeader, decode_request_header
from bridgehead.kafka_wire.request_checks import check_request
from cluster_model.host_text import host_text
from cluster_model.principal import KafkaPrincipal
from controller.apis.base import AdminApi
from controller.services import Sender
from envelope.messages import Envelope, RequestIdentity
from envelope.principal_serde import PrincipalDeserializationError, PrincipalSerde


@dataclass(frozen=True, slots=True)
class Opened:
    """An Envelope that passed every check: what its request says, and who asks."""

    header: RequestHeader
    principal: KafkaPrincipal
    client_host: str
    api: AdminApi
    request: Any


@dataclass(frozen=True, slots=True)
class Refused:
    """An Envelope that failed a check. `reason` is for the log."""

    error: ErrorCode
    reason: str


def refuse_sender(
    sender: Sender, identity: RequestIdentity, is_authorized: Callable[[Sender], bool]
) -> Refused | None:
    """Check 3: the sending broker needs CLUSTER_ACTION on Cluster. It comes before all others.

    And it speaks for itself alone: under another broker's identity it could be told that one's
    answers, or have its requests taken for done.
    """
    error, hello = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, sender.hello
    if not is_authorized(sender):
        return Refused(error, f"{sender.principal} lacks CLUSTER_ACTION on Cluster")
    if identity[:2] != (hello.broker_id, hello.incarnation):
        return Refused(error, f"it is of broker {identity.broker_id}, not {hello.broker_id}")
    return None


def open_envelope(
    envelope: Envelope, serde: PrincipalSerde, apis: Mapping[int, AdminApi]
) -> Opened | Refused:
    """Checks 5 to 9. The office (check 4) was checked by the caller."""
    try:
        principal = serde.deserialize(envelope.principal)  # 5
    except PrincipalDeserializationError as wrong:
        return Refused(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(wrong))
    if len(envelope.client_host) not in (4, 16):  # 6
        return Refused(ErrorCode.INVALID_REQUEST, "the client's address has neither 4 nor 16 bytes")
    if envelope.dialect not in SPECS:
        return Refused(ErrorCode.INVALID_REQUEST, f"there is no dialect {envelope.dialect!r}")
    try:
        header, _ = decode_request_header(envelope.request_header, envelope.dialect)  # 7
    except WireError as wrong:
        return Refused(ErrorCode.UNSUPPORTED_VERSION, str(wrong))
    spec = SPECS[envelope.dialect].get(header.api_key)
    api = apis.get(header.api_key)
    if spec is None or not spec.forwardable or api is None:  # 8
        return Refused(
            ErrorCode.INVALID_REQUEST, f"API {header.api_key} is not eligible for forwarding"
        )
    try:
        request = decode_request(  # 9
            header.api_key, header.api_version, envelope.request_data, dialect=envelope.dialect
        )
        check_request(header.api_key, header.api_version, request)
    except WireError as wrong:
        return Refused(ErrorCode.UNSUPPORTED_VERSION, str(wrong))
    return Opened(header, principal, host_text(envelope.client_host), api, request)
