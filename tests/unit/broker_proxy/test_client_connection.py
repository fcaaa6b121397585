"""Request order, request ids, and the read-ahead limits of a connection."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire.framing import frame
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    UnsupportedVersionError,
    encode_request_header,
)
from bridgehead.kafka_wire.primitives import WireError
from broker_proxy.client_request import ClientConnectionInfo
from broker_proxy.connections.connection import (
    FRAMES_QUEUED_MAX,
    QUEUED_BYTES_MAX,
    ClientConnection,
)
from broker_proxy.connections.request_memory import Held
from tests.unit.broker_proxy.client_requests import a_client


def _connection(frame_bytes_max: int = 1 << 30) -> ClientConnection:
    info = ClientConnectionInfo("127.0.0.1:1-127.0.0.1:2-7", a_client())
    return ClientConnection(info, request_prefix="2.b00t.7", frame_bytes_max=frame_bytes_max)


def _metadata(correlation_id: int, version: int = 1) -> bytes:
    header = RequestHeader(3, version, correlation_id, "c")
    return encode_request_header(header) + b"\0\0\0\0"


def test_requests_keep_their_order_however_the_bytes_arrive() -> None:
    stream = b"".join(frame(_metadata(i)) for i in range(5))
    for step in (len(stream), 1, 3):
        connection = _connection()
        for at in range(0, len(stream), step):
            connection.receive_data(stream[at : at + step])
        requested = []
        while (data := connection.next_frame()) is not None:
            requested.append(connection.open_request(data, 0).header.correlation_id)
        assert requested == [0, 1, 2, 3, 4]
        assert connection.is_drained


def test_requests_with_equal_correlation_ids_have_different_request_ids() -> None:
    connection = _connection()
    ids = [connection.open_request(_metadata(9), 0).request_id for _ in range(3)]
    assert ids == ["2.b00t.7.1.9", "2.b00t.7.2.9", "2.b00t.7.3.9"]


def test_a_request_keeps_the_clients_header_and_body_bytes() -> None:
    data = _metadata(5)
    request = _connection().open_request(data, 17)
    assert request.header_bytes + request.body == data
    assert request.body == b"\0\0\0\0"
    assert request.received_ns == 17


def test_a_connection_is_full_by_count_and_by_bytes() -> None:
    connection = _connection()
    connection.receive_data(frame(_metadata(0)) * (FRAMES_QUEUED_MAX - 1))
    assert not connection.is_full
    connection.receive_data(frame(_metadata(0)))
    assert connection.is_full
    connection.next_frame()
    assert not connection.is_full
    connection = _connection()
    connection.receive_data(frame(b"x" * QUEUED_BYTES_MAX))
    assert connection.is_full
    connection.next_frame()
    assert not connection.is_full


def test_frames_before_a_framing_error_are_kept() -> None:
    connection = _connection(frame_bytes_max=100)
    connection.receive_data(frame(_metadata(1)) + b"\0\0\0\x65")
    assert connection.broken is not None
    assert connection.is_full
    assert connection.next_frame() == _metadata(1)
    connection.receive_data(frame(_metadata(2)))
    assert connection.next_frame() is None


def test_a_negative_length_breaks_the_connection() -> None:
    connection = _connection()
    connection.receive_data(b"\xff\xff\xff\xff")
    assert connection.broken is not None


def test_an_unsupported_version_error_has_the_request_header() -> None:
    connection = _connection()
    for data in (b"", b"\0", b"\x03\xe7\0\0\0\0\0\1\0\1p"):
        with pytest.raises(WireError):
            connection.open_request(data, 0)
    with pytest.raises(UnsupportedVersionError) as rejected:
        connection.open_request(bytes.fromhex("0012ffff00000001000170"), 0)
    assert rejected.value.header == RequestHeader(18, -1, 1, "p")


def test_requests_hold_memory_from_their_first_byte_until_their_response() -> None:
    connection = _connection()
    connection.receive_data(frame(b"first") + frame(b"second request")[:10])
    assert connection.held == Held(whole=5, partial=10, claimed=14, number=1)
    assert connection.next_frame() == b"first"
    assert connection.held.whole == 5, "the executing request was not counted"
    connection.receive_data(frame(b"second request")[10:])
    assert connection.held == Held(whole=19, number=2)
    assert connection.next_frame() == b"second request"
    assert connection.next_frame() is None
    assert connection.held == Held(number=2)


def test_only_the_executing_request_of_a_closed_connection_takes_memory() -> None:
    connection = _connection()
    connection.receive_data(frame(b"first") + frame(b"second") + frame(b"third")[:6])
    connection.next_frame()
    connection.drop_frames()
    assert connection.held == Held(whole=5, number=2)
    connection.end_execution()
    assert connection.held == Held(number=2)
