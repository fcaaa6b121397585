"""Our tables and codecs agree with Kafka's own classes (tests/data/README.md)."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire import API_SPECS, ApiKey, ErrorCode, WireError, decode_body, encode_body
from bridgehead.kafka_wire.apis import QUORUM_SPECS, ApiSpec, Route
from bridgehead.kafka_wire.codec import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from bridgehead.kafka_wire.schema import BYTES, RECORDS, UUID, Array, Primitive, Wire, fields_of

DATA = Path(__file__).parents[3] / "data"
KAFKA_TYPES = {
    "BOOLEAN": "bool",
    "INT8": "int8",
    "INT16": "int16",
    "UINT16": "uint16",
    "INT32": "int32",
    "INT64": "int64",
    "FLOAT64": "float64",
    "UUID": "uuid",
    "STRING": "string",
    "BYTES": "bytes",
    "RECORDS": "records",
}


def lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def where(case: dict[str, Any]) -> str:
    return f"{API_SPECS[case['key']].name} {case['kind']} v{case['version']}"


def test_recorded_messages_decode_to_kafkas_body_and_encode_to_its_bytes() -> None:
    """The 2,048 messages cover all versions of all APIs except Produce and Fetch."""
    seen = set()
    for case in lines("codec.jsonl.gz"):
        key, kind, version, data = case["key"], case["kind"], case["version"], case["hex"]
        seen.add((key, kind, version))
        assert decode_body(key, kind, version, bytes.fromhex(data)) == case["body"], where(case)
        assert encode_body(key, kind, version, case["body"]).hex() == data, where(case)
    expected = {
        (spec.key, kind, version)
        for spec in API_SPECS.values()
        if spec.name not in ("Produce", "Fetch")
        for kind in ("request", "response")
        for version in spec.versions
    }
    assert seen == expected


def test_recorded_messages_are_decoded_to_structs_and_encoded_to_the_same_bytes() -> None:
    for case in lines("codec.jsonl.gz"):
        key, version, data = case["key"], case["version"], bytes.fromhex(case["hex"])
        if case["kind"] == "request":
            again = encode_request(key, version, decode_request(key, version, data))
        else:
            again = encode_response(key, version, decode_response(key, version, data))
        assert again == data, where(case)


def test_messages_to_a_kraft_controller_equal_kafkas_bytes_and_schemas() -> None:
    """They are in a file of their own, because no ZooKeeper broker serves them."""
    seen = set()
    for row in lines("quorum.jsonl.gz"):
        if "schema" in row:
            check_schema(QUORUM_SPECS[row["schema"]["key"]], row["schema"])
            continue
        key, kind, version, data = row["key"], row["kind"], row["version"], row["hex"]
        seen.add((key, kind, version))
        assert decode_body(key, kind, version, bytes.fromhex(data)) == row["body"], row
        assert encode_body(key, kind, version, row["body"]).hex() == data, row
    assert seen == {
        (spec.key, kind, version)
        for spec in QUORUM_SPECS.values()
        for kind in ("request", "response")
        for version in spec.versions
    }


def test_damaged_messages_are_decoded_or_rejected_as_in_kafka() -> None:
    rejected = 0
    for case in lines("hostile.jsonl.gz"):
        arguments = (case["key"], case["kind"], case["version"], bytes.fromhex(case["hex"]))
        if case["body"] is None:
            rejected += 1
            with pytest.raises(WireError):
                decode_body(*arguments)
        else:
            assert decode_body(*arguments) == case["body"], where(case)
    assert rejected > 1000


def kafka_field(field: dict[str, Any]) -> tuple[Any, ...]:
    """Return a field of Kafka's schema as (name, shape, nullable, tag)."""
    name, kind, tag = field["name"], field["type"], field.get("tag")
    if "ARRAY" in kind:
        element = field["of"]
        shape = ("array", *kafka_shape(element))
        return (name, shape, bool(field.get("nullable")), tag)
    nullable = "NULLABLE" in kind or "RECORDS" in kind
    return (name, kafka_shape(field), nullable, tag)


def kafka_shape(field: dict[str, Any]) -> tuple[Any, ...]:
    if "fields" in field or "of" in field:
        return ("struct", kafka_struct(field.get("fields") or field["of"]["fields"]))
    plain = field["type"].replace("COMPACT_", "").replace("NULLABLE_", "")
    return (KAFKA_TYPES[plain],)


def kafka_struct(fields: list[dict[str, Any]]) -> tuple[Any, ...]:
    plain = [kafka_field(field) for field in fields if field["name"] != "_tagged_fields"]
    tagged = [
        kafka_field(tag)
        for field in fields
        if field["name"] == "_tagged_fields"
        for tag in field["tags"]
    ]
    return (*plain, *sorted(tagged, key=lambda field: field[3]))


