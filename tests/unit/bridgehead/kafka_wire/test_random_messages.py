"""Our codec round-trips random messages of every API and agrees with kio and kafka-python.

kio and kafka-python are oracles for the APIs and versions that they implement. They differ from
Kafka in known ways. kio 0.5.0 stores error codes as an enumeration and times as datetimes (in whole
seconds in the delegation token and Produce APIs). kafka-python 3.0.12 decodes every ApiVersions
response with an error as version 0, and cannot encode a DeleteTopicsRequest that it has decoded.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Hashable
from functools import cache
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from bridgehead.kafka_wire import API_SPECS, ErrorCode, decode_body, encode_body
from bridgehead.kafka_wire.apis import ApiSpec
from bridgehead.kafka_wire.codec import Kind, decode, encode, message_type
from bridgehead.kafka_wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    Array,
    Primitive,
    Wire,
    WireType,
    fields_of,
)

KINDS: tuple[Kind, ...] = ("request", "response")
MESSAGES = [(spec, kind) for spec in API_SPECS.values() for kind in KINDS]
IDS = [f"{spec.name}-{kind}" for spec, kind in MESSAGES]
KAFKA_PYTHON_MODULES = ("admin", "consumer", "metadata", "producer", "sasl")
KAFKA_PYTHON_EXCEPTIONS = ("ApiVersionsResponse", "DeleteTopicsRequest")

quick = settings(
    max_examples=5,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


PRIMITIVES: dict[Primitive, st.SearchStrategy[Any]] = {
    BOOL: st.booleans(),
    INT8: integers(8),
    INT16: integers(16),
    INT32: integers(32),
    INT64: integers(64),
    FLOAT64: st.floats(allow_nan=False),
    UUID: st.binary(min_size=16, max_size=16),
    STRING: st.text(max_size=9) | st.sampled_from(["x" * 127, "ü" * 100]),
    BYTES: st.binary(max_size=9) | st.just(b"\x00" * 200),
    RECORDS: st.none() | st.binary(max_size=9),
}


def values(kind: WireType, version: int, tame: bool, name: str) -> st.SearchStrategy[Any]:
    if isinstance(kind, Array):
        return st.lists(values(kind.of, version, tame, name), max_size=3)
    if isinstance(kind, type):
        return messages(kind, version, tame)
    if tame and name.endswith("error_code"):
        return st.sampled_from(
            [int(code) for code in ErrorCode if code <= ErrorCode.VOTER_NOT_FOUND]
        )
    if tame and name.endswith(("_ms", "timestamp")):
        return st.integers(0, 10**5).map(lambda seconds: seconds * 1000)
    if tame and kind is RECORDS:
        return st.none()
    return PRIMITIVES[kind]


def field_values(field: Wire, version: int, tame: bool) -> st.SearchStrategy[Any]:
    strategy = values(field.type, version, tame, field.name)
    return st.none() | strategy if version in field.nullable else strategy


def messages(target: type[Any], version: int, tame: bool = False) -> st.SearchStrategy[Any]:
    """Return a strategy for messages. `tame`: only values that kio's Python types can hold."""
    return _messages(cast(Hashable, target), version, tame)


@cache
def _messages(target: Hashable, version: int, tame: bool) -> st.SearchStrategy[Any]:
    assert isinstance(target, type)
    present = [field for field in fields_of(target) if version in field.versions]
    return st.builds(
        target, **{field.name: field_values(field, version, tame) for field in present}
    )


@pytest.mark.parametrize(("spec", "kind"), MESSAGES, ids=IDS)
@quick
@given(data=st.data())
def test_encoded_message_decodes_to_an_equal_one(spec: ApiSpec, kind: Kind, data: Any) -> None:
    """The test encodes the message directly, and also converts it to JSON and back."""
    version = data.draw(st.sampled_from(spec.versions))
    message = data.draw(messages(message_type(spec, kind), version))

    encoded = encode(spec.key, kind, version, message, "shipped")

    assert decode(spec.key, kind, version, encoded, 0, "shipped") == message
    body = decode_body(spec.key, kind, version, encoded)
    assert encode_body(spec.key, kind, version, body) == encoded


@pytest.mark.parametrize(("spec", "kind"), MESSAGES, ids=IDS)
@quick
@given(data=st.data())
def test_kio_reads_and_writes_the_same_bytes(spec: ApiSpec, kind: Kind, data: Any) -> None:
    version = data.draw(st.sampled_from(spec.versions))
    load = load_request_schema if kind == "request" else load_response_schema
    schema = load(spec.key, version)
    message = data.draw(messages(message_type(spec, kind), version, tame=True))
    encoded = encode(spec.key, kind, version, message, "shipped")

    theirs, used = entity_reader(schema)(encoded, 0)
    again = io.BytesIO()
    entity_writer(schema)(again, theirs)

    assert used == len(encoded)
    assert again.getvalue() == encoded


def kafka_python_class(spec: ApiSpec, kind: Kind) -> Any:
    name = message_type(spec, kind).__name__
    for module in KAFKA_PYTHON_MODULES:
        class_ = getattr(importlib.import_module(f"kafka.protocol.{module}"), name, None)
        if class_ is not None and name not in KAFKA_PYTHON_EXCEPTIONS:
            return class_
    return None


KAFKA_PYTHON_KNOWS = [
    pytest.param(spec, kind, theirs, id=f"{spec.name}-{kind}")
    for spec, kind in MESSAGES
    if (theirs := kafka_python_class(spec, kind)) is not None
]


def test_kafka_python_covers_most_messages() -> None:
    """The test fails if kafka-python's classes can no longer be found by name."""
    assert len(KAFKA_PYTHON_KNOWS) >= 90


@pytest.mark.parametrize(("spec", "kind", "theirs"), KAFKA_PYTHON_KNOWS)
@quick
@given(data=st.data())
def test_kafka_python_reads_and_writes_the_same_bytes(
    spec: ApiSpec, kind: Kind, theirs: Any, data: Any
) -> None:
    """kafka-python decodes what we encode and encodes it to the same bytes."""
    least, most = theirs.valid_versions
    versions = [version for version in spec.versions if least <= version <= most]
    version = data.draw(st.sampled_from(versions))
    message = data.draw(messages(message_type(spec, kind), version))
    encoded = encode(spec.key, kind, version, message, "shipped")

    decoded = theirs.decode(encoded, version=version)

    assert bytes(decoded.encode()) == encoded
