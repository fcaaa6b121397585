"""Errors of a whole request: every served API has one, and NOT_CONTROLLER has Kafka's bytes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire import decode_body
from bridgehead.kafka_wire.apis import API_SPECS, DIALECTS, SPECS, error_response
from bridgehead.kafka_wire.codec import decode_request, encode_response
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.headers import decode_request_header, encode_response_header
from bridgehead.kafka_wire.messages.describe_configs import DescribeConfigsResource
from bridgehead.kafka_wire.messages.produce import ProduceRequest
from broker_proxy.requests.routing import ROUTING_TABLES as ROUTES

SERVED = ROUTES["drafted"]
RECORDING = Path(__file__).parents[3] / "recordings" / "direct-open.jsonl.gz"


def _recorded_not_controller() -> Iterator[Any]:
    """Yield the recorded NOT_CONTROLLER responses, one for each API and version."""
    for line in gzip.decompress(RECORDING.read_bytes()).splitlines():
        case = json.loads(line)
        if case["case"] == "sent_to_another_broker":
            for step in case["steps"]:
                key = int(step["request_hex"][:4], 16)
                if key in SERVED and '"errorCode": 41' in json.dumps(step["response"]):
                    yield pytest.param(step, id=f"{step['api']}-{step['version']}")


@pytest.mark.parametrize("step", list(_recorded_not_controller()))
def test_not_controller_has_the_recorded_bytes(step: Any) -> None:
    """The test compares header and body, byte for byte."""
    data = bytes.fromhex(step["request_hex"])
    header, at = decode_request_header(data)
    key, version = header.api_key, header.api_version
    request = decode_request(key, version, data, at)
    response = error_response(key, request, version, ErrorCode.NOT_CONTROLLER)
    head = encode_response_header(key, version, header.correlation_id)
    assert (head + encode_response(key, version, response)).hex() == step["response_hex"]


def test_recordings_cover_every_version() -> None:
    """CreateTopics has 8 versions, DeleteTopics 7 and CreatePartitions 4; each has a recording."""
    assert len(list(_recorded_not_controller())) >= 19


def test_every_served_api_has_an_error_response() -> None:
    assert all(SPECS["drafted"][key].error_shape is not None for key in SERVED)


@pytest.mark.parametrize("key", sorted(SERVED))
def test_error_of_an_empty_request_can_be_encoded_in_every_version(key: int) -> None:
    for dialect in DIALECTS:
        spec = SPECS[dialect].get(key)
        if spec is None:
            continue
        for version in spec.versions:
            request = spec.request()
            if isinstance(request, ProduceRequest):
                request.acks = 1  # With acks=0 there is no response.
            response = error_response(key, request, version, ErrorCode.REQUEST_TIMED_OUT)
            encoded = encode_response(key, version, response, dialect)
            assert isinstance(decode_body(key, "response", version, encoded, dialect), dict)


def test_each_resource_of_a_timed_out_alteration_has_a_code_and_no_message() -> None:
    """The code is REQUEST_TIMED_OUT, and the message is null (docs/kafka/forwarding.md)."""
    spec = API_SPECS[44]
    request = decode_request(
        44,
        0,
        bytes.fromhex("00000002 02 0001 61 00000000 02 0001 62 00000000 00"),
    )
    response = error_response(44, request, 0, ErrorCode.REQUEST_TIMED_OUT)
    assert spec.name == "IncrementalAlterConfigs"
    assert [(r.resource_name, r.error_code, r.error_message) for r in response.responses] == [
        ("a", 7, None),
        ("b", 7, None),
    ]


def test_describe_configs_error_has_the_default_text() -> None:
    spec = API_SPECS[32]
    request = spec.request()
    request.resources = [_resource()]
    response = error_response(32, request, 4, ErrorCode.INVALID_REQUEST, "own words")
    assert response.results[0].error_message == ErrorCode.INVALID_REQUEST.default_text


def _resource() -> Any:
    return DescribeConfigsResource(resource_type=2, resource_name="t")