def our_struct(struct: type[Any], version: int) -> tuple[Any, ...]:
    present = [field for field in fields_of(struct) if version in field.versions]
    plain = [our_field(field, version) for field in present if field.tag is None]
    tagged = [our_field(field, version) for field in present if field.tag is not None]
    return (*plain, *sorted(tagged, key=lambda field: field[3]))


def our_field(field: Wire, version: int) -> tuple[Any, ...]:
    shape = our_shape(field.type, version)
    # Kafka's schema objects do not show nullable structs; the recorded messages cover them.
    nullable = shape[0] != "struct" and (version in field.nullable or shape == ("records",))
    return (field.name, shape, nullable, field.tag)


def our_shape(kind: Any, version: int) -> tuple[Any, ...]:
    if isinstance(kind, Array):
        return ("array", *our_shape(kind.of, version))
    if isinstance(kind, Primitive):
        return (kind.name,)
    return ("struct", our_struct(kind, version))


def schemas() -> list[dict[str, Any]]:
    with gzip.open(DATA / "schemas.json.gz", "rt", encoding="utf-8") as file:
        apis: list[dict[str, Any]] = json.load(file)["apis"]
    return apis


@pytest.mark.parametrize("api", schemas(), ids=lambda api: api["api"])
def test_tables_equal_kafkas_schemas(api: dict[str, Any]) -> None:
    """Names, types, order, nullability and tags of fields are equal, and so are header versions."""
    check_schema(API_SPECS[api["key"]], api)


def check_schema(spec: ApiSpec, api: dict[str, Any]) -> None:
    assert (spec.min_version, spec.max_version) == (api["min"], api["max"])
    for row in api["versions"]:
        version = row["version"]
        assert our_struct(spec.request, version) == kafka_struct(row["request"]), version
        assert our_struct(spec.response, version) == kafka_struct(row["response"]), version
        assert spec.request_header_version(version) == row["request_header"]
        assert spec.response_header_version(version) == row["response_header"]


def test_defaults_are_the_same_as_in_kafka() -> None:
    """A struct that is built without arguments has the same field values as in Kafka."""
    compared = 0
    for row in lines("defaults.jsonl.gz"):
        spec = API_SPECS.get(row["key"])
        if spec is None or row["version"] not in spec.versions:
            continue
        struct = getattr(sys.modules[spec.request.__module__], row["struct"], None)
        if struct is None:
            continue
        fields = {f.json_name: f for f in fields_of(struct) if row["version"] in f.versions}
        plain = {name for name, field in fields.items() if field.tag is None}
        if not plain <= set(row["body"]) <= set(fields):
            continue  # Kafka's request and response can have different structs with the same name.
        for name, value in row["body"].items():
            if not isinstance(value, dict) and fields[name].type not in (UUID, BYTES, RECORDS):
                assert fields[name].default == value, (struct.__name__, name)
                compared += 1
    assert compared > 4000


def test_error_codes_are_the_same_as_in_kafka() -> None:
    """The codes, names, default texts and retriability are equal."""
    theirs = list(lines("errors.jsonl.gz"))
    assert [(code.value, code.name) for code in ErrorCode] == [
        (row["code"], row["name"]) for row in theirs
    ]
    for row in theirs:
        code = ErrorCode(row["code"])
        assert code.default_text == row["text"]
        assert code.retriable == row["retriable"], code.name


def test_api_table_equals_the_table_of_a_zookeeper_broker() -> None:
    """The key, the two names, the versions and the route of each API are equal."""
    theirs = {row["key"]: row for row in lines("apis.jsonl.gz") if "ZK_BROKER" in row["listeners"]}
    assert set(API_SPECS) == set(theirs)
    for key, row in theirs.items():
        spec = API_SPECS[key]
        assert (spec.name, spec.enum_name) == (row["name"], row["enum"])
        assert (spec.min_version, spec.max_version) == (row["min"], row["max"])
        # Only the request log shows deprecated versions, and only served APIs are logged.
        if spec.route is not None:
            assert list(range(spec.deprecated_through + 1)) == row["deprecated"]
        # APIs without a route are not served. Only brokers send the APIs with ON_CONTROLLER.
        if spec.route not in (None, Route.ON_CONTROLLER):
            assert (spec.route is Route.FORWARD) == row["forwardable"]


def test_api_keys_are_the_same_as_in_kafka() -> None:
    drafted = {ApiKey.ALTER_TOPICS, ApiKey.LIST_ACLS, ApiKey.ALTER_ACLS}
    theirs = {row["key"]: row["enum"] for row in lines("apis.jsonl.gz")}
    assert theirs == {key: key.name for key in set(ApiKey) - drafted}
