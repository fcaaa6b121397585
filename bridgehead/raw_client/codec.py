"""Converts messages and JSON to payloads and back. A payload is a frame without its length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_response, encode_request
from bridgehead.kafka_wire.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from bridgehead.kafka_wire.json_form import decode_body, encode_body
from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

Body = dict[str, Any]

CLIENT_ID: Final = "raw"
NO_TAGS: Final = b"\0"
UNKNOWN_TAG: Final = b"\x01\x63\x03abc"  # one tagged field: number 99, three bytes
_UNSUPPORTED_VERSION: Final = b"\0\x23"


def encode_message(
    key: int, version: int, message: Any, correlation_id: int = 1, client_id: str = CLIENT_ID
) -> bytes:
    """Return the payload of a request message."""
    header = RequestHeader(key, version, correlation_id, client_id)
    return encode_request_header(header) + encode_request(key, version, message)


def encode_json(
    key: int,
    version: int,
    body: Body,
    *,
    client_id: str = CLIENT_ID,
    dialect: str = "shipped",
    unknown_tags: bool = False,
) -> bytes:
    """Return the payload of a request whose body is given in its JSON form.

    With `unknown_tags`, header and body each have an unknown tagged field. The version must be
    flexible.
    """
    head = encode_request_header(RequestHeader(key, version, 1, client_id))
    data = encode_body(key, "request", version, body, dialect)
    if not unknown_tags:
        return head + data
    assert head.endswith(NO_TAGS), "the version is not flexible"
    assert data.endswith(NO_TAGS), "the body has tagged fields of its own"
    return head[:-1] + UNKNOWN_TAG + data[:-1] + UNKNOWN_TAG


def decode_message(key: int, version: int, response: bytes) -> Any:
    """Return the message of a response."""
    _, at = decode_response_header(key, version, response)
    return decode_response(key, version, response, at)


def decode_json(key: int, version: int, response: bytes, dialect: str = "shipped") -> Body:
    """Return the body of a response in its JSON form."""
    _, at = decode_response_header(key, version, response)
    if key == ApiKey.API_VERSIONS and response[at : at + 2] == _UNSUPPORTED_VERSION:
        version = 0  # The response to an unsupported version has the format of version 0.
    return decode_body(key, "response", version, response[at:], dialect)


def create_topics(
    names: Sequence[str],
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    version: int = 4,
    timeout_ms: int = 30_000,
) -> bytes:
    """Return the payload of a CreateTopics request. Its topics differ only in their names."""
    topics = [CreatableTopic(name, partitions, replication_factor) for name in names]
    message = CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)
    return encode_message(ApiKey.CREATE_TOPICS, version, message)


def create_topic_body(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> Body:
    """Return the JSON body of a CreateTopics request for one topic."""
    topic = topic_body(name, partitions, replicas)
    return {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False, **fields}


def topic_body(
    name: str,
    partitions: int | None = None,
    replicas: int | None = None,
    assignments: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> Body:
    """Return the JSON form of one topic in a CreateTopics request.

    `assignments` maps partitions to broker ids. With `assignments`, the default of `partitions` and
    `replicas` is -1, otherwise 1.
    """
    default = 1 if assignments is None else -1
    return {
        "name": name,
        "numPartitions": default if partitions is None else partitions,
        "replicationFactor": default if replicas is None else replicas,
        "assignments": [
            {"partitionIndex": partition, "brokerIds": list(brokers)}
            for partition, brokers in (assignments or {}).items()
        ],
        "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
    }
