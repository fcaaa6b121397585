"""The decoder skips the arrays that its argument `unread` names.

It returns an array that `repeated` names as a FixedList, and the same one while the next arrays are
equal. A FixedList is encoded once for each version, and converted to JSON once.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.codec import decode_response, encode_response
from bridgehead.kafka_wire.generate_json import JsonGenerator
from bridgehead.kafka_wire.messages.create_topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from bridgehead.kafka_wire.primitives import WireError
from bridgehead.kafka_wire.schema import FixedList
from tests.unit.bridgehead.kafka_wire.test_random_messages import messages

KEY = ApiKey.CREATE_TOPICS


def one_topic(configs: list[CreatableTopicConfigs]) -> CreateTopicsResponse:
    topic = CreatableTopicResult("orders", num_partitions=1, replication_factor=1, configs=configs)
    return CreateTopicsResponse(0, [topic])


@pytest.mark.parametrize("version", range(8))
@given(data=st.data())
def test_only_the_unread_array_is_empty(version: int, data: Any) -> None:
    message: CreateTopicsResponse = data.draw(messages(CreateTopicsResponse, version))
    encoded = encode_response(KEY, version, message)

    decoded = decode_response(KEY, version, encoded, unread=("configs",))

    expected = [
        dataclasses.replace(topic, configs=topic.configs and []) for topic in message.topics
    ]
    assert decoded == dataclasses.replace(message, topics=expected)


def test_an_array_that_differs_from_the_previous_one_is_skipped_too() -> None:
    for value in ("1", "1", "22", "1" * 300, "1"):
        message = one_topic([CreatableTopicConfigs("retention.ms", value)])
        message.topics += [CreatableTopicResult("payments", configs=[])]
        decoded = decode_response(KEY, 7, encode_response(KEY, 7, message), unread=("configs",))
        assert [topic.name for topic in decoded.topics] == ["orders", "payments"]


def test_every_cut_within_an_unread_array_is_an_error() -> None:
    message = one_topic([CreatableTopicConfigs("retention.ms", "1")] * 3)
    encoded = encode_response(KEY, 7, message)
    for length in range(len(encoded)):
        with pytest.raises(WireError):
            decode_response(KEY, 7, encoded[:length], unread=("configs",))


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_fixed_list_is_encoded_like_a_list(version: int) -> None:
    configs = [CreatableTopicConfigs(f"name-{number}", None) for number in range(200)]
    expected = encode_response(KEY, version, one_topic(configs))
    shared = FixedList(configs)
    for _ in range(2):
        assert encode_response(KEY, version, one_topic(shared)) == expected


@pytest.mark.parametrize("version", range(8))
@given(data=st.data())
def test_decoding_of_repeated_arrays_returns_equal_messages(version: int, data: Any) -> None:
    message: CreateTopicsResponse = data.draw(messages(CreateTopicsResponse, version))
    encoded = encode_response(KEY, version, message)
    assert decode_response(KEY, version, encoded, repeated=("configs",)) == message


def test_an_array_is_decoded_again_only_if_it_differs_from_the_previous_one() -> None:
    def decoded(value: str) -> list[CreatableTopicConfigs]:
        encoded = encode_response(KEY, 7, one_topic([CreatableTopicConfigs("retention.ms", value)]))
        configs = decode_response(KEY, 7, encoded, repeated=("configs",)).topics[0].configs
        assert configs == [CreatableTopicConfigs("retention.ms", value)]
        assert isinstance(configs, FixedList)
        return configs

    first, second, third = decoded("1"), decoded("1"), decoded("22")
    assert first is second
    assert second is not third


def test_every_cut_within_a_repeated_array_is_an_error() -> None:
    encoded = encode_response(KEY, 7, one_topic([CreatableTopicConfigs("retention.ms", "1")] * 3))
    decode_response(KEY, 7, encoded, repeated=("configs",))
    for length in range(len(encoded)):
        with pytest.raises(WireError):
            decode_response(KEY, 7, encoded[:length], repeated=("configs",))


def test_a_fixed_list_is_converted_to_json_once_and_like_a_list() -> None:
    configs = [CreatableTopicConfigs("name", "1"), CreatableTopicConfigs("other", None)]
    conversions: list[Any] = []

    def converted(rows: Any) -> Any:
        conversions.append(rows)
        return rows

    generator = JsonGenerator(7, fixed=converted)
    to_json = generator.function(CreateTopicsResponse)
    expected = to_json(one_topic(configs))
    shared = FixedList(configs)
    assert to_json(one_topic(shared)) == to_json(one_topic(shared)) == expected
    assert len(conversions) == 1
