"""The drafted messages have the bytes that the KIPs' tables specify."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bridgehead.kafka_wire import WireError, decode_body, encode_body
from bridgehead.kafka_wire.codec import Kind, decode_request, encode_response
from bridgehead.kafka_wire.headers import UnsupportedVersionError, decode_request_header
from bridgehead.kafka_wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsResponse,
)

TABLE = """
# KIP-201: DeleteTopics Request (Version: 2) => [topics] timeout validate_only
20 request 2 {"topicNames": ["t"], "timeoutMs": 5, "validateOnly": true}
= 00000001 000174 00000005 01
# => throttle_time_ms [topic error_code error_message]
20 response 2 {"throttleTimeMs": 0, "responses": [{"name": "t", "errorCode": 44, "errorMessage":
  "no"}]}
= 00000000 00000001 000174 002c 00026e6f
# v3 has the same fields; in the flexible versions, from v4 on, validate_only is a tagged field
20 request 3 {"topicNames": ["t"], "timeoutMs": 5, "validateOnly": true}
= 00000001 000174 00000005 01
20 response 3 {"throttleTimeMs": 0, "responses": [{"name": "t", "errorCode": 44, "errorMessage":
  "no"}]}
= 00000000 00000001 000174 002c 00026e6f
20 request 4 {"topicNames": ["t"], "timeoutMs": 5, "validateOnly": true}
= 02 0274 00000005 01 00 01 01
20 response 4 {"throttleTimeMs": 0, "responses": [{"name": "t", "errorCode": 44, "errorMessage":
  "no"}]}
= 00000000 02 0274 002c 01 00 03 036e6f 00
20 request 6 {"topics": [], "timeoutMs": 5, "validateOnly": true}
= 01 00000005 01 00 01 01
# KIP-201: DeleteRecords Request (Version: 1) => [topics] timeout validate_only
21 request 1 {"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "offset": 7}]}],
  "timeoutMs": 5, "validateOnly": true}
= 00000001 000174 00000001 00000000 0000000000000007 00000005 01
# => throttle_time_ms [topic [partition low_watermark error_code error_message]]
21 response 1 {"throttleTimeMs": 0, "topics": [{"name": "t", "partitions": [{"partitionIndex": 0,
  "lowWatermark": 0, "errorCode": 0, "errorMessage": null}]}]}
= 00000000 00000001 000174 00000001 00000000 0000000000000000 0000 ffff
# v2 is flexible
21 request 2 {"topics": [], "timeoutMs": 5, "validateOnly": true}
= 01 00000005 01 00 01 01
21 response 2 {"throttleTimeMs": 0, "topics": [{"name": "t", "partitions": [{"partitionIndex": 0,
  "lowWatermark": 0, "errorCode": 44, "errorMessage": "no"}]}]}
= 00000000 02 0274 02 00000000 0000000000000000 002c 01 00 03 036e6f 00 00
# KIP-590's flag, a tagged field of a flexible version: one field, tag 0, one byte
19 request 5 {"topics": [], "timeoutMs": 5, "validateOnly": false, "bypassPolicy": true}
= 01 00000005 00 01 00 01 01
# KIP-590: Envelope's six fields, compact, and no tagged fields
58 request 0 {"requestHeader": "AQ==", "requestData": "Ag==", "principalInfo": "Aw==",
  "clientHostIP": "h", "listenerName": "L", "securityProtocol": "P"}
= 0201 0202 0203 0268 024c 0250 00
58 response 0 {"responseHeader": "", "responseData": "", "errorCode": 31}
= 01 01 001f 00
# KIP-4: AlterTopicRequest => [TopicName Partitions ReplicationFactor ReplicaAssignment]
# "Replicas => int32", "Partitions => int32"
10001 request 0 {"topics": [{"topic": "t", "partitions": 258, "replicationFactor": 70000,
  "replicaAssignment": [{"partition": 3, "replicas": [5, 2]}]}]}
= 00000001 000174 00000102 00011170 00000001 00000003 00000002 00000005 00000002
10001 response 0 {"topics": [{"topic": "t", "errorCode": 17}]}
= 00000001 000174 0011
# KIP-4: ListAcls Request (Version: 0) => principal resource
10002 request 0 {"principal": null, "resourceType": -1, "resourceName": "t"}
= ffff ff 000174
10002 response 0 {"responses": [{"resourceType": 2, "resourceName": "t", "acls": [{"aclPrincipal":
  "u", "aclPermissionType": 3, "aclHost": "*", "aclOperation": 4}]}], "errorCode": 0}
= 00000001 02 000174 00000001 000175 03 00012a 04 0000
# KIP-4: AlterAcls Request (Version: 0) => [resource [action acl]]
10003 request 0 {"requests": [{"resourceType": 2, "resourceName": "t", "actions": [{"action": 1,
  "acl": {"aclPrincipal": "u", "aclPermissionType": 3, "aclHost": "*", "aclOperation": 4}}]}]}
= 00000001 02 000174 00000001 01 000175 03 00012a 04
# => [resource [action acl error_code]]
10003 response 0 {"responses": [{"resourceType": 2, "resourceName": "t", "results": [{"action": 1,
  "acl": {"aclPrincipal": "u", "aclPermissionType": 3, "aclHost": "*", "aclOperation": 4},
  "errorCode": 31}]}]}
