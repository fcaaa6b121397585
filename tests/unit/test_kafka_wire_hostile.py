"""Whatever the bytes or the dict: a message or WireError, nothing else, and little memory."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire import API_SPECS, WireError, decode_body, encode_body
from bridgehead.kafka_wire.codec import decode_request, encode_request, encode_response
from bridgehead.kafka_wire.dialects import DRAFTED_SPECS
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

VECTORS = Path(__file__).parents[1] / "data" / "codec.jsonl.gz"
CREATE_TOPICS = 19
METADATA = 3


def recorded() -> list[dict[str, Any]]:
    with gzip.open(VECTORS, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def accepts_or_refuses(key: int, kind: Any, version: int, data: bytes) -> None:
    with contextlib.suppress(WireError):
        decode_body(key, kind, version, data)


def flip(data: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return data


def lie(data: bytearray, rng: random.Random) -> bytearray:
    at = rng.randrange(len(data))
    data[at : at + 5] = rng.choice(
        (b"\xff\xff\xff\xff\x7f", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80" * 12)
    )
    return data


def cut(data: bytearray, rng: random.Random) -> bytearray:
    return data[: rng.randrange(len(data))]


DAMAGES: tuple[Callable[[bytearray, random.Random], bytearray], ...] = (flip, lie, cut)


def test_damaged_messages_raise_wire_errors_alone() -> None:
    """Every recorded message, damaged in six ways: nothing but WireError comes out."""
    rng = random.Random(20)
    for case in recorded():
        data = bytes.fromhex(case["hex"])
        if not data:
            continue
        for damage in DAMAGES * 2:
            hurt = bytes(damage(bytearray(data), rng))
            accepts_or_refuses(case["key"], case["kind"], case["version"], hurt)


def test_random_bytes_raise_wire_errors_alone() -> None:
    """Every API, kind and version, fed with noise."""
    rng = random.Random(21)
    for spec in API_SPECS.values():
        for version in spec.versions:
            for kind in ("request", "response"):
                for _ in range(8):
                    noise = rng.randbytes(rng.randrange(60))
                    accepts_or_refuses(spec.key, kind, version, noise)


def test_random_bytes_of_the_drafts_raise_wire_errors_alone() -> None:
    """Where a draft has other bytes, a version that never came, or an API of its own."""
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


def test_every_truncation_is_refused() -> None:
    """Without its last byte a message is not a message, in any API and version."""
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
        (METADATA, 12, "000000" + "ffffffff07" + "00" * 400),  # as many tags
        (METADATA, 12, "0000000105ffffffff07"),  # a tag of 2 GB
        (58, 0, "ffffffff07" + "00" * 400),
    ],
)
def test_a_huge_length_takes_no_memory(key: int, version: int, data: str) -> None:
    """Lengths are compared with what is left before anything is taken for them."""
    accepts_or_refuses(key, "request", version, b"")  # generates the codec, outside the measure
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            decode_request(key, version, bytes.fromhex(data))
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_bytes_after_a_message_are_ignored_as_kafka_ignores_them() -> None:
    """A real broker answers such a request as if they were not there."""
    request = CreateTopicsRequest([CreatableTopic(name="rawt", num_partitions=1)])
    data = encode_request(CREATE_TOPICS, 0, request)
    assert decode_request(CREATE_TOPICS, 0, data + b"extra").topics == request.topics


def test_a_body_can_begin_anywhere_in_a_frame() -> None:
    """Offsets save the copy of a body out of its frame."""
    data = encode_request(CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(name="a")]))
    message = decode_request(CREATE_TOPICS, 7, b"header" + data, 6)
    assert message.topics[0].name == "a"


@pytest.mark.parametrize(
    ("key", "kind", "version", "dialect", "says"),
    [
        (999, "request", 0, "shipped", "no API 999"),
        (19, "request", 8, "shipped", "CreateTopics has no version 8"),
        (19, "request", -1, "shipped", "CreateTopics has no version -1"),
        (19, "question", 0, "shipped", "a request or a response"),
        (19, "request", 0, "imagined", "there is shipped"),
    ],
)
def test_what_does_not_exist_is_said(
    key: int, kind: Any, version: int, dialect: str, says: str
) -> None:
    """Unknown API, version, kind and dialect, in both directions."""
    with pytest.raises(WireError, match=says):
        decode_body(key, kind, version, b"", dialect)
    with pytest.raises(WireError, match=says):
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
def test_a_dict_that_is_no_body_is_refused(body: Any, version: int) -> None:
    """Missing and unknown keys, wrong types, numbers and texts that do not fit."""
    assert encode_body(CREATE_TOPICS, "request", version, GOOD)
    with pytest.raises(WireError):
        encode_body(CREATE_TOPICS, "request", version, body)


@pytest.mark.parametrize("topic_id", [None, 1, "", "AAAA", "!" * 22, "A" * 23, "\u00e9" * 22])
def test_a_uuid_that_is_none_is_refused(topic_id: Any) -> None:
    """Kafka's base64 of 16 bytes, nothing else."""
    body = {"topics": [{"name": "a", "topicId": topic_id}], "timeoutMs": 1}
    with pytest.raises(WireError):
        encode_body(20, "request", 6, body)


def test_bytes_that_are_no_base64_are_refused() -> None:
    """SaslAuthenticate's bytes are base64 in JSON."""
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
def test_a_message_that_does_not_fit_is_a_wire_error(message: Any) -> None:
    """Our own mistakes come out as the same class, with the message's name."""
    with pytest.raises(WireError, match=type(message).__name__):
        encode_request(CREATE_TOPICS, 7, message)


def test_a_response_leaves_out_what_its_version_lacks() -> None:
    """One message serves every version: fields that a version lacks are not an error."""
    response = CreateTopicsResponse(throttle_time_ms=9)
    assert encode_response(CREATE_TOPICS, 0, response).hex() == "00000000"
    assert encode_response(CREATE_TOPICS, 2, response).hex() == "0000000900000000"
