"""Bad input raises WireError and nothing else, and takes little memory."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire import API_SPECS, WireError, decode_body, encode_body
from bridgehead.kafka_wire.apis import DRAFTED_SPECS
from bridgehead.kafka_wire.codec import decode_request, encode_request, encode_response
from bridgehead.kafka_wire.headers import decode_request_header
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from bridgehead.kafka_wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.kafka_wire.primitives import ELEMENTS_MAX, TAGS_MAX, encode_varint

VECTORS = Path(__file__).parents[3] / "data" / "codec.jsonl.gz"
CREATE_TOPICS = 19
METADATA = 3
LIST_OFFSETS = 2
DESCRIBE_LOG_DIRS = 35


def recorded() -> list[dict[str, Any]]:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def decode_or_reject(key: int, kind: Any, version: int, data: bytes) -> None:
    with contextlib.suppress(WireError):
        decode_body(key, kind, version, data)


def flip(data: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return data


def overwrite(data: bytearray, rng: random.Random) -> bytearray:
    at = rng.randrange(len(data))
    data[at : at + 5] = rng.choice(
        (b"\xff\xff\xff\xff\x7f", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80" * 12)
    )
    return data


def cut(data: bytearray, rng: random.Random) -> bytearray:
    return data[: rng.randrange(len(data))]


DAMAGES: tuple[Callable[[bytearray, random.Random], bytearray], ...] = (flip, overwrite, cut)


def test_damaged_messages_raise_only_wire_error() -> None:
    """Every recorded message is damaged six times."""
    rng = random.Random(20)
    for case in recorded():
        data = bytes.fromhex(case["hex"])
        if not data:
            continue
        for damage in DAMAGES * 2:
            damaged = bytes(damage(bytearray(data), rng))
            decode_or_reject(case["key"], case["kind"], case["version"], damaged)


def test_random_bytes_raise_only_wire_error() -> None:
    rng = random.Random(21)
    for spec in API_SPECS.values():
        for version in spec.versions:
            for kind in ("request", "response"):
                for _ in range(8):
                    noise = rng.randbytes(rng.randrange(60))
                    decode_or_reject(spec.key, kind, version, noise)


def test_random_bytes_in_the_drafted_dialect_raise_only_wire_error() -> None:
    rng = random.Random(22)
    read = 0
    for spec in DRAFTED_SPECS.values():
        for version in spec.versions:
            for _ in range(8):
                noise = bytes(rng.choice((0, 1, 2, 255)) for _ in range(rng.randrange(40)))
                with contextlib.suppress(WireError):
                    decode_body(spec.key, "request", version, noise, "drafted")
                    read += 1
    assert read > 50


def test_message_without_its_last_byte_is_rejected() -> None:
    for case in recorded():
        data = bytes.fromhex(case["hex"])
        if data:
            with pytest.raises(WireError):
                decode_body(case["key"], case["kind"], case["version"], data[:-1])


@pytest.mark.parametrize(
    ("key", "version", "data"),
    [
        (CREATE_TOPICS, 0, "7fffffff"),
        (CREATE_TOPICS, 0, "7fffffff" + "00" * 400),
        (CREATE_TOPICS, 7, "ffffffff07" + "00" * 400),
        (CREATE_TOPICS, 7, "ffffffff7f"),
        (METADATA, 0, "7fffffff" + "00" * 400),
        (METADATA, 12, "ffffffff07" + "00" * 400),
        (6, 8, "0000000100000000010000000000000001" + "ffffffff07" + "00" * 400),
        (METADATA, 12, "000000" + "ffffffff07" + "00" * 400),  # two billion tags
        (METADATA, 12, "0000000105ffffffff07"),  # a tag of 2 GB
        (58, 0, "ffffffff07" + "00" * 400),
    ],
)
def test_huge_length_takes_no_memory(key: int, version: int, data: str) -> None:
    decode_or_reject(key, "request", version, b"")  # generates the codec before the measurement
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            decode_request(key, version, bytes.fromhex(data))
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_bytes_after_a_message_are_ignored_as_in_kafka() -> None:
    request = CreateTopicsRequest([CreatableTopic(name="rawt", num_partitions=1)])
    data = encode_request(CREATE_TOPICS, 0, request)
    assert decode_request(CREATE_TOPICS, 0, data + b"extra").topics == request.topics


def test_body_is_decoded_at_an_offset() -> None:
    data = encode_request(CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(name="a")]))
    message = decode_request(CREATE_TOPICS, 7, b"header" + data, 6)
    assert message.topics[0].name == "a"


@pytest.mark.parametrize(
    ("key", "kind", "version", "dialect", "message"),
    [
        (999, "request", 0, "shipped", "no API 999"),
        (19, "request", 8, "shipped", "CreateTopics has no version 8"),
        (19, "request", -1, "shipped", "CreateTopics has no version -1"),
        (19, "question", 0, "shipped", "a request or a response"),
        (19, "request", 0, "imagined", "the dialects are shipped"),
    ],
)
def test_unknown_api_version_kind_or_dialect_is_named(
    key: int, kind: Any, version: int, dialect: str, message: str
) -> None:
    with pytest.raises(WireError, match=message):
        decode_body(key, kind, version, b"", dialect)
    with pytest.raises(WireError, match=message):
        encode_body(key, kind, version, {}, dialect)


GOOD: dict[str, Any] = {
    "topics": [
        {
            "name": "a",
            "numPartitions": 1,
            "replicationFactor": 1,
            "assignments": [{"partitionIndex": 0, "brokerIds": [1]}],
            "configs": [{"name": "k", "value": None}],
        }
    ],
    "timeoutMs": 1,
    "validateOnly": False,
}


def with_topic(**changed: Any) -> dict[str, Any]:
    return GOOD | {"topics": [GOOD["topics"][0] | changed]}


@pytest.mark.parametrize("version", [1, 7])
@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        "text",
        GOOD | {"extra": 1},
        GOOD | {"topics": None},
        GOOD | {"topics": {}},
        GOOD | {"topics": [1]},
        GOOD | {"timeoutMs": 2**31},
        GOOD | {"timeoutMs": True},
        GOOD | {"timeoutMs": "1"},
        GOOD | {"timeoutMs": 1.5},
        GOOD | {"validateOnly": 1},
        with_topic(name=None),
        with_topic(name=7),
        with_topic(name="\ud800"),
        with_topic(name="x" * 32_768),
        with_topic(numPartitions=-(2**31) - 1),
        with_topic(replicationFactor=32_768),
        with_topic(assignments=[{"partitionIndex": 0, "brokerIds": ["1"]}]),
        with_topic(assignments=[{"partitionIndex": 0, "brokerIds": [2**31]}]),
        with_topic(assignments=[{"partitionIndex": 0}]),
        with_topic(configs=[{"name": "k", "value": 1}]),
    ],
)
def test_invalid_dict_is_rejected(body: Any, version: int) -> None:
    """The dicts have missing and unknown keys, wrong types, and numbers and texts out of range."""
    assert encode_body(CREATE_TOPICS, "request", version, GOOD)
    with pytest.raises(WireError):
        encode_body(CREATE_TOPICS, "request", version, body)


@pytest.mark.parametrize("topic_id", [None, 1, "", "AAAA", "!" * 22, "A" * 23, "\u00e9" * 22])
def test_invalid_uuid_is_rejected(topic_id: Any) -> None:
    body = {"topics": [{"name": "a", "topicId": topic_id}], "timeoutMs": 1}
    with pytest.raises(WireError):
        encode_body(20, "request", 6, body)


def test_a_number_beyond_a_double_is_rejected() -> None:
    def quota(value: Any) -> dict[str, Any]:
        entity = [{"entityType": "user", "entityName": "u"}]
        ops = [{"key": "request_percentage", "value": value, "remove": False}]
        return {"entries": [{"entity": entity, "ops": ops}], "validateOnly": False}

    assert encode_body(49, "request", 1, quota(1)) == encode_body(49, "request", 1, quota(1.0))
    for value in (10**400, True, "1"):
        with pytest.raises(WireError):
            encode_body(49, "request", 1, quota(value))


def test_invalid_base64_is_rejected() -> None:
    for junk in ("!", "AAA", 1, None, [1]):
        with pytest.raises(WireError):
            encode_body(36, "request", 2, {"authBytes": junk})


@pytest.mark.parametrize(
    "message",
    [
        CreateTopicsRequest(topics=[CreatableTopic(name=None)]),  # type: ignore[arg-type]
        CreateTopicsRequest(topics=None),  # type: ignore[arg-type]
        CreateTopicsRequest(topics=[3]),  # type: ignore[list-item]
        CreateTopicsRequest(timeout_ms=1 << 40),
        CreateTopicsRequest(topics=[CreatableTopic(name="\udfff")]),
        CreateTopicsResponse(),
        object(),
    ],
)
def test_wire_error_names_the_class_of_an_invalid_message(message: Any) -> None:
    with pytest.raises(WireError, match=type(message).__name__):
        encode_request(CREATE_TOPICS, 7, message)


def test_fields_that_a_version_lacks_are_omitted() -> None:
    response = CreateTopicsResponse(throttle_time_ms=9)
    assert encode_response(CREATE_TOPICS, 0, response).hex() == "00000000"
    assert encode_response(CREATE_TOPICS, 2, response).hex() == "0000000900000000"


def _metadata_of(count: int) -> bytes:
    topics = [MetadataRequestTopic(bytes(16), "") for _ in range(count)]
    return encode_request(METADATA, 12, MetadataRequest(topics=topics))


def _tree_of(topics: int, partitions: int) -> bytes:
    wanted = [ListOffsetsTopic("", [ListOffsetsPartition()] * partitions)] * topics
    return encode_request(LIST_OFFSETS, 8, ListOffsetsRequest(topics=wanted))


def test_a_request_has_at_most_elements_max_elements() -> None:
    """In all arrays together, however they are nested."""
    assert len(decode_request(METADATA, 12, _metadata_of(ELEMENTS_MAX)).topics) == ELEMENTS_MAX
    with pytest.raises(WireError, match="more than 100000 elements"):
        decode_request(METADATA, 12, _metadata_of(ELEMENTS_MAX + 1))
    decode_request(LIST_OFFSETS, 8, _tree_of(300, 300))
    with pytest.raises(WireError, match="more than 100000 elements"):
        decode_request(LIST_OFFSETS, 8, _tree_of(317, 316))


def test_a_request_of_too_many_elements_takes_no_memory_for_them() -> None:
    """The count is in front of an array of numbers, so nothing of the array is read."""
    numbers = 25_000_000
    data = struct.pack(">ih1si", 1, 1, b"t", numbers) + bytes(4 * numbers) + struct.pack(">i", 0)
    tracemalloc.start()
    with pytest.raises(WireError, match="more than 100000 elements"):
        decode_request(DESCRIBE_LOG_DIRS, 1, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_tagged_fields_are_limited_in_a_header_and_count_in_a_body() -> None:
    """They take two bytes each: a frame of 100 MB would have 50 million of them."""
    tags = encode_varint(TAGS_MAX + 1) + b"\x63\x00" * (TAGS_MAX + 1)
    header = struct.pack(">hhih", METADATA, 12, 7, -1)
    with pytest.raises(WireError, match="1001 tagged fields in one struct"):
        decode_request_header(header + tags)
    allowed = encode_varint(TAGS_MAX) + b"\x63\x00" * TAGS_MAX
    assert decode_request_header(header + allowed)[1] == len(header + allowed)
    topic = bytes(16) + b"\x01" + allowed  # an empty name
    count = ELEMENTS_MAX // TAGS_MAX
    many = encode_varint(count + 1) + topic * count + b"\x01\x00\x00"
    with pytest.raises(WireError, match="more than 100000 elements"):
        decode_request(METADATA, 12, many)


def test_the_count_of_elements_begins_anew_for_each_request() -> None:
    for _ in range(3):
        decode_request(METADATA, 12, _metadata_of(60_000))