= 00000001 02 000174 00000001 01 000175 03 00012a 04 001f
"""


def _rows() -> list[tuple[int, str, int, Any, str]]:
    """Return key, kind, version, body and hexadecimal bytes of each message."""
    row = r"^(\d+) (\w+) (\d+) (\{.*?\})\n= ([0-9a-f ]+)$"
    return [
        (int(key), kind, int(version), json.loads(body), data.replace(" ", ""))
        for key, kind, version, body, data in re.findall(row, TABLE, re.MULTILINE | re.DOTALL)
    ]


DRAFTED = _rows()


@pytest.mark.parametrize(("key", "kind", "version", "body", "bytes_"), DRAFTED)
def test_drafted_message_has_the_fields_of_its_kip(
    key: int, kind: Any, version: int, body: dict[str, Any], bytes_: str
) -> None:
    assert encode_body(key, kind, version, body, "drafted").hex() == bytes_
    assert decode_body(key, kind, version, bytes.fromhex(bytes_), "drafted") == body


@pytest.mark.parametrize(("key", "version"), [(20, 2), (21, 1), (58, 0)])
def test_drafted_body_does_not_fit_the_shipped_version(key: int, version: int) -> None:
    (body,) = (b for k, kind, v, b, _ in DRAFTED if (k, kind, v) == (key, "request", version))
    with pytest.raises(WireError):
        encode_body(key, "request", version, body)


_RESOURCE = {"resourceType": 8, "resourceName": "2"}
_TOKEN_RESPONSE = {"errorCode": 31, "expiryTimestampMs": 9, "throttleTimeMs": 300}
# Every field has a value that is not its default.
BUMPED_BODIES: list[tuple[int, int, Kind, dict[str, Any]]] = [
    (44, 2, "request", {
        "resources": [
            {**_RESOURCE, "configs": [{"name": "a", "configOperation": 2, "value": "b"}]}
        ],
        "validateOnly": True,
    }),
    (44, 2, "response", {
        "throttleTimeMs": 300,
        "responses": [{"errorCode": 31, "errorMessage": "no", **_RESOURCE}],
    }),
    (39, 3, "request", {"hmac": "AAE=", "renewPeriodMs": 77}),
    (39, 3, "response", _TOKEN_RESPONSE),
    (40, 3, "request", {"hmac": "AAE=", "expiryTimePeriodMs": 77}),
    (40, 3, "response", _TOKEN_RESPONSE),
]  # fmt: skip


@pytest.mark.parametrize(("key", "version", "kind", "body"), BUMPED_BODIES)
def test_version_bumped_by_kip_590_has_the_layout_of_the_one_before(
    key: int, version: int, kind: Kind, body: dict[str, Any]
) -> None:
    bumped = encode_body(key, kind, version, body, "drafted")
    assert bumped == encode_body(key, kind, version - 1, body, "shipped")
    assert decode_body(key, kind, version, bumped, "drafted") == body
    with pytest.raises(WireError, match="has no version"):
        encode_body(key, kind, version, body, "shipped")


def test_create_delegation_token_v3_has_no_owner() -> None:
    """KIP-373 added the owner later. The drafted v3 has the same body as v2."""
    body = {"renewers": [], "maxLifetimeMs": 5}
    for version in (2, 3):
        assert (
            encode_body(38, "request", version, body, "drafted").hex() == "01" + "00" * 7 + "0500"
        )


@pytest.mark.parametrize("version", [4, 5, 6])
def test_a_shipped_delete_topics_request_is_valid_in_the_drafted_dialect(version: int) -> None:
    """These versions are flexible and the drafted field is tagged, so a client can omit it."""
    topics = {"topics": []} if version == 6 else {"topicNames": ["t"]}
    body = {**topics, "timeoutMs": 5}
    shipped = encode_body(20, "request", version, body)
    assert decode_body(20, "request", version, shipped, "drafted") == body
    dry = encode_body(20, "request", version, {**body, "validateOnly": True}, "drafted")
    assert decode_request(20, version, dry, dialect="drafted").validate_only
    assert not decode_request(20, version, shipped, dialect="drafted").validate_only


@pytest.mark.parametrize("version", [0, 1, 5, 6])
def test_versions_of_delete_topics_that_the_kips_do_not_change_are_encoded_as_shipped(
    version: int,
) -> None:
    response = DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", error_message="no")])
    shipped, drafted = (encode_response(20, version, response, d) for d in ("shipped", "drafted"))
    assert shipped == drafted


@pytest.mark.parametrize("key", [10001, 10002, 10003])
def test_apis_of_kip_4_are_unknown_in_the_shipped_dialect(key: int) -> None:
    header = key.to_bytes(2) + bytes(2) + bytes(4) + b"\xff\xff"
    assert decode_request_header(header, "drafted")[0].api_key == key
    with pytest.raises(WireError, match=f"there is no API {key}"):
        decode_request_header(header)


def test_bumped_version_is_unsupported_in_the_shipped_dialect() -> None:
    header = (44).to_bytes(2) + (2).to_bytes(2) + bytes(4) + b"\xff\xff\0"
    assert decode_request_header(header, "drafted")[0].api_version == 2
    with pytest.raises(UnsupportedVersionError):
        decode_request_header(header)
