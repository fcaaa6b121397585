"""Bodies of requests and responses: bytes to messages and back, in every version.

Codecs are generated from the tables in `messages` when a version is first used.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Final, Literal

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.apis import DIALECTS, QUORUM_SPECS, SPECS, ApiSpec
from bridgehead.kafka_wire.generate import (
    DECODE_ERRORS,
    ENCODE_ERRORS,
    Decoder,
    Encoder,
    Generator,
)
from bridgehead.kafka_wire.primitives import (
    CONTROLLERS_ELEMENTS_MAX,
    ELEMENTS_MAX,
    ElementCount,
    WireError,
)
from bridgehead.kafka_wire.schema import fields_of

Kind = Literal["request", "response"]
_element_count: Final = ElementCount()
_THROTTLE_TIME: Final = struct.Struct(">i")
_OF_CONTROLLERS: Final = (ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA)


def find_spec(api_key: int, version: int, dialect: str) -> ApiSpec:
    """Return the API's row.

    Raises:
        WireError: there is no such API, version or dialect.
    """
    specs = SPECS.get(dialect)
    if specs is None:
        raise WireError(f"there is no dialect {dialect!r}; the dialects are {', '.join(DIALECTS)}")
    spec = specs.get(api_key) or QUORUM_SPECS.get(api_key)
    if spec is None:
        raise WireError(f"there is no API {api_key}")
    if version not in spec.versions:
        raise WireError(f"{spec.name} has no version {version}")
    return spec


def message_type(spec: ApiSpec, kind: Kind) -> type[Any]:
    """Return the message class of a request or a response."""
    if kind not in ("request", "response"):
        raise WireError(f"a message is a request or a response, not {kind!r}")
    return spec.request if kind == "request" else spec.response


@cache
def _decoder(
    api_key: int,
    kind: Kind,
    version: int,
    dialect: str,
    unread: tuple[str, ...],
    repeated: tuple[str, ...],
) -> Decoder:
    spec = find_spec(api_key, version, dialect)
    generator = Generator(version, spec.is_flexible(version), unread, repeated)
    return generator.decoder(message_type(spec, kind))


@cache
def _counting_decoder(api_key: int, version: int, dialect: str) -> Decoder:
    spec = find_spec(api_key, version, dialect)
    generator = Generator(version, spec.is_flexible(version), count=_element_count)
    return generator.decoder(spec.request)


@cache
def _encoder(api_key: int, kind: Kind, version: int, dialect: str) -> Encoder:
    spec = find_spec(api_key, version, dialect)
    return Generator(version, spec.is_flexible(version)).encoder(message_type(spec, kind))


def decode(
    api_key: int,
    kind: Kind,
    version: int,
    data: bytes,
    at: int,
    dialect: str,
    unread: tuple[str, ...] = (),
    repeated: tuple[str, ...] = (),
) -> Any:
    """Return the message that begins at `at`. Bytes after it are ignored, as in Kafka.

    A field that is an array of structs is skipped if its name is in `unread`; the message then has
    an empty list for it. If its name is in `repeated`, the array becomes a FixedList, which later
    messages with an equal array share.

    Raises:
        WireError: the bytes are not that message.
    """
    return _run(_decoder(api_key, kind, version, dialect, unread, repeated), data, at)


def _run(decoder: Decoder, data: bytes, at: int) -> Any:
    try:
        message, _ = decoder(data, at, len(data))
    except DECODE_ERRORS:
        raise WireError("the data ends within the message") from None
    return message


def encode(api_key: int, kind: Kind, version: int, message: Any, dialect: str) -> bytes:
    """Return the bytes of `message`; fields that the version lacks are left out.

    Raises:
        WireError: a value does not fit its field.
    """
    encoder = _encoder(api_key, kind, version, dialect)
    out = bytearray()
    try:
        encoder(message, out)
    except ENCODE_ERRORS as error:
        raise WireError(
            f"{type(message).__name__} does not fit version {version}: {error}"
        ) from None
    return bytes(out)


def decode_request(
    api_key: int, version: int, data: bytes, at: int = 0, dialect: str = "shipped"
) -> Any:
    """Return a request message; see `decode`.

    Raises:
        WireError: the bytes are not that message, or it has more than ELEMENTS_MAX elements
            (a controller's request: CONTROLLERS_ELEMENTS_MAX).
    """
    limit = CONTROLLERS_ELEMENTS_MAX if api_key in _OF_CONTROLLERS else ELEMENTS_MAX
    if len(data) - at <= limit:  # An element has at least one byte.
        return decode(api_key, "request", version, data, at, dialect)
    _element_count.begin(limit)
    return _run(_counting_decoder(api_key, version, dialect), data, at)


def decode_response(
    api_key: int,
    version: int,
    data: bytes,
    at: int = 0,
    dialect: str = "shipped",
    unread: tuple[str, ...] = (),
    repeated: tuple[str, ...] = (),
) -> Any:
    """Return a response message; see `decode`."""
    return decode(api_key, "response", version, data, at, dialect, unread, repeated)


def encode_request(api_key: int, version: int, message: Any, dialect: str = "shipped") -> bytes:
    """Return a request's body; see `encode`."""
    return encode(api_key, "request", version, message, dialect)


def encode_response(api_key: int, version: int, message: Any, dialect: str = "shipped") -> bytes:
    """Return a response's body; see `encode`."""
    return encode(api_key, "response", version, message, dialect)


@cache
def _begins_with_throttle_time(api_key: int, version: int) -> bool:
    # The result is the same in both dialects. Only `drafted` has every version.
    fields = fields_of(message_type(find_spec(api_key, version, "drafted"), "response"))
    first = next((field for field in fields if version in field.versions), None)
    return first is not None and first.name == "throttle_time_ms"


def with_throttle_time(
    api_key: int, version: int, body: bytes, throttle_ms: int, dialect: str = "shipped"
) -> bytes:
    """Return a response with another throttle time; unchanged if this version has none."""
    if _begins_with_throttle_time(api_key, version):
        return _THROTTLE_TIME.pack(throttle_ms) + body[_THROTTLE_TIME.size :]
    fields = fields_of(message_type(find_spec(api_key, version, "drafted"), "response"))
    if not any(field.name == "throttle_time_ms" and version in field.versions for field in fields):
        return body
    response = decode_response(api_key, version, body, dialect=dialect)
    response.throttle_time_ms = throttle_ms
    return encode_response(api_key, version, response, dialect)


def throttle_time_ms(api_key: int, version: int, body: bytes) -> int:
    """Return the throttle time of a response that begins with it; 0 for any other response.

    Raises:
        WireError: the body is too short.
    """
    if not _begins_with_throttle_time(api_key, version):
        return 0
    if len(body) < _THROTTLE_TIME.size:
        raise WireError("the data ends within the message")
    return int(_THROTTLE_TIME.unpack_from(body)[0])
