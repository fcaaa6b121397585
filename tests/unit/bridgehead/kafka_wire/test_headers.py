"""Headers: versions, client ids, invalid bytes, unsupported versions of ApiVersions."""

from __future__ import annotations

import pytest

from bridgehead.kafka_wire import API_SPECS, WireError
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    UnsupportedVersionError,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)

EVERY_VERSION = [(spec.key, version) for spec in API_SPECS.values() for version in spec.versions]


@pytest.mark.parametrize("client_id", [None, "", "rdkafka", "Ünïcødé"])
def test_request_header_round_trips_in_every_version(client_id: str | None) -> None:
    """The decoder also returns the offset of the body."""
    for key, version in EVERY_VERSION:
        header = RequestHeader(key, version, 7, client_id)
        data = encode_request_header(header)
        decoded, body_at = decode_request_header(data + b"\xff\xff\xff")
        if API_SPECS[key].request_header_version(version) == 0:
            header = header._replace(client_id=None)
        assert (decoded, body_at) == (header, len(data))


def test_response_header_round_trips_in_every_version() -> None:
    """Header version 1 has tagged fields; version 0 has none."""
    for key, version in EVERY_VERSION:
        data = encode_response_header(key, version, -5)
        assert decode_response_header(key, version, data + b"body") == (-5, len(data))


def test_api_versions_response_header_has_no_tags_in_any_version() -> None:
    """The client does not know the broker's versions yet (docs/kafka/wire.md#headers)."""
    for version in API_SPECS[18].versions:
        assert encode_response_header(18, version, 1) == b"\x00\x00\x00\x01"


def test_controlled_shutdown_0_has_no_client_id() -> None:
    """It is the only request with header version 0."""
    assert encode_request_header(RequestHeader(7, 0, 1, "ignored")).hex() == "0007000000000001"


def test_request_headers_have_the_bytes_of_real_clients() -> None:
    """Headers 1 and 2 as librdkafka and Kafka's own client send them."""
    header_1 = RequestHeader(19, 4, 1, "p")
    assert encode_request_header(header_1).hex() == "0013000400000001000170"
    header_2 = RequestHeader(19, 5, 1, "p")
    assert encode_request_header(header_2).hex() == "001300050000000100017000"


def test_unknown_tags_in_a_header_are_skipped() -> None:
    data = encode_request_header(RequestHeader(19, 7, 1, "p"))[:-1]
    tags = bytes([2, 0, 1, 0xAA, 9, 2, 0xBB, 0xCC])
    header, body_at = decode_request_header(data + tags + b"body")
    assert header.client_id == "p"
    assert body_at == len(data + tags)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "00",
        "0012",
        "00120000000000",
        "001300000000000100",  # cut within the client id's length
        "0013000000000001000570",  # a client id of five bytes, cut after one
        "03e7000000000001000170",  # no API 999
        "0037000000000001000170",  # DescribeQuorum: not on a ZooKeeper broker
        "001300050000000100017001",  # the announced tag is missing
        "00130005000000010001700100ffffffff7f",  # the tag's size is wrong
        "0013000500000001000170ffffffffff01",  # a varint without end
        "001200630000000100ff70",  # ApiVersions 99, cut
        "0012006300000001000170",  # ApiVersions 99 with header 1: Kafka closes the connection
    ],
)
def test_invalid_header_raises_wire_error(data: str) -> None:
    """Unlike this error, an UnsupportedVersionError may be answered with a response."""
    with pytest.raises(WireError) as caught:
        decode_request_header(bytes.fromhex(data))
    assert not isinstance(caught.value, UnsupportedVersionError)


@pytest.mark.parametrize(
    "data",
    ["0012ffff00000001000170", "001200630000000100017000", "001300630000000100017000"],
)
def test_unsupported_version_error_has_the_header(data: str) -> None:
    """The response to ApiVersions needs the correlation id."""
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_request_header(bytes.fromhex(data))
    assert caught.value.header.correlation_id == 1
    assert caught.value.header.client_id == "p"


def test_invalid_utf8_in_a_client_id_becomes_u_fffd() -> None:
    header, _ = decode_request_header(bytes.fromhex("00130000000000010002c328"))
    assert header.client_id == "\ufffd("


@pytest.mark.parametrize("client_id", ["x" * 40_000, "\ud800"])
def test_client_id_that_cannot_be_encoded_raises_wire_error(client_id: str) -> None:
    """The client id is too long or has a lone surrogate."""
    with pytest.raises(WireError):
        encode_request_header(RequestHeader(19, 7, 1, client_id))
