"""The drafted messages lie on the wire as the KIPs' tables say, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from bridgehead.kafka_wire import WireError, decode_body, encode_body
from bridgehead.kafka_wire.codec import encode, encode_response
from bridgehead.kafka_wire.dialects import DRAFTED_SPECS
from bridgehead.kafka_wire.headers import UnsupportedVersionError, decode_request_header
from bridgehead.kafka_wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsResponse,
)

T = "000174"  # the string "t", not flexible
REPLICAS = "00000001" + "00000000" + "00000002" + "00000001" + "00000002"
ACL = "000175" + "03" + "00012a" + "04"

DRAFTED: list[tuple[int, str, int, dict[str, Any], str]] = [
    # KIP-201: DeleteTopics Request (Version: 2) => [topics] timeout validate_only
    (
        *(20, "request", 2),
        {"topicNames": ["t"], "timeoutMs": 5, "validateOnly": True},
        "00000001" + T + "00000005" + "01",
    ),
    # => throttle_time_ms [topic error_code error_message]
    (
        *(20, "response", 2),
        {
            "throttleTimeMs": 0,
            "responses": [{"name": "t", "errorCode": 44, "errorMessage": "no"}],
        },
        "00000000" + "00000001" + T + "002c" + "00026e6f",
    ),
    # KIP-201: DeleteRecords Request (Version: 1) => [topics] timeout validate_only
    (
        *(21, "request", 1),
        {
            "topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "offset": 7}]}],
            "timeoutMs": 5,
            "validateOnly": True,
        },
        "00000001" + T + "00000001" + "00000000" + "0000000000000007" + "00000005" + "01",
    ),
    # => throttle_time_ms [topic [partition low_watermark error_code error_message]]
    (
        *(21, "response", 1),
        {
            "throttleTimeMs": 0,
            "topics": [
                {
                    "name": "t",
                    "partitions": [
                        {
                            "partitionIndex": 0,
                            "lowWatermark": 0,
                            "errorCode": 0,
                            "errorMessage": None,
                        }
                    ],
                }
            ],
        },
        "00000000" + "00000001" + T + "00000001" + "00000000" + "00" * 8 + "0000" + "ffff",
    ),
    # KIP-590's flag, a tagged field of a flexible version: one field, tag 0, one byte
    (
        *(19, "request", 5),
        {"topics": [], "timeoutMs": 5, "validateOnly": False, "bypassPolicy": True},
        "01" + "00000005" + "00" + "01" + "00" + "01" + "01",
    ),
    # KIP-590: Envelope's six fields, compact, and no tagged fields
    (
        *(58, "request", 0),
        {
            "requestHeader": "AQ==",
            "requestData": "Ag==",
            "principalInfo": "Aw==",
            "clientHostIP": "h",
            "listenerName": "L",
            "securityProtocol": "P",
        },
        "0201" + "0202" + "0203" + "0268" + "024c" + "0250" + "00",
    ),
    (
        *(58, "response", 0),
        {"responseHeader": "", "responseData": "", "errorCode": 31},
        "01" + "01" + "001f" + "00",
    ),
    # KIP-4: AlterTopicRequest => [TopicName Partitions ReplicationFactor ReplicaAssignment]
    (
        *(10001, "request", 0),
        {
            "topics": [
                {
                    "topic": "t",
                    "partitions": -1,
                    "replicationFactor": -1,
                    "replicaAssignment": [{"partition": 0, "replicas": [1, 2]}],
                }
            ]
        },
        "00000001" + T + "ffffffff" + "ffff" + REPLICAS,
    ),
    (
        *(10001, "response", 0),
        {"topics": [{"topic": "t", "errorCode": 17}]},
        "00000001" + T + "0011",
    ),
    # KIP-4: ListAcls Request (Version: 0) => principal resource
    (
        *(10002, "request", 0),
        {"principal": None, "resourceType": -1, "resourceName": "t"},
        "ffff" + "ff" + T,
    ),
    (
        *(10002, "response", 0),
        {
            "responses": [
                {
                    "resourceType": 2,
                    "resourceName": "t",
                    "acls": [
                        {
                            "aclPrincipal": "u",
                            "aclPermissionType": 3,
                            "aclHost": "*",
                            "aclOperation": 4,
                        }
                    ],
                }
            ],
            "errorCode": 0,
        },
        "00000001" + "02" + T + "00000001" + ACL + "0000",
    ),
    # KIP-4: AlterAcls Request (Version: 0) => [resource [action acl]]
    (
        *(10003, "request", 0),
        {
            "requests": [
                {
                    "resourceType": 2,
                    "resourceName": "t",
                    "actions": [
                        {
                            "action": 1,
                            "acl": {
                                "aclPrincipal": "u",
                                "aclPermissionType": 3,
                                "aclHost": "*",
                                "aclOperation": 4,
                            },
                        }
                    ],
                }
            ]
        },
        "00000001" + "02" + T + "00000001" + "01" + ACL,
    ),
]


@pytest.mark.parametrize(("key", "kind", "version", "body", "bytes_"), DRAFTED)
def test_a_drafted_message_is_what_its_kip_says(
    key: int, kind: Any, version: int, body: dict[str, Any], bytes_: str
) -> None:
    """Both ways."""
    assert encode_body(key, kind, version, body, "drafted").hex() == bytes_
    assert decode_body(key, kind, version, bytes.fromhex(bytes_), "drafted") == body


@pytest.mark.parametrize(("key", "version"), [(20, 2), (21, 1), (58, 0)])
def test_the_same_version_has_other_bytes_where_it_shipped(key: int, version: int) -> None:
    """Which is why one listener cannot speak both."""
    (body,) = (b for k, kind, v, b, _ in DRAFTED if (k, kind, v) == (key, "request", version))
    with pytest.raises(WireError):
        encode_body(key, "request", version, body)


@pytest.mark.parametrize(("key", "version"), [(44, 2), (39, 3), (40, 3)])
def test_a_version_that_kip_590_bumped_to_reads_and_writes_as_the_one_before(
    key: int, version: int
) -> None:
    """Only the way differs; there is no such version where it shipped."""
    spec = DRAFTED_SPECS[key]
    for kind, message in (("request", spec.request()), ("response", spec.response())):
        bumped = encode(key, kind, version, message, "drafted")
        assert bumped == encode(key, kind, version - 1, message, "drafted")
        with pytest.raises(WireError, match="has no version"):
            encode(key, kind, version, message, "shipped")


def test_the_third_version_of_token_creation_has_no_owner_yet() -> None:
    """KIP-373 came later: v3 is the body of v2."""
    body = {"renewers": [], "maxLifetimeMs": 5}
    for version in (2, 3):
        assert (
            encode_body(38, "request", version, body, "drafted").hex() == "01" + "00" * 7 + "0500"
        )


@pytest.mark.parametrize("version", [0, 1, 3, 4, 5, 6])
def test_a_version_that_no_draft_names_is_as_shipped(version: int) -> None:
    """Only v2 of DeleteTopics differs."""
    response = DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", error_message="no")])
    shipped, drafted = (encode_response(20, version, response, d) for d in ("shipped", "drafted"))
    assert shipped == drafted


@pytest.mark.parametrize("key", [10001, 10002, 10003])
def test_the_apis_of_kip_4_are_unknown_where_it_shipped(key: int) -> None:
    """Its header is refused before anything is read."""
    header = key.to_bytes(2) + bytes(2) + bytes(4) + b"\xff\xff"
    assert decode_request_header(header, "drafted")[0].api_key == key
    with pytest.raises(WireError, match=f"there is no API {key}"):
        decode_request_header(header)


def test_a_bumped_version_is_unsupported_where_it_shipped() -> None:
    """The header is read, the version refused."""
    header = (44).to_bytes(2) + (2).to_bytes(2) + bytes(4) + b"\xff\xff\0"
    assert decode_request_header(header, "drafted")[0].api_version == 2
    with pytest.raises(UnsupportedVersionError):
        decode_request_header(header)
