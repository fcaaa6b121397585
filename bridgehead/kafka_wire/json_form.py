"""Bodies as JSON, exactly as Kafka's own converters write them.

Names are Kafka's, bytes are base64, UUIDs are URL-safe base64. Only fields of the version are
present. A tagged field is present only if it differs from its default.
"""

from __future__ import annotations

import base64
import binascii
from functools import cache
from typing import Any, Final

from bridgehead.kafka_wire.codec import Kind, decode, encode, find_spec, message_type
from bridgehead.kafka_wire.generate_json import JsonGenerator
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    UUID,
    Array,
    Primitive,
    Wire,
    WireType,
    fields_of,
)

_UUID_BYTES: Final = 16


def decode_body(
    api_key: int, kind: Kind, version: int, data: bytes, dialect: str = "shipped"
) -> dict[str, Any]:
    """Return the body of a request or response as a dict of JSON values.

    >>> decode_body(20, "request", 0, bytes.fromhex("000000010003666f6f00001388"))
    {'topicNames': ['foo'], 'timeoutMs': 5000}

    Args:
        api_key: Kafka's key of the API.
        kind: "request" or "response".
        version: the API version.
        data: the body, without length and header. Bytes after its end are ignored.
        dialect: "shipped" or "drafted".

    Raises:
        WireError: the bytes are not that message. Bad input raises no other exception.
    """
    message = decode(api_key, kind, version, data, 0, dialect)
    return _generator(version).function(type(message))(message)


def encode_body(
    api_key: int, kind: Kind, version: int, body: dict[str, Any], dialect: str = "shipped"
) -> bytes:
    """Return the bytes of a body. `body` has the form that `decode_body` returns.

    Every field of the version is required, except tagged fields. No other key is allowed.

    Raises:
        WireError: a key is missing or unknown, or a value does not fit.
    """
    spec = find_spec(api_key, version, dialect)
    message = _from_json(message_type(spec, kind), body, version, "body")
    return encode(api_key, kind, version, message, dialect)


@cache
def _generator(version: int) -> JsonGenerator:
    return JsonGenerator(version)


def _from_json(target: type[Any], body: Any, version: int, place: str) -> Any:
    if not isinstance(body, dict):
        raise WireError(f"{place} must be an object")
    values: dict[str, Any] = {}
    left = dict(body)
    for field in fields_of(target):
        if version not in field.versions:
            continue
        if field.json_name not in left:
            if field.tag is None:
                raise WireError(f"{place} lacks {field.json_name}")
            continue
        value = left.pop(field.json_name)
        values[field.name] = _field_from_json(field, value, version, f"{place}.{field.json_name}")
    if left:
        raise WireError(f"{place} has no field {sorted(map(str, left))[0]} in version {version}")
    return target(**values)


def _field_from_json(field: Wire, value: Any, version: int, place: str) -> Any:
    if value is None:
        if version in field.nullable or field.type is RECORDS:
            return None
        raise WireError(f"{place} must not be null")
    return _value_from_json(field.type, value, version, place)


def _value_from_json(kind: WireType, value: Any, version: int, place: str) -> Any:
    if isinstance(kind, Array):
        if not isinstance(value, list):
            raise WireError(f"{place} must be an array")
        return [_value_from_json(kind.of, element, version, place) for element in value]
    if isinstance(kind, type):
        return _from_json(kind, value, version, place)
    return _primitive_from_json(kind, value, place)


def _primitive_from_json(kind: Primitive, value: Any, place: str) -> Any:
    if kind is UUID:
        return _uuid(value, place)
    if kind is BYTES or kind is RECORDS:
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise WireError(f"{place} must be base64") from None
    wanted: type[Any] = int
    if kind is STRING:
        wanted = str
    elif kind is BOOL:
        wanted = bool
    elif kind is FLOAT64:
        wanted = float
        value = _float(value, place) if type(value) is int else value
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise WireError(f"{place} must be of type {kind.name}")
    return value


def _float(value: int, place: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise WireError(f"{place} is too large") from None


def _uuid(value: Any, place: str) -> bytes:
    try:
        uuid = base64.urlsafe_b64decode(value + "==")
    except (binascii.Error, ValueError, TypeError):
        uuid = b""
    if len(uuid) != _UUID_BYTES:
        raise WireError(f"{place} must be a UUID of 22 characters")
    return uuid
