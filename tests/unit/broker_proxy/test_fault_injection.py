"""The condition `topic` of a fault rule sees the topics of every request that names some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridgehead.kafka_wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bridgehead.kafka_wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from bridgehead.kafka_wire.messages.describe_groups import DescribeGroupsRequest
from bridgehead.kafka_wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from bridgehead.kafka_wire.messages.fetch import FetchRequest, FetchTopic
from bridgehead.kafka_wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bridgehead.kafka_wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from bridgehead.kafka_wire.messages.produce import ProduceRequest, TopicProduceData
from broker_proxy.requests.fault_injection import SharedCount, topics_of

TOPIC_TYPE, BROKER_TYPE = 2, 4


@pytest.mark.parametrize(
    "request_",
    [
        CreateTopicsRequest(topics=[CreatableTopic(name="orders")]),
        MetadataRequest(topics=[MetadataRequestTopic(name="orders")]),
        ProduceRequest(topic_data=[TopicProduceData("orders", [])]),
        FetchRequest(topics=[FetchTopic(topic="orders", partitions=[])]),
        ElectLeadersRequest(topic_partitions=[TopicPartitions("orders", [0])]),
        OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("orders", [0])])]
        ),
        DescribeConfigsRequest(resources=[DescribeConfigsResource(TOPIC_TYPE, "orders")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_topics_of_a_request_are_found(request_: Any) -> None:
    assert topics_of(request_) == {"orders"}


@pytest.mark.parametrize(
    "request_",
    [
        MetadataRequest(topics=None),
        ElectLeadersRequest(topic_partitions=None),
        DescribeGroupsRequest(groups=["orders"]),
        DescribeConfigsRequest(resources=[DescribeConfigsResource(BROKER_TYPE, "1")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_request_without_topic_names_has_none(request_: Any) -> None:
    assert topics_of(request_) == frozenset()


def test_brokers_count_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "rule-1"
    file.touch()
    counts = [SharedCount(str(file)) for _ in range(3)]
    assert [counts[n % 3]() for n in range(7)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_count_without_its_file_is_no_match(tmp_path: Path) -> None:
    assert SharedCount(str(tmp_path / "removed"))() == 0
