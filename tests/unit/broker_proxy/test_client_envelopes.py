"""Envelopes that clients send: which are executed, for whom, and which are rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bridgehead.kafka_wire.codec import encode_request, encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    encode_request_header,
    encode_response_header,
)
from bridgehead.kafka_wire.messages import envelope as shipped
from bridgehead.kafka_wire.messages.drafted import envelope as drafted
from bridgehead.kafka_wire.messages.drafted.alter_topics import AlterTopicsRequest
from bridgehead.kafka_wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest
from broker_proxy.apis.admin.envelope import EnvelopeApi
from broker_proxy.client_request import ClientRequest, ClosedWithoutResponseError
from cluster_model.principal import KafkaPrincipal
from envelope.principal_serde import DefaultPrincipalSerde
from tests.unit.broker_proxy.client_requests import a_request

ENVELOPE, METADATA, INCREMENTAL, ALTER_TOPICS = 58, 3, 44, 10001
BROKER = KafkaPrincipal("Service", "broker-7")
CLIENT = KafkaPrincipal("Group", "billing", token_authenticated=True)
HEADER = RequestHeader(INCREMENTAL, 1, 77, "inside")
HEAD = encode_request_header(HEADER)
BODY = encode_request(INCREMENTAL, 1, IncrementalAlterConfigsRequest([], True))
RESPONSE = IncrementalAlterConfigsResponse(throttle_time_ms=300)
DRAFTED = drafted.EnvelopeRequest(
    request_header=HEAD,
    request_data=BODY,
    principal_info=DefaultPrincipalSerde().serialize(CLIENT),
    client_host_ip="10.1.2.3",
    listener_name="OUTSIDE",
    security_protocol="SASL_SSL",
)
SHIPPED = shipped.EnvelopeRequest(
    request_data=HEAD + BODY,
    request_principal=DefaultPrincipalSerde().serialize(CLIENT),
    client_host_address=bytes([10, 1, 2, 3]),
)


class Node:
    """A broker that records the inner requests that it executes, and its rejections."""

    def __init__(self, *, is_controller: bool = True, has_right: bool = True) -> None:
        self.executed: list[ClientRequest] = []
        self.rejected: list[tuple[ErrorCode, str]] = []
        self.checked: list[tuple[KafkaPrincipal, tuple[str, ...]]] = []
        self.response: bytes | None = encode_response_header(INCREMENTAL, 1, 77)
        self.response += encode_response(INCREMENTAL, 1, RESPONSE)
        self._has_right = has_right
        self._api = EnvelopeApi(
            between_brokers="INSIDE",
            authorize_for=self._authorize_for,
            is_controller=lambda: is_controller,
            serde=DefaultPrincipalSerde(),
            execute=self._execute,
            rejected=lambda _, error, reason: self.rejected.append((error, reason)),
        )

    def _authorize_for(self, request: ClientRequest) -> Callable[..., bool]:
        def authorize(*action: str) -> bool:
            self.checked.append((request.client.principal, action))
            return self._has_right

        return authorize

    async def _execute(self, request: ClientRequest) -> bytes | None:
        self.executed.append(request)
        return self.response

    async def receive(self, message: Any, listener: str = "ELSEWHERE") -> Any:
        dialect = "drafted" if isinstance(message, drafted.EnvelopeRequest) else "shipped"
        request = a_request(
            ENVELOPE,
            0,
            principal=BROKER,
            host="10.9.9.9",
            listener_name=listener,
            security_protocol="SSL",
            client_id="sender",
            dialect=dialect,
            software_name="probe",
        )
        return await self._api.handle(request, message)


async def test_a_drafted_envelope_is_executed_for_its_client_on_every_listener() -> None:
    """KIP-590 §EnvelopeRequest Handling. The six fields are those of §New Envelope RPC."""
    node = Node()
    response = await node.receive(DRAFTED)
    (inner,) = node.executed
    client = inner.client
    assert (client.principal, client.host) == (CLIENT, "10.1.2.3")
    assert (client.listener_name, client.security_protocol) == ("OUTSIDE", "SASL_SSL")
    assert (client.client_id, client.dialect) == ("inside", "drafted")
    assert (client.software_name, client.software_version) == ("", "")
    assert (inner.header, inner.header_bytes, inner.body) == (HEADER, HEAD, BODY)
    assert node.checked == [(BROKER, ("CLUSTER_ACTION", "CLUSTER", "kafka-cluster"))]
    assert response == drafted.EnvelopeResponse(
        encode_response_header(INCREMENTAL, 1, 77), encode_response(INCREMENTAL, 1, RESPONSE), 0
    )
    assert node.rejected == []


async def test_a_shipped_envelope_has_the_listener_and_protocol_of_its_connection() -> None:
    node = Node()
    response = await node.receive(SHIPPED, "INSIDE")
    (inner,) = node.executed
    client = inner.client
    assert (client.principal, client.host) == (CLIENT, "10.1.2.3")
    assert (client.listener_name, client.security_protocol) == ("INSIDE", "SSL")
    assert (inner.header, inner.header_bytes, inner.body) == (HEADER, HEAD, BODY)
    assert response == shipped.EnvelopeResponse(response_data=node.response)


async def test_a_shipped_envelope_on_another_listener_closes_the_connection() -> None:
    node = Node()
    with pytest.raises(ClosedWithoutResponseError, match="an Envelope on listener ELSEWHERE"):
        await node.receive(SHIPPED)
    assert (node.executed, node.rejected, node.checked) == ([], [], [])


@pytest.mark.parametrize("message", [DRAFTED, SHIPPED], ids=["drafted", "shipped"])
@pytest.mark.parametrize(
    ("node", "error"),
    [
        (Node(has_right=False), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (Node(is_controller=False), ErrorCode.NOT_CONTROLLER),
        (Node(is_controller=False, has_right=False), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
    ids=["no right", "another broker", "both"],
)
async def test_the_right_is_checked_before_the_controller(
    message: Any, node: Node, error: ErrorCode
) -> None:
    """KIP-590 §EnvelopeRequest Handling names these two errors."""
    node.rejected.clear()
    response = await node.receive(message, "INSIDE")
    assert response == type(response)(error_code=error)
    assert isinstance(response, drafted.EnvelopeResponse) is (message is DRAFTED)
    assert [rejection for rejection, _ in node.rejected] == [error]
    assert node.executed == []


OTHER_APIS = {
    "read": encode_request_header(RequestHeader(METADATA, 1, 77, "inside")),
    "login": encode_request_header(RequestHeader(17, 1, 77, "inside")),
    "envelope": encode_request_header(RequestHeader(ENVELOPE, 0, 77, "inside")),
}
ALL_TOPICS = encode_request(METADATA, 1, MetadataRequest(topics=None))


@pytest.mark.parametrize(
    ("changes", "error", "reason"),
    [
        ({"principal_info": b"\0"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, ""),
        ({"client_host_ip": "localhost"}, ErrorCode.INVALID_REQUEST, "not an IP address"),
        ({"client_host_ip": ""}, ErrorCode.INVALID_REQUEST, "not an IP address"),
        ({"listener_name": "A\nB"}, ErrorCode.INVALID_REQUEST, "not printable"),
        ({"listener_name": "A" * 301}, ErrorCode.INVALID_REQUEST, "too long"),
        ({"security_protocol": "TLS"}, ErrorCode.INVALID_REQUEST, "security protocol"),
        ({"request_header": HEAD[:5]}, ErrorCode.UNSUPPORTED_VERSION, "ends within"),
        ({"request_data": b"\1"}, ErrorCode.UNSUPPORTED_VERSION, "ends within"),
        (
            {"request_header": OTHER_APIS["read"], "request_data": ALL_TOPICS},
            ErrorCode.INVALID_REQUEST,
            "API 3 is not eligible",
        ),
        ({"request_header": OTHER_APIS["login"]}, ErrorCode.INVALID_REQUEST, "API 17"),
        ({"request_header": OTHER_APIS["envelope"]}, ErrorCode.INVALID_REQUEST, "API 58"),
    ],
)
async def test_a_malformed_drafted_envelope_is_rejected(
    changes: dict[str, Any], error: ErrorCode, reason: str
) -> None:
    node = Node()
    response = await node.receive(replace(DRAFTED, **changes))
    assert response == drafted.EnvelopeResponse(error_code=error)
    ((rejection, text),) = node.rejected
    assert (rejection, reason in text) == (error, True), text
    assert node.executed == []


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": bytes(5)}, ErrorCode.INVALID_REQUEST),
        ({"request_data": OTHER_APIS["read"] + ALL_TOPICS}, ErrorCode.INVALID_REQUEST),
        ({"request_data": HEAD + b"\1"}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
async def test_a_malformed_shipped_envelope_is_rejected(
    changes: dict[str, Any], error: ErrorCode
) -> None:
    node = Node()
    response = await node.receive(replace(SHIPPED, **changes), "INSIDE")
    assert response == shipped.EnvelopeResponse(error_code=error)
    assert [rejection for rejection, _ in node.rejected] == [error]
    assert node.executed == []


async def test_a_drafted_envelope_may_contain_the_apis_of_the_drafts() -> None:
    node = Node()
    header = encode_request_header(RequestHeader(ALTER_TOPICS, 0, 77, "inside"))
    body = encode_request(ALTER_TOPICS, 0, AlterTopicsRequest([]), "drafted")
    node.response = encode_response_header(ALTER_TOPICS, 0, 77) + b"body"
    response = await node.receive(replace(DRAFTED, request_header=header, request_data=body))
    assert response == drafted.EnvelopeResponse(
        encode_response_header(ALTER_TOPICS, 0, 77), b"body"
    )
    only_shipped = replace(SHIPPED, request_data=header + body)
    assert (await node.receive(only_shipped, "INSIDE")).error_code != ErrorCode.NONE


async def test_an_ipv6_address_is_written_as_in_java() -> None:
    node = Node()
    await node.receive(replace(DRAFTED, client_host_ip="2001:db8::1"))
    assert node.executed[0].client.host == "2001:db8:0:0:0:0:0:1"


@pytest.mark.parametrize(
    ("message", "rejection"),
    [(DRAFTED, drafted.EnvelopeResponse), (SHIPPED, shipped.EnvelopeResponse)],
)
async def test_if_the_inner_request_would_close_the_connection_the_version_is_unsupported(
    message: Any, rejection: type[Any]
) -> None:
    node = Node()
    node.response = None
    expected = rejection(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assert await node.receive(message, "INSIDE") == expected
