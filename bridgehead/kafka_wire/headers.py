"""Request headers 0 to 2, response headers 0 and 1 (docs/kafka/wire.md#headers)."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from bridgehead.kafka_wire.apis import DRAFTED_SPECS, QUORUM_SPECS, SPECS, ApiSpec
from bridgehead.kafka_wire.primitives import (
    WireError,
    damaged_text,
    decode_varint,
    skip_tagged_fields,
)

_FIXED: Final = struct.Struct(">hhi")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


class RequestHeader(NamedTuple):
    """The header of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class UnsupportedVersionError(WireError):
    """The API exists, the version does not. Only ApiVersions gets a response, in version 0."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API {header.api_key} has no version {header.api_version}")
        self.header = header


def decode_request_header(data: bytes, dialect: str = "shipped") -> tuple[RequestHeader, int]:
    """Return the header and the offset of the body.

    Raises:
        UnsupportedVersionError: the API exists, but not in this version.
        WireError: there is no such API, or the data ends within the header.
    """
    try:
        key, version, correlation_id = _FIXED.unpack_from(data)
    except struct.error:
        raise WireError("the data ends within the request header") from None
    spec = SPECS[dialect].get(key)
    if spec is None:
        raise WireError(f"there is no API {key}")
    if not spec.min_version <= version <= spec.max_version:
        # An ApiVersions request of an unknown version gets a response, too, if the rest of its
        # header can be decoded. The header has tagged fields, except in negative versions.
        header_version = 1 if version < 0 else spec.request_header_version(version)
        header, _ = _decode_rest(data, key, version, correlation_id, header_version)
        raise UnsupportedVersionError(header)
    return _decode_rest(data, key, version, correlation_id, spec.request_header_version(version))


def _decode_rest(
    data: bytes, key: int, version: int, correlation_id: int, header_version: int
) -> tuple[RequestHeader, int]:
    at = _FIXED.size
    if header_version == 0:
        return RequestHeader(key, version, correlation_id, None), at
    try:
        (length,) = _INT16.unpack_from(data, at)
        at += _INT16.size
        client_id = None
        if length >= 0:
            if at + length > len(data):
                raise WireError("the data ends within the client id")
            client_id = damaged_text(data[at : at + length])
            at += length
        if header_version == 2:
            count, at = decode_varint(data, at)
            at = skip_tagged_fields(data, at, count)
    except struct.error:
        raise WireError("the data ends within the request header") from None
    return RequestHeader(key, version, correlation_id, client_id), at


def encode_request_header(header: RequestHeader) -> bytes:
    """Return the header as bytes."""
    key, version, correlation_id, client_id = header
    return _FIXED.pack(key, version, correlation_id) + _request_header_end(key, version, client_id)


@lru_cache
def _request_header_end(api_key: int, api_version: int, client_id: str | None) -> bytes:
    """Return what follows the correlation id."""
    version = _spec(api_key).request_header_version(api_version)
    if version == 0:
        return b""
    end = b"\0" if version == 2 else b""
    if client_id is None:
        return _INT16.pack(-1) + end
    try:
        text = client_id.encode()
        return _INT16.pack(len(text)) + text + end
    except (UnicodeEncodeError, struct.error):
        raise WireError("the client id is too long, or not valid text") from None


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Return the response header for a request's version."""
    header = _INT32.pack(correlation_id)
    return header + b"\0" if _response_has_tags(api_key, api_version) else header


def decode_response_header(api_key: int, api_version: int, data: bytes) -> tuple[int, int]:
    """Return the correlation id and the offset of the body."""
    try:
        (correlation_id,) = _INT32.unpack_from(data)
    except struct.error:
        raise WireError("the data ends within the response header") from None
    at = _INT32.size
    if _response_has_tags(api_key, api_version):
        if data[at : at + 1] == b"\0":  # no tagged fields, as in most headers
            return correlation_id, at + 1
        count, at = decode_varint(data, at)
        at = skip_tagged_fields(data, at, count)
    return correlation_id, at


@lru_cache
def _response_has_tags(api_key: int, api_version: int) -> bool:
    return _spec(api_key).response_header_version(api_version) == 1


def _spec(api_key: int) -> ApiSpec:
    # Header versions are equal in both dialects; only the drafted one has all APIs and versions.
    spec = DRAFTED_SPECS.get(api_key) or QUORUM_SPECS.get(api_key)
    if spec is None:
        raise WireError(f"there is no API {api_key}")
    return spec
