"""A producer tries again while the broker cannot read a topic's configs from ZooKeeper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

from bridgehead.kafka_wire.api_key import ApiKey
from bridgehead.kafka_wire.errors import ErrorCode
from bridgehead.kafka_wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker_proxy.apis.records.produce import Produce
from cluster_model.session_state import ConnectionLostError
from data_plane.log.partition_log import AppendInfo
from tests.unit.broker_proxy.client_requests import a_request
from tests.unit.data_plane.logs import batch

LOST = "lost"


async def test_an_outage_of_zookeeper_is_an_error_that_producers_retry() -> None:
    """The other topic of the request is appended."""
    appended: list[str] = []

    async def read(topic: str) -> None:
        if topic == LOST:
            raise ConnectionLostError("the connection to ZooKeeper broke")

    def partition(topic: str, _number: int) -> Any:
        def append(*_: Any) -> Any:
            appended.append(topic)
            return AppendInfo(7, 7, -1)

        return SimpleNamespace(append=append, log=SimpleNamespace(start_offset=3))

    cache = SimpleNamespace(
        has_topic=lambda _: True,
        topics={name: SimpleNamespace(partitions={5: None}) for name in (LOST, "other")},
    )
    partitions = SimpleNamespace(
        settings=SimpleNamespace(read=read), get=partition, now_ms=lambda: 1
    )
    produce = Produce(
        cache=cast(Any, cache),
        partitions=cast(Any, partitions),
        authorize_for=lambda _: cast(Any, lambda *_right: True),
        quota=cast(Any, Mock(charge=Mock(return_value=0))),
        metrics=cast(Any, Mock()),
    )
    message = ProduceRequest(
        acks=1,
        timeout_ms=2_000,
        topic_data=[
            TopicProduceData(name, [PartitionProduceData(5, batch(b"value"))])
            for name in (LOST, "other")
        ],
    )
    response = await produce.handle(a_request(ApiKey.PRODUCE, 9), message)
    codes = {topic.name: topic.partition_responses[0].error_code for topic in response.responses}
    assert codes == {LOST: ErrorCode.NOT_LEADER_OR_FOLLOWER, "other": ErrorCode.NONE}
    assert appended == ["other"]
